-- SPDX-License-Identifier: Apache-2.0
-- trim: drops log entries that the ledger has stored.
--
-- KEYS  1 ctl  2 log
-- ARGV  1 seal "FORMAT RUN_ID REPLICATION_ID"  2 epoch  3 last stored sequence
-- Answers
--       done COUNT                     entries dropped
--       unknown_gate
local ctl = redis.call('HMGET', KEYS[1], 'seal', 'epoch', 'seq')
if ctl[1] ~= ARGV[1] or ctl[2] ~= ARGV[2] or tonumber(ARGV[3]) > tonumber(ctl[3]) then
    return {'unknown_gate'}
end
return {'done', string.format('%d', redis.call('XTRIM', KEYS[2], 'MINID', '=', string.format('%d-0', ARGV[3] + 1)))}
