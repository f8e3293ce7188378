#!lua flags=allow-oom
-- SPDX-License-Identifier: Apache-2.0
-- pause: adds pause ids; the gate sells nothing while one is there. Works on an unarmed or missing gate and out of memory.
--
-- KEYS  1 pauses
-- ARGV  two per pause: id (26 characters), cause
-- Answers
--       done COUNT                     pauses now; at 64 no further ones are kept: it is closed, and a look tells them all
for i = 1, #ARGV, 2 do
    if redis.call('HLEN', KEYS[1]) < 64 then
        redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1])
    end
end
return {'done', string.format('%d', redis.call('HLEN', KEYS[1]))}
