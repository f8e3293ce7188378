-- SPDX-License-Identifier: Apache-2.0
-- look: the checker's own O(1) look at a gate, in one atomic step; called with EVAL_RO, writes nothing. The gate's pauses are told
-- while there are at most 64: the first ones are known by the time there are more.
-- BITCOUNT is the one part that grows: 125 kB, some 10 us, at a million units.
--
-- KEYS  1 ctl  2 held  3 unacked  4 settled  5 released  6 buyers  7 used  8 pauses  9 log  10.. free:ITEM, every item
-- Answers, numbers as decimal text, a missing field as ""
--       none NOW_MS      there is no ctl
--       look  2 now_ms (Redis's clock)  3 format  4 epoch  5 run id  6 replication id  7 armed  8 log sequence  9 items
--             then five per item: initial, stock, held, settled (units), BITCOUNT of free
--             then two per pause: id, cause
-- An error reply means that a key is not of its type.
local call, format = redis.call, string.format
local time = call('TIME')
local now = format('%d', time[1] * 1000 + (time[2] - time[2] % 1000) / 1000)
call('SCARD', KEYS[3])
call('XLEN', KEYS[9])
for _, hash in ipairs({2, 4, 5, 6, 7, 8}) do
    call('HLEN', KEYS[hash])
end
if call('HLEN', KEYS[1]) == 0 then
    return {'none', now}
end
local answer = {'look', now}
for _, field in ipairs(call('HMGET', KEYS[1], 'format', 'epoch', 'run_id', 'replid', 'armed', 'seq', 'items')) do
    answer[#answer + 1] = field or ''
end
for item = 0, #KEYS - 10 do
    local row = call('HMGET', KEYS[1], 'initial:' .. item, 'stock:' .. item, 'held:' .. item, 'settled:' .. item)
    for n = 1, 4 do
        answer[#answer + 1] = row[n] or ''
    end
    answer[#answer + 1] = format('%d', call('BITCOUNT', KEYS[10 + item]))
end
if call('HLEN', KEYS[8]) <= 64 then
    for _, text in ipairs(call('HGETALL', KEYS[8])) do
        answer[#answer + 1] = text
    end
end
return answer
