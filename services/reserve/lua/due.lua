-- SPDX-License-Identifier: Apache-2.0
-- due: one page of the holds that the ledger has not acknowledged, by how much of their time is left; writes nothing.
--
-- KEYS  1 ctl  2 unacked  3 held
-- ARGV  1 seal "FORMAT RUN_ID REPLICATION_ID"  2 epoch  3 cursor, "0" to begin  4 rows wanted in a page (a hint)
--       5 and 6: only holds with more than 5 and at most 6 milliseconds left (negative: over)
-- Answers
--       due CURSOR then two per hold: reservation, packed ("" when there is no such hold); CURSOR "0": that was the last page
--       unknown_gate
local call = redis.call
local ctl = call('HMGET', KEYS[1], 'seal', 'epoch')
if ctl[1] ~= ARGV[1] or ctl[2] ~= ARGV[2] then
    return {'unknown_gate'}
end
local time = call('TIME')
local now_ms = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
local page = call('SSCAN', KEYS[2], ARGV[3], 'COUNT', ARGV[4])
local answer = {'due', page[1]}
for _, reservation in ipairs(page[2]) do
    local packed = call('HGET', KEYS[3], reservation) or ''
    local deadline = string.match(packed, '^%S+ %d+ (%d+) ')
    local left_ms = deadline and deadline - now_ms
    if not left_ms or (left_ms > tonumber(ARGV[5]) and left_ms <= tonumber(ARGV[6])) then
        answer[#answer + 1], answer[#answer + 2] = reservation, packed
    end
end
return answer
