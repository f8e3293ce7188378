-- SPDX-License-Identifier: Apache-2.0
-- load: makes the gate of an epoch from the ledger's rows, page by page. The only script that creates `ctl`, and only while the
-- ledger says that this epoch was never armed. One loader at a time; another one may begin anew after a silence.
--
-- KEYS  1 ctl  2 pauses  3 held  4 unacked  5 settled  6 released  7 buyers  8 used  9 log  10.. free:ITEM, every item
-- ARGV  1 what  2 loader (daemon instance)  3 epoch  4 run id of this connection
--   begin   5 limit per buyer  6 silence after which another loader may begin (ms)  7.. units of each item
--           begun | armed RUN_ID REPLICATION_ID (it is done already) | busy LOADER
--   page    5 number of the page, from 1  then three per row: "held", "settled" or "released"; reservation; packed hold
--           (a released row without units has "-" for units and slots)
--           loaded | not_loader | wrong_page EXPECTED | doubt WHY
--   finish  verifies: BITCOUNT = stock and stock + held + settled = initial, per item
--           verified | not_loader | doubt WHY
-- An error reply means that nothing was written. `pauses` is never touched: a pause outlives a reload.
local call, format, match, gmatch = redis.call, string.format, string.match, string.gmatch
local what, loader, epoch, run_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local ctl = call('HMGET', KEYS[1], 'armed', 'loader', 'load_at', 'load_page', 'run_id', 'replid', 'epoch', 'limit')
local time = call('TIME')
local now_ms = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
local now = format('%d', now_ms)

