#!lua flags=allow-oom
-- SPDX-License-Identifier: Apache-2.0
-- settle: the ledger confirmed this reservation; its units are sold.
--
-- KEYS  1 ctl  2 pauses  3 held  4 unacked  5 settled  6 released  7 buyers  8 used  9 log  10.. free:ITEM, every item
-- ARGV  1 seal "FORMAT RUN_ID REPLICATION_ID"  2 epoch of the verdict  3 reservation  4 source (daemon instance)
-- Answers
--       done | already | unknown_reservation | unknown_gate
--       doubt WHY                      the gate contradicts itself: nothing moved, a pause was added (unless there are 16)
-- What was given back since stays so, and is "already": a sold reservation may be returned while an older order to settle it
-- is still on its way. That a return had its verdict is the checker's to prove.
-- Works while paused and out of memory. An error reply means that nothing was written.
local call, format = redis.call, string.format
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
local packed = call('HGET', KEYS[3], reservation)
local settled, released = call('HEXISTS', KEYS[5], reservation), call('HEXISTS', KEYS[6], reservation)
if released == 1 then
    return (packed or settled == 1) and doubt('live and given back') or {'already'}
elseif not packed then
    return {settled == 1 and 'already' or 'unknown_reservation'}
elseif settled == 1 then
    return doubt('held and settled')
end

local units_text = string.match(packed, '^%S+ %d+ %d+ %S+ (%S+) %S+ .+$')
local counters, stock_after = {}, 0
for item, list in string.gmatch(units_text or '', '(%d+):([%d,]+)') do
    local row = call('HMGET', KEYS[1], 'held:' .. item, 'settled:' .. item)
    local _, commas = string.gsub(list, ',', ',')
    if not row[1] or tonumber(row[1]) < commas + 1 then
        return doubt('fewer held than this reservation')
    end
    local last = #counters
    counters[last + 1], counters[last + 2] = 'held:' .. item, format('%d', row[1] - commas - 1)
    counters[last + 3], counters[last + 4] = 'settled:' .. item, format('%d', row[2] + commas + 1)
end
if #counters == 0 then
    return doubt('held row unreadable')
end
for i = 10, #KEYS do
    stock_after = stock_after + call('HGET', KEYS[1], 'stock:' .. i - 10)
end
call('SCARD', KEYS[4])

-- XADD comes first: it refuses a wrong type or a sequence that does not grow before anything has moved.
local seq = format('%d', ctl[3] + 1)
call('XADD', KEYS[9], seq .. '-0', 'kind', 'settle', 'reservation', reservation, 'units', units_text, 'stock_after',
    format('%d', stock_after), 'source', ARGV[4], 'at_ms', format('%d', time[1] * 1000 + (time[2] - time[2] % 1000) / 1000))
call('HSET', KEYS[5], reservation, packed)
call('HDEL', KEYS[3], reservation)
call('SREM', KEYS[4], reservation)
call('HSET', KEYS[1], 'seq', seq, unpack(counters))
return {'done'}
