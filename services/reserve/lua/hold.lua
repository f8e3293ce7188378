-- SPDX-License-Identifier: Apache-2.0
-- hold: takes units for one buyer, all or nothing over the whole cart.
--
-- KEYS  1 ctl  2 pauses  3 held  4 unacked  5 settled  6 released  7 buyers  8 used  9 log
--       10.. free:ITEM, one per touched item, in the order of the demands
-- ARGV  1 seal: "FORMAT RUN_ID REPLICATION_ID" of this Redis, read when the connection opened
--       2 reservation  3 user (raw bytes)  4 place (22 base64url)  5 window  6 digest (22 base64url)
--       7 pass expires at (Unix ms, tolerance included); "" while the sale is not open by the daemon's fresh state
--       8 provisional time to pay (ms)  9 source (daemon instance)
--       Nothing more: one unit of item 0, the sale's only one. Otherwise
--       10 items of the sale  11 units wanted, summed over items
--       12.. three per touched item, each item once: item, how many of any units, named units "5,17" or ""
-- Answers
--       "held PACKED" (one text)       taken now
--       replay held|settled|released PACKED   this reservation is known
--       mismatch                       known, with another digest
--       unknown_gate                   not there, of another format, not armed, or armed on another Redis
--       paused not_open|pause|unproved closed: by the daemon's state, by a pause id, by lack of proof or a clock set back since
--       pass_expired | pass_used
--       limit RESERVATION              the buyer's live one; "" when more is wanted than the limit allows anybody
--       sold_out STOCK HELD            of the first item that has too few
--       doubt WHY                      the gate contradicts itself: nothing was taken, a pause was added (unless there are 16)
-- An error reply means that nothing was written: every read and every check precedes the first write, and the first write
-- is one that Redis refuses when it is out of memory.
-- Cost decides the form: a call of Redis costs as much as 40 additions, a number read from or made into text as much as 8.
local call, format = redis.call, string.format
local reservation, user, cart = ARGV[2], ARGV[3], ARGV[10]

local ctl = call('HMGET', KEYS[1], 'seal', 'attested_until', 'seq', 'initial:0', 'stock:0', 'held:0', 'settled:0', 'cursor:0',
    'attested_at')
if ctl[1] ~= ARGV[1] then
    return {'unknown_gate'}
end

-- Replay comes first: a winner whose answer was lost finds it whatever has happened since. Who has no row in buyers never
-- had a reservation; rows stay when their last reservation is given back.
local buyer = call('HGET', KEYS[7], user)
if buyer then
    local state, known = 'held', call('HGET', KEYS[3], reservation)
    if not known then
        state, known = 'settled', call('HGET', KEYS[5], reservation)
    end
    if not known then
        state, known = 'released', call('HGET', KEYS[6], reservation)
    end
    if known then
        local digest = string.match(known, '^%S+ %d+ %d+ (%S+) ')
        if digest == ARGV[6] then
            return {'replay', state, known}
        elseif digest then
            return {'mismatch'}
        end
        local time = call('TIME')
        if call('HLEN', KEYS[2]) < 16 then
            call('HSET', KEYS[2], format('%020d%06d', time[1], time[2]), 'doubt: row unreadable')
        end
        return {'doubt', 'row unreadable'}
    end
end

if ARGV[7] == '' then
    return {'paused', 'not_open'}
elseif call('HLEN', KEYS[2]) ~= 0 then
    return {'paused', 'pause'}
end
local time = call('TIME')
local now_ms = time[1] * 1000 + time[2] / 1000
if ctl[2] - now_ms <= 0 or now_ms - (ctl[9] or 0) < 0 then
    return {'paused', 'unproved'}
elseif ARGV[7] - now_ms <= 0 then
    return {'pass_expired'}
end

-- Plan: which units and slots, what the counters become, or why not. Nothing is written after a contradiction but the pause
-- that closes the gate; its id is the time in microseconds, so that no older lift can name it.
local why, units_text, slots_text, entry, stock_after, held_after, taken, counters

-- used: "WINDOW RESERVATION" while live, "WINDOW -" after a release; then only a later window opens the place again.
local use = call('HGET', KEYS[8], ARGV[4])
if use then
    local window, owner = string.match(use, '^(%d+) (%S+)$')
    if not owner then
        why = 'used place unreadable'
    elseif owner == '-' then
        if tonumber(ARGV[5]) <= tonumber(window) then
            return {'pass_used'}
        end
    elseif buyer and string.find(buyer .. ',', ':' .. owner .. ',', 1, true) then
        return {'limit', owner}
    else
        return {'pass_used'}
    end
end

if not cart and not buyer and not why then
    -- One unit for somebody new: what a flash sale is made of. (A limit is at least one.)
    local initial, stock, held = ctl[4] + 0, ctl[5] - 1, ctl[6] + 1
    if stock < 0 then
        return {'sold_out', ctl[5], ctl[6]}
    end
    taken = call('BITPOS', KEYS[10], 1, ctl[8])
    if taken < 0 then
        taken = call('BITPOS', KEYS[10], 1)
    end
    if taken < 0 or taken >= initial then
        why = 'stock without a free unit'
    elseif stock + held + ctl[7] ~= initial then
        why = 'stock + held + settled is not initial'
    end
    stock_after, held_after, slots_text, entry = format('%d', stock), format('%d', held), '0', '0:' .. reservation
