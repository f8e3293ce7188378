-- SPDX-License-Identifier: Apache-2.0
-- What is commonly written for this job, as the measure: a counter, a buyers' hash, one hash per hold, a set of holds and an
-- expiry index, with a stream entry as the log. It gives no unit an identity and proves nothing.
--
-- KEYS  1 stock  2 buyers  3 hold  4 holds  5 expiry  6 log  7 idempotency  8 sale
-- ARGV  1 user  2 reservation  3 deadline (ms)
if redis.call('HGET', KEYS[8], 'state') == 'paused' then
    return {'paused'}
end
if redis.call('EXISTS', KEYS[7]) == 1 then
    return {'replay', redis.call('GET', KEYS[7])}
end
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then
    return {'limit'}
end
local stock = tonumber(redis.call('GET', KEYS[1]))
if not stock or stock <= 0 then
    return {'sold_out'}
end
local left = redis.call('DECR', KEYS[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[3], 'user', ARGV[1], 'expires', ARGV[3], 'state', 'held')
redis.call('SADD', KEYS[4], ARGV[2])
redis.call('ZADD', KEYS[5], ARGV[3], ARGV[2])
redis.call('SET', KEYS[7], ARGV[2])
redis.call('XADD', KEYS[6], '*', 'kind', 'hold', 'reservation', ARGV[2], 'stock_after', left, 'source', 'bench')
return {'held', left}
