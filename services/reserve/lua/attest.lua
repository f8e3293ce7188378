-- SPDX-License-Identifier: Apache-2.0
-- attest: the checker proved the gate right at its own clock's gate_time; the gate may sell for a lease from then.
--
-- KEYS  1 ctl
-- ARGV  1 seal "FORMAT RUN_ID REPLICATION_ID" of this connection  2 epoch  3 run id  4 replication id  the proof rests on
--       5 gate time of the round's first look (Unix ms, Redis's clock)  6 lease (ms)
-- Answers
--       attested UNTIL_MS              never earlier than before, unless the clock went back
--       unknown_gate                   not the armed Redis and epoch
-- A gate time ahead of Redis's clock counts as now: no message can buy more than one lease. Nor can a clock that goes back:
-- what then lies more than one lease ahead is cut to one, and until then `hold` sees that it is earlier than `attested_at`.
local call, format = redis.call, string.format
local ctl = call('HMGET', KEYS[1], 'seal', 'epoch', 'run_id', 'replid', 'attested_until')
if ctl[1] ~= ARGV[1] or ctl[2] ~= ARGV[2] or ctl[3] ~= ARGV[3] or ctl[4] ~= ARGV[4] then
    return {'unknown_gate'}
end
local time = call('TIME')
local now_ms = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
local until_ms = math.max(tonumber(ctl[5]), math.min(tonumber(ARGV[5]), now_ms) + ARGV[6])
until_ms = math.min(until_ms, now_ms + ARGV[6])
call('HSET', KEYS[1], 'attested_until', format('%d', until_ms), 'attested_at', format('%d', now_ms))
return {'attested', format('%d', until_ms)}