elseif not why then
    -- buyers: "SLOT:RESERVATION,SLOT:RESERVATION". New units take the lowest free slots.
    local item_count, wanted, limit = tonumber(cart or 1), tonumber(ARGV[11] or 1), tonumber(call('HGET', KEYS[1], 'limit'))
    local used_slots, used_count, slots, entries, slot = {}, 0, {}, {}, -1
    for used_slot in string.gmatch(buyer or '', '(%d+):') do
        used_slots[tonumber(used_slot)], used_count = true, used_count + 1
    end
    if buyer and buyer ~= '' and used_count == 0 then
        why = 'buyer unreadable'
    elseif used_count + wanted > limit then
        return {'limit', string.match(buyer or '', ':([^,]+)') or ''}
    end
    if used_count > 0 then
        entries[1] = buyer
    end
    for n = 1, wanted do
        repeat
            slot = slot + 1
        until not used_slots[slot]
        slots[n] = format('%d', slot)
        entries[#entries + 1] = slots[n] .. ':' .. reservation
    end
    slots_text, entry = table.concat(slots, ','), table.concat(entries, ',')

    counters, taken = {}, {}
    local texts, taken_count = {}, 0
    for i = 1, #KEYS - 9 do
        local key, item, any, named = KEYS[9 + i], ARGV[9 + 3 * i] or '0', tonumber(ARGV[10 + 3 * i] or 1), ARGV[11 + 3 * i] or ''
        local row = call('HMGET', KEYS[1], 'initial:' .. item, 'stock:' .. item, 'held:' .. item, 'settled:' .. item,
            'cursor:' .. item)
        local initial, stock, held, units, mine = tonumber(row[1]), tonumber(row[2]), tonumber(row[3]), {}, {}
        for unit in string.gmatch(named, '%d+') do
            unit = tonumber(unit)
            if mine[unit] or unit >= initial or call('GETBIT', key, unit) == 0 then
                return {'sold_out', row[2], row[3]}
            end
            units[#units + 1], mine[unit] = unit, true
        end
        local count = #units + any
        if stock < count then
            return {'sold_out', row[2], row[3]}
        end
        local from, wrapped = row[5] * 8, false
        while #units < count and not why do
            local unit = call('BITPOS', key, 1, format('%d', from), -1, 'BIT')
            if unit >= initial or (unit < 0 and wrapped) then
                why = 'stock without a free unit'
            elseif unit < 0 then
                from, wrapped = 0, true
            else
                from = unit + 1
                if not mine[unit] then
                    units[#units + 1], mine[unit] = unit, true
                end
            end
        end
        if stock - count + held + count + row[4] ~= initial then
            why = 'stock + held + settled is not initial'
        end
        for n, unit in ipairs(units) do
            units[n] = format('%d', unit)
            taken[#taken + 1], taken[#taken + 2] = key, units[n]
        end
        local last = #counters
        counters[last + 1], counters[last + 2] = 'stock:' .. item, format('%d', stock - count)
        counters[last + 3], counters[last + 4] = 'held:' .. item, format('%d', held + count)
        counters[last + 5], counters[last + 6] = 'cursor:' .. item, format('%d', math.floor(from / 8))
        texts[i], taken_count = item .. ':' .. table.concat(units, ','), taken_count + count
    end
    if taken_count ~= wanted then
        why = why or 'demands do not add up'
    end
    units_text = table.concat(texts, ';')

    local fields, sum = {}, -wanted
    for i = 1, item_count do
        fields[i] = format('stock:%d', i - 1)
    end
    for _, each in ipairs(call('HMGET', KEYS[1], unpack(fields))) do
        sum = sum + each
    end
    stock_after = format('%d', sum)
end

-- What was not read so far must be of its type too, or a later write would fail with the first ones done. `log` is checked by
-- the first write itself: XADD refuses a wrong type, a sequence that does not grow, and to run out of memory.
call('SCARD', KEYS[4])
if call('HEXISTS', KEYS[3], reservation) == 1 then
    why = 'held without its buyer'
end
if why then
    call('HSET', KEYS[2], format('%020d%06d', time[1], time[2]), 'doubt: ' .. why)
    return {'doubt', why}
end

local seq, taken_text = format('%d', ctl[3] + 1), not counters and format('%d', taken)
units_text = units_text or '0:' .. taken_text
local packed = ARGV[4] .. ' ' .. ARGV[5] .. format(' %d ', now_ms + ARGV[8]) .. ARGV[6] .. ' ' .. units_text .. ' '
    .. slots_text .. ' ' .. user
call('XADD', KEYS[9], seq .. '-0', 'kind', 'hold', 'reservation', reservation, 'units', units_text, 'stock_after',
    stock_after, 'source', ARGV[9], 'at_ms', format('%d', now_ms))
call('HSET', KEYS[3], reservation, packed)
if counters then
    call('HSET', KEYS[1], 'seq', seq, unpack(counters))
    for n = 1, #taken, 2 do
        call('SETBIT', taken[n], taken[n + 1], '0')
    end
else
    call('HSET', KEYS[1], 'seq', seq, 'stock:0', stock_after, 'held:0', held_after)
    call('SETBIT', KEYS[10], taken_text, '0')
    if taken % 64 == 0 then
        -- The cursor is a hint, in bytes: moving it once in 64 units is enough.
        call('HSET', KEYS[1], 'cursor:0', format('%d', taken / 8))
    end
end
call('SADD', KEYS[4], reservation)
call('HSET', KEYS[7], user, entry)
call('HSET', KEYS[8], ARGV[4], ARGV[5] .. ' ' .. reservation)
return 'held ' .. packed
