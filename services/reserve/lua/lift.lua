#!lua flags=allow-oom
-- SPDX-License-Identifier: Apache-2.0
-- lift: removes pause ids. Only for ids that the ledger's state lists as lifted.
--
-- KEYS  1 pauses
-- ARGV  ids
-- Answers
--       done COUNT                     pauses that remain
for i = 1, #ARGV do
    redis.call('HDEL', KEYS[1], ARGV[i])
end
return {'done', string.format('%d', redis.call('HLEN', KEYS[1]))}
