#!lua flags=allow-oom
-- SPDX-License-Identifier: Apache-2.0
-- extend: the deadline becomes the later of the old and the new one. What the ledger extends it has committed: a hold that is
-- not acknowledged yet is so from here on, with the ledger's deadline instead of the provisional one, and an `acknowledge` that
-- is still on its way no longer sets it back.
--
-- KEYS  1 ctl  2 pauses  3 held  4 unacked  5 settled  6 released  7 buyers  8 used  9 log
-- ARGV  1 seal "FORMAT RUN_ID REPLICATION_ID"  2 epoch of the order  3 reservation  4 new deadline (Unix ms)
-- Answers
--       done | already (the old one is as late, or it is settled or given back) | unknown_reservation | unknown_gate
--       doubt WHY (a pause was added, unless there are 16)
local call = redis.call
local ctl = call('HMGET', KEYS[1], 'seal', 'epoch')
if ctl[1] ~= ARGV[1] or ctl[2] ~= ARGV[2] then
    return {'unknown_gate'}
end
local packed = call('HGET', KEYS[3], ARGV[3])
if not packed then
    local gone = call('HEXISTS', KEYS[5], ARGV[3]) == 1 or call('HEXISTS', KEYS[6], ARGV[3]) == 1
    return {gone and 'already' or 'unknown_reservation'}
end
local head, deadline, tail = string.match(packed, '^(%S+ %d+ )(%d+)( .+)$')
if not head then
    local time = call('TIME')
    if call('HLEN', KEYS[2]) < 16 then
        call('HSET', KEYS[2], string.format('%020d%06d', time[1], time[2]), 'doubt: held row unreadable')
    end
    return {'doubt', 'held row unreadable'}
end
if call('SISMEMBER', KEYS[4], ARGV[3]) == 0 and tonumber(deadline) >= tonumber(ARGV[4]) then
    return {'already'}
end
call('HSET', KEYS[3], ARGV[3], head .. ARGV[4] .. tail)
call('SREM', KEYS[4], ARGV[3])
return {'done'}
