-- SPDX-License-Identifier: Apache-2.0
-- arm: binds a loaded and verified gate to this Redis. It sells only once an attestation is there as well.
--
-- KEYS  1 ctl  2 pauses  3 held  4 unacked  5 settled  6 released  7 buyers  8 used  9 log  10.. free:ITEM, every item
-- ARGV  1 loader (daemon instance)  2 epoch  3 run id  4 replication id
-- Answers
--       armed RUN_ID REPLICATION_ID    now, or before by whomever
--       not_loaded                     no gate of this epoch, not verified, or another loader is at it
--       doubt WHY                      a key would expire
local call = redis.call
local ctl = call('HMGET', KEYS[1], 'format', 'epoch', 'armed', 'run_id', 'replid', 'loader', 'loaded')
if ctl[1] ~= '1' or ctl[2] ~= ARGV[2] then
    return {'not_loaded'}
elseif ctl[3] == '1' then
    return {'armed', ctl[4], ctl[5]}
elseif ctl[6] ~= ARGV[1] or ctl[7] ~= '1' or ctl[4] ~= ARGV[3] then
    return {'not_loaded'}
end
for i = 1, #KEYS do
    if call('PTTL', KEYS[i]) >= 0 then
        return {'doubt', 'a key of the gate would expire'}
    end
end
call('HSET', KEYS[1], 'seal', '1 ' .. ARGV[3] .. ' ' .. ARGV[4], 'armed', '1', 'run_id', ARGV[3], 'replid', ARGV[4], 'attested_until', '0')
return {'armed', ARGV[3], ARGV[4]}
