#!lua flags=allow-oom
-- SPDX-License-Identifier: Apache-2.0
-- pause: adds pause ids; the gate sells nothing while one is there. Works on an unarmed or missing gate and out of memory.
--
-- KEYS  1 pauses
-- ARGV  two per pause: id (26 characters), cause
-- Answers
--       done COUNT                     pauses now; at 1,024 no further ones are kept (it is closed anyway)
for i = 1, #ARGV, 2 do
    if redis.call('HLEN', KEYS[1]) < 1024 then
        redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1])
    end
end
return {'done', string.format('%d', redis.call('HLEN', KEYS[1]))}
