-- SPDX-License-Identifier: Apache-2.0
-- look: the counters of a gate and what depends on them, in one atomic step; writes nothing (EVALSHA_RO is fine).
-- O(1) per item but for BITCOUNT: 125 kB, some 10 us, at a million units.
--
-- KEYS  1 ctl  2 pauses  3 held  4 unacked  5 settled  6 released  7 buyers  8 used  9 log  10.. free:ITEM, every item
-- Answers, all numbers as decimal text
--       unknown_gate NOW_MS            there is no gate of this format
--       look  2 now_ms (Redis's clock)  3 epoch  4 run_id  5 replication id  6 armed "0"|"1"  7 attested_until (ms)
--             8 limit per buyer  9 log sequence  10 held  11 unacked  12 settled  13 released (sizes, reservations)
--             14 loader  15 load_at (ms)  16 pages loaded  17 items
--             then six per item: initial, stock, held, settled (units), BITCOUNT of free, length of free in bytes
--             then every pause id
-- An error reply means that a key is not of its type: the gate is in doubt.
local call, format = redis.call, string.format
local time = call('TIME')
local now = format('%d', time[1] * 1000 + (time[2] - time[2] % 1000) / 1000)
local ctl = call('HMGET', KEYS[1], 'format', 'epoch', 'run_id', 'replid', 'armed', 'attested_until', 'limit', 'seq', 'loader',
    'load_at', 'load_page', 'items')
if ctl[1] ~= '1' then
    return {'unknown_gate', now}
end
for _, hash in ipairs({3, 5, 6, 7, 8}) do
    call('HLEN', KEYS[hash])
end
call('XLEN', KEYS[9])
local answer = {'look', now, ctl[2], ctl[3], ctl[4], ctl[5], ctl[6], ctl[7], ctl[8],
    format('%d', call('HLEN', KEYS[3])), format('%d', call('SCARD', KEYS[4])), format('%d', call('HLEN', KEYS[5])),
    format('%d', call('HLEN', KEYS[6])), ctl[9], ctl[10], ctl[11], ctl[12]}
for i = 0, #KEYS - 10 do
    local row = call('HMGET', KEYS[1], 'initial:' .. i, 'stock:' .. i, 'held:' .. i, 'settled:' .. i)
    for n = 1, 4 do
        answer[#answer + 1] = row[n] or ''
    end
    answer[#answer + 1] = format('%d', call('BITCOUNT', KEYS[10 + i]))
    answer[#answer + 1] = format('%d', call('STRLEN', KEYS[10 + i]))
end
for _, id in ipairs(call('HKEYS', KEYS[2])) do
    answer[#answer + 1] = id
end
return answer
