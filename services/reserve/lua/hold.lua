-- SPDX-License-Identifier: Apache-2.0
-- hold: takes units for one buyer, all or nothing over the whole cart.
--
-- KEYS  1 ctl  2 pauses  3 held  4 unacked  5 settled  6 released  7 buyers  8 used  9 log
--       10.. free:ITEM, one per touched item, in the order of the demands
-- ARGV  1 seal: "FORMAT RUN_ID REPLICATION_ID" of this Redis, read when the connection opened
--       2 reservation  3 user (raw bytes)  4 place (22 base64url)  5 window  6 digest (22 base64url)
--       7 "1" while the sale is open by the daemon's fresh state
--       8 pass expires at (Unix ms, tolerance included)  9 provisional time to pay (ms)  10 source (daemon instance)
--       11 items of the sale  12 units wanted, summed over items
--       13.. three per touched item, each item once: item, how many of any units, named units "5,17" or ""
-- Answers
--       held PACKED                    taken now
--       replay held|settled|released PACKED   this reservation is known
--       mismatch                       known, with another digest
--       unknown_gate                   not there, of another format, not armed, or armed on another Redis
--       paused not_open|pause|unproved closed: by the daemon's state, by a pause id, by lack of proof
--       pass_expired | pass_used
--       limit RESERVATION              the buyer's live one; "" when more is wanted than the limit allows anybody
--       sold_out STOCK HELD            of the first item that has too few
--       doubt WHY                      the gate contradicts itself: a pause was added, nothing was taken
-- An error reply means that nothing was written: every read and every check precedes the first write, and the first write
-- is one that Redis refuses when it is out of memory.
-- Cost decides the form: a call of Redis costs 1 to 2 us, a table or a formatted number 0.3 us.
local call, format, match = redis.call, string.format, string.match
local reservation, item = ARGV[2], ARGV[13]

local ctl = call('HMGET', KEYS[1], 'seal', 'attested_until', 'limit', 'seq',
    'initial:' .. item, 'stock:' .. item, 'held:' .. item, 'settled:' .. item, 'cursor:' .. item)
if ctl[1] ~= ARGV[1] then
    return {'unknown_gate'}
end

-- Replay comes first: a winner whose answer was lost finds it whatever has happened since. Who has no row in buyers never
-- had a reservation; rows stay when their last reservation is given back.
local buyer = call('HGET', KEYS[7], ARGV[3])
if buyer then
    local state, known = 'held', call('HGET', KEYS[3], reservation)
    if not known then
        state, known = 'settled', call('HGET', KEYS[5], reservation)
    end
    if not known then
        state, known = 'released', call('HGET', KEYS[6], reservation)
    end
    if known then
        if match(known, '^%S+ %d+ %d+ (%S+) ') ~= ARGV[6] then
            return {'mismatch'}
        end
        return {'replay', state, known}
    end
end

if ARGV[7] ~= '1' then
    return {'paused', 'not_open'}
elseif call('HLEN', KEYS[2]) ~= 0 then
    return {'paused', 'pause'}
end
local time = call('TIME')
local now_ms = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
if now_ms >= tonumber(ctl[2]) then
    return {'paused', 'unproved'}
elseif now_ms >= tonumber(ARGV[8]) then
    return {'pass_expired'}
end

-- Closes the gate. The pause's id is the time in microseconds, so that no older lift can name it.
local function doubt(why)
    call('HSET', KEYS[2], format('%020d%06d', time[1], time[2]), 'doubt: ' .. why)
    return {'doubt', why}
end

-- used: "WINDOW RESERVATION" while live, "WINDOW -" after a release; then only a later window opens the place again.
local use = call('HGET', KEYS[8], ARGV[4])
if use then
    local window, owner = match(use, '^(%d+) (%S+)$')
    if owner == '-' then
        if tonumber(ARGV[5]) <= tonumber(window) then
            return {'pass_used'}
        end
    elseif not owner then
        return doubt('used place unreadable')
    elseif buyer and string.find(buyer .. ',', ':' .. owner .. ',', 1, true) then
        return {'limit', owner}
    else
        return {'pass_used'}
    end
end

-- Plan: which units and slots, and what the counters become. `counters` is nil for the short plan.
local wanted, stock, held = tonumber(ARGV[12]), tonumber(ctl[6]), tonumber(ctl[7])
local units_text, slots_text, entry, stock_after, taken, counters
if wanted == 1 and ARGV[14] == '1' and ARGV[11] == '1' and not buyer and tonumber(ctl[3]) > 0 then
    -- One unit of the only item for somebody new: what a flash sale is made of.
    if stock < 1 then
        return {'sold_out', ctl[6], ctl[7]}
    end
    taken = call('BITPOS', KEYS[10], 1, ctl[9])
    if taken < 0 then
        taken = call('BITPOS', KEYS[10], 1)
    end
    if taken < 0 or taken >= tonumber(ctl[5]) then
        return doubt('stock without a free unit')
    elseif stock - 1 + held + 1 + ctl[8] ~= tonumber(ctl[5]) then
        return doubt('stock + held + settled is not initial')
    end
    units_text, slots_text, entry = item .. ':' .. format('%d', taken), '0', '0:' .. reservation
    stock_after = format('%d', stock - 1)