local function begin()
    if ctl[1] == '1' then
        return {'armed', ctl[5], ctl[6]}
    elseif ctl[2] and ctl[2] ~= loader and now_ms - ctl[3] < tonumber(ARGV[6]) then
        return {'busy', ctl[2]}
    end
    local counters, maps = {}, {}
    for i = 7, #ARGV do
        local item, units = format('%d', i - 7), tonumber(ARGV[i])
        local rest = units % 8
        maps[i - 6] = string.rep('\255', (units - rest) / 8) .. (rest > 0 and string.char(256 - 2 ^ (8 - rest)) or '')
        for _, field in ipairs({'initial:', item, ARGV[i], 'stock:', item, ARGV[i], 'held:', item, '0', 'settled:', item, '0',
            'cursor:', item, '0'}) do
            counters[#counters + 1] = field
        end
    end
    -- The first write may be refused for want of memory; what follows a refusal is begun anew by the next `begin`.
    call('HSET', KEYS[1], 'load_at', now)
    call('UNLINK', KEYS[1], unpack(KEYS, 3))
    -- `about` is longer than 64 bytes: that makes Redis keep this hash as a table, whose fields cost the same wherever they are.
    call('HSET', KEYS[1], 'about', 'the gate of one shard of a sale in one epoch; only the scripts of the reserve daemon write it',
        'format', '1', 'epoch', epoch, 'loader', loader, 'load_at', now, 'load_page', '0', 'loaded', '0', 'run_id', run_id,
        'replid', '', 'armed', '0', 'attested_until', '0', 'limit', ARGV[5], 'items', format('%d', #maps), 'seq', '0')
    for i = 1, #counters, 3 do
        call('HSET', KEYS[1], counters[i] .. counters[i + 1], counters[i + 2])
    end
    for i, map in ipairs(maps) do
        call('SET', KEYS[9 + i], map)
    end
    return {'begun'}
end

-- What the rows read so far make of the gate; written only when the whole page is right.
local plan = {rows = {}, bits = {}, taken = {}, counters = {}, buyers = {}, used = {}}

local function take_units(kind, units_text)
    local count = 0
    for item, list in gmatch(units_text, '(%d+):([%d,]+)') do
        local key = KEYS[10 + item]
        if not key then
            return nil
        end
        for unit in gmatch(list, '%d+') do
            local name = item .. ':' .. unit
            if plan.taken[name] or call('GETBIT', key, unit) == 0 then
                return nil
            end
            count, plan.taken[name] = count + 1, true
            plan.bits[#plan.bits + 1] = {key, unit}
            plan.counters['stock:' .. item] = (plan.counters['stock:' .. item] or 0) - 1
            plan.counters[kind .. ':' .. item] = (plan.counters[kind .. ':' .. item] or 0) + 1
        end
    end
    return count
end

local function plan_row(kind, reservation, packed)
    local place, window, units_text, slots_text, user = match(packed, '^(%S+) (%d+) %d+ %S+ (%S+) (%S+) (.+)$')
    if not place then
        return 'row unreadable'
    end
    for _, i in ipairs({3, 5, 6}) do
        if call('HEXISTS', KEYS[i], reservation) == 1 then
            return 'a reservation came twice'
        end
    end
    local buyer = plan.buyers[user] or call('HGET', KEYS[7], user) or ''
    local use = plan.used[place] or call('HGET', KEYS[8], place)
    local use_window, owner = match(use or '', '^(%d+) (%S+)$')
    if kind == 'released' then
        if not use or (owner == '-' and tonumber(use_window) < tonumber(window)) then
            use = window .. ' -'
        end
    else
        local count, slots = take_units(kind, units_text), 0
        for slot in gmatch(slots_text, '%d+') do
            buyer, slots = buyer .. (buyer ~= '' and ',' or '') .. slot .. ':' .. reservation, slots + 1
        end
        if not count or count == 0 or count ~= slots then
            return 'a unit has two owners'
        elseif owner and owner ~= '-' then
            return 'a place has two reservations'
        end
        use = window .. ' ' .. reservation
    end
    plan.buyers[user], plan.used[place] = buyer, use
    plan.rows[#plan.rows + 1] = {kind, reservation, packed}
    return nil
end

local function page()
    local expected = ctl[4] + 1
    if tonumber(ARGV[5]) ~= expected then
        return {'wrong_page', format('%d', expected)}
    end
    for i = 6, #ARGV, 3 do
        local fault = plan_row(ARGV[i], ARGV[i + 1], ARGV[i + 2])
        if fault then
            return {'doubt', fault}
        end
    end
    call('HSET', KEYS[1], 'load_page', format('%d', expected), 'load_at', now)
    for _, row in ipairs(plan.rows) do
        call('HSET', row[1] == 'held' and KEYS[3] or row[1] == 'settled' and KEYS[5] or KEYS[6], row[2], row[3])
    end
    for _, bit in ipairs(plan.bits) do
        call('SETBIT', bit[1], bit[2], 0)
    end
    for field, change in pairs(plan.counters) do
        call('HINCRBY', KEYS[1], field, format('%d', change))
    end
    for user, text in pairs(plan.buyers) do
        call('HSET', KEYS[7], user, text)
    end
    for place, text in pairs(plan.used) do
        call('HSET', KEYS[8], place, text)
    end
    return {'loaded'}
end

local function finish()
    for i = 10, #KEYS do
        local item = format('%d', i - 10)
        local row = call('HMGET', KEYS[1], 'initial:' .. item, 'stock:' .. item, 'held:' .. item, 'settled:' .. item)
        if call('BITCOUNT', KEYS[i]) ~= tonumber(row[2]) then
            return {'doubt', 'free units are not stock'}
        elseif row[2] + row[3] + row[4] ~= tonumber(row[1]) then
            return {'doubt', 'stock + held + settled is not initial'}
        end
    end
    call('HSET', KEYS[1], 'loaded', '1', 'load_at', now)
    return {'verified'}
end

if what == 'begin' then
    return begin()
elseif ctl[1] ~= '0' or ctl[2] ~= loader or ctl[5] ~= run_id or ctl[7] ~= epoch then
    return {'not_loader'}
elseif what == 'page' then
    return page()
end
return finish()
