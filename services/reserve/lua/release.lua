#!lua flags=allow-oom
-- SPDX-License-Identifier: Apache-2.0
-- release: the ledger let this reservation expire, or cancelled it; its units go back, once.
--
-- KEYS  1 ctl  2 pauses  3 held  4 unacked  5 settled  6 released  7 buyers  8 used  9 log  10.. free:ITEM, every item
-- ARGV  1 seal "FORMAT RUN_ID REPLICATION_ID"  2 epoch of the verdict  3 reservation  4 source (daemon instance)
-- Answers
--       done | already | unknown_reservation | unknown_gate
--       doubt WHY                      the gate contradicts itself: nothing moved, a pause was added (unless there are 16)
-- Acts on what is held, or settled (a return). Clears the buyer's slots and the place, which opens again to passes of a later
-- window. Works while paused and out of memory. An error reply means that nothing was written.
local call, format, match, gmatch = redis.call, string.format, string.match, string.gmatch
local reservation = ARGV[3]
local ctl = call('HMGET', KEYS[1], 'seal', 'epoch', 'seq')
if ctl[1] ~= ARGV[1] or ctl[2] ~= ARGV[2] then
    return {'unknown_gate'}
end
local time = call('TIME')
local function doubt(why)
    if call('HLEN', KEYS[2]) < 16 then
        call('HSET', KEYS[2], format('%020d%06d', time[1], time[2]), 'doubt: ' .. why)
    end
    return {'doubt', why}
end
local source_key, counter, kind, packed = KEYS[3], 'held:', 'release', call('HGET', KEYS[3], reservation)
local settled, released = call('HGET', KEYS[5], reservation), call('HEXISTS', KEYS[6], reservation)
if not packed then
    source_key, counter, kind, packed = KEYS[5], 'settled:', 'return', settled
elseif settled then
    return doubt('held and settled')
end
if released == 1 then
    return packed and doubt('live and given back') or {'already'}
elseif not packed then
    return {'unknown_reservation'}
end

local place, window, units_text, slots_text, user = match(packed, '^(%S+) (%d+) %d+ %S+ (%S+) (%S+) (.+)$')
if not place then
    return doubt('row unreadable')
end
local counters, bits, stock_after = {}, {}, 0
for item, list in gmatch(units_text, '(%d+):([%d,]+)') do
    local row, key, count = call('HMGET', KEYS[1], 'stock:' .. item, counter .. item, 'initial:' .. item), KEYS[10 + item], 0
    if not key or not row[1] or not row[2] or not row[3] then
        return doubt('a unit of no item')
    end
    for unit in gmatch(list, '%d+') do
        if tonumber(unit) >= tonumber(row[3]) or call('GETBIT', key, unit) == 1 then
            return doubt('a unit of this reservation is free')
        end
        count, bits[#bits + 1] = count + 1, {key, unit}
    end
    if tonumber(row[2]) < count then
        return doubt('fewer taken than this reservation')
    end
    local last = #counters
    counters[last + 1], counters[last + 2] = 'stock:' .. item, format('%d', row[1] + count)
    counters[last + 3], counters[last + 4] = counter .. item, format('%d', row[2] - count)
end
for i = 10, #KEYS do
    stock_after = stock_after + call('HGET', KEYS[1], 'stock:' .. i - 10)
end

local rest, cleared = {}, 0
for slot, owner in gmatch(call('HGET', KEYS[7], user) or '', '(%d+):([^,]+)') do
    if owner == reservation then
        cleared = cleared + 1
    else
        rest[#rest + 1] = slot .. ':' .. owner
    end
end
if cleared ~= #bits or cleared == 0 then
    return doubt('slots of the buyer differ')
elseif call('HGET', KEYS[8], place) ~= window .. ' ' .. reservation then
    return doubt('the place is not this reservation\'s')
end
call('SCARD', KEYS[4])

-- XADD comes first: it refuses a wrong type or a sequence that does not grow before anything has moved.
local seq = format('%d', ctl[3] + 1)
call('XADD', KEYS[9], seq .. '-0', 'kind', kind, 'reservation', reservation, 'units', units_text, 'stock_after',
    format('%d', stock_after + #bits), 'source', ARGV[4], 'at_ms',
    format('%d', time[1] * 1000 + (time[2] - time[2] % 1000) / 1000))
call('HSET', KEYS[6], reservation, packed)
call('HDEL', source_key, reservation)
call('SREM', KEYS[4], reservation)
for _, bit in ipairs(bits) do
    call('SETBIT', bit[1], bit[2], 1)
end
call('HSET', KEYS[1], 'seq', seq, unpack(counters))
call('HSET', KEYS[7], user, table.concat(rest, ','))
call('HSET', KEYS[8], place, window .. ' -')
return {'done'}