else
    -- buyers: "SLOT:RESERVATION,SLOT:RESERVATION". New units take the lowest free slots.
    local used_slots, used_count, slots, entries, slot = {}, 0, {}, {}, -1
    for used_slot in string.gmatch(buyer or '', '(%d+):') do
        used_slots[tonumber(used_slot)], used_count = true, used_count + 1
    end
    if buyer and buyer ~= '' and used_count == 0 then
        return doubt('buyer unreadable')
    elseif used_count + wanted > tonumber(ctl[3]) then
        return {'limit', match(buyer or '', ':([^,]+)') or ''}
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
    local texts, row, base, taken_count = {}, ctl, 4, 0
    for i = 1, #KEYS - 9 do
        local key, any, named = KEYS[9 + i], tonumber(ARGV[11 + 3 * i]), ARGV[12 + 3 * i]
        if i > 1 then
            item, base = ARGV[10 + 3 * i], 0
            row = call('HMGET', KEYS[1], 'initial:' .. item, 'stock:' .. item, 'held:' .. item, 'settled:' .. item,
                'cursor:' .. item)
        end
        local initial, units, mine = tonumber(row[base + 1]), {}, {}
        stock, held = tonumber(row[base + 2]), tonumber(row[base + 3])
        for unit in string.gmatch(named, '%d+') do
            unit = tonumber(unit)
            if mine[unit] or unit >= initial or call('GETBIT', key, unit) == 0 then
                return {'sold_out', row[base + 2], row[base + 3]}
            end
            units[#units + 1], mine[unit] = unit, true
        end
        local count = #units + any
        if stock < count then
            return {'sold_out', row[base + 2], row[base + 3]}
        end
        local from, wrapped = row[base + 5] * 8, false
        while #units < count do
            local unit = call('BITPOS', key, 1, format('%d', from), -1, 'BIT')
            if unit < 0 then
                if wrapped then
                    return doubt('stock without a free unit')
                end
                from, wrapped = 0, true
            else
                from = unit + 1
                if unit >= initial then
                    return doubt('a free unit beyond the last')
                elseif not mine[unit] then
                    units[#units + 1], mine[unit] = unit, true
                end
            end
        end
        if stock - count + held + count + row[base + 4] ~= initial then
            return doubt('stock + held + settled is not initial')
        end
        for n = 1, count do
            units[n] = format('%d', units[n])
            taken[#taken + 1], taken[#taken + 2] = key, units[n]
        end
        local last = #counters
        counters[last + 1], counters[last + 2] = 'stock:' .. item, format('%d', stock - count)
        counters[last + 3], counters[last + 4] = 'held:' .. item, format('%d', held + count)
        counters[last + 5], counters[last + 6] = 'cursor:' .. item, format('%d', math.floor(from / 8))
        texts[i], taken_count = item .. ':' .. table.concat(units, ','), taken_count + count
    end
    if taken_count ~= wanted then
        return doubt('demands do not add up')
    end
    units_text = table.concat(texts, ';')

    local fields, sum = {}, -wanted
    for i = 1, tonumber(ARGV[11]) do
        fields[i] = format('stock:%d', i - 1)
    end
    for _, each in ipairs(call('HMGET', KEYS[1], unpack(fields))) do
        sum = sum + each
    end
    stock_after = format('%d', sum)
end

-- What was not read so far must be of its type too, or a later write would fail with the first ones done. `log` is checked by
-- the first write itself: XADD refuses a wrong type, a sequence that does not grow, and to run out of memory.
if call('HEXISTS', KEYS[3], reservation) == 1 then
    return doubt('held without its buyer')
end
call('SCARD', KEYS[4])

local seq, window = format('%d', ctl[4] + 1), ARGV[5]
local packed = ARGV[4] .. ' ' .. window .. format(' %d ', now_ms + ARGV[9]) .. ARGV[6] .. ' ' .. units_text .. ' '
    .. slots_text .. ' ' .. ARGV[3]
call('XADD', KEYS[9], seq .. '-0', 'kind', 'hold', 'reservation', reservation, 'units', units_text, 'stock_after',
    stock_after, 'source', ARGV[10], 'at_ms', format('%d', now_ms))
call('HSET', KEYS[3], reservation, packed)
if counters then
    call('HSET', KEYS[1], 'seq', seq, unpack(counters))
    for n = 1, 2 * wanted, 2 do
        call('SETBIT', taken[n], taken[n + 1], '0')
    end
else
    -- The cursor is a hint in bytes: moving it once in 64 units is enough.
    if taken >= ctl[9] * 8 + 64 or taken < ctl[9] * 8 then
        call('HSET', KEYS[1], 'cursor:' .. item, format('%d', (taken - taken % 8) / 8))
    end
    call('HSET', KEYS[1], 'seq', seq, 'stock:' .. item, stock_after, 'held:' .. item, format('%d', held + 1))
    call('SETBIT', KEYS[10], format('%d', taken), '0')
end
call('SADD', KEYS[4], reservation)
call('HSET', KEYS[7], ARGV[3], entry)
call('HSET', KEYS[8], ARGV[4], window .. ' ' .. reservation)
return {'held', packed}
