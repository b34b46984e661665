import { raiseLife, redisScript } from '../../storage/redis/script.ts';

// KEYS of all of them: where an owner's ledger begins, which is also the index of its rows, by `DAY KEY`. Beside it stand
// `:row:KEY` (body, v its version, n the latest change by name, place in the order of
// the adding), the sums `:days` and `:threads`, and `:holds`
// (id → dollars, end and thread, separated by spaces).

const sums = `
local function used(place, day, thread, now)
  local ofDay = tonumber(redis.call('HGET', place .. ':days', day) or 0)
  local ofThread = tonumber(thread ~= '' and redis.call('HGET', place .. ':threads', thread) or 0)
  local holds = redis.call('HGETALL', place .. ':holds')
  for at = 2, #holds, 2 do
    local usd, over, of = string.match(holds[at], '^(%S+) (%S+) (.*)$')
    if tonumber(over) > tonumber(now) then
      ofDay = ofDay + tonumber(usd)
      if thread ~= '' and of == thread then ofThread = ofThread + tonumber(usd) end
    end
  end
  return ofDay, ofThread
end
`;

/** ARGV: day, thread or '', now. Answers two texts. */
export const usedSpend = redisScript(
  'reads',
  `${sums}
local ofDay, ofThread = used(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
return {string.format('%.17g', ofDay), string.format('%.17g', ofThread)}
`,
);

/** ARGV: day, thread or '', now, id, dollars, end, life, most of the day or '', most of the thread or ''. */
export const holdSpend = redisScript(
  'writes',
  `${raiseLife}${sums}
local holds = KEYS[1] .. ':holds'
if redis.call('HEXISTS', holds, ARGV[4]) == 1 then return 1 end
local ofDay, ofThread = used(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
local usd = tonumber(ARGV[5])
if ARGV[8] ~= '' and ofDay + usd > tonumber(ARGV[8]) then return 0 end
if ARGV[9] ~= '' and ofThread + usd > tonumber(ARGV[9]) then return 0 end
redis.call('HSET', holds, ARGV[4], ARGV[5] .. ' ' .. ARGV[6] .. ' ' .. ARGV[2])
raise(holds, ARGV[7])
return 1
`,
);

/**
 * ARGV: nonce, key, version, body, day, dollars more, thread or '', hold or '', life, then the key and thread of a row that
 * went into this one. Answers 0 when the row is another one by now.
 */
export const putSpend = redisScript(
  'writes',
  `${raiseLife}
local row = KEYS[1] .. ':row:' .. ARGV[2]
local seen = redis.call('HMGET', row, 'v', 'n')
if seen[2] == ARGV[1] then return 1 end
if (seen[1] or '0') ~= ARGV[3] then return 0 end
redis.call('HSET', row, 'v', tonumber(ARGV[3]) + 1, 'n', ARGV[1], 'body', ARGV[4])
redis.call('HSETNX', row, 'place', redis.call('ZCARD', KEYS[1]))
redis.call('ZADD', KEYS[1], 0, ARGV[5] .. ' ' .. ARGV[2])
redis.call('HINCRBYFLOAT', KEYS[1] .. ':days', ARGV[5], ARGV[6])
if ARGV[7] ~= '' then redis.call('HINCRBYFLOAT', KEYS[1] .. ':threads', ARGV[7], ARGV[6]) end
if ARGV[8] ~= '' then redis.call('HDEL', KEYS[1] .. ':holds', ARGV[8]) end
if ARGV[10] then
  redis.call('UNLINK', KEYS[1] .. ':row:' .. ARGV[10])
  redis.call('ZREM', KEYS[1], ARGV[5] .. ' ' .. ARGV[10])
  redis.call('HDEL', KEYS[1] .. ':threads', ARGV[11])
end
for _, key in ipairs({row, KEYS[1], KEYS[1] .. ':days', KEYS[1] .. ':threads'}) do raise(key, ARGV[9]) end
return 1
`,
);

/** ARGV: key, day, thread or ''. */
export const dropSpend = redisScript(
  'frees',
  `
redis.call('UNLINK', KEYS[1] .. ':row:' .. ARGV[1])
redis.call('ZREM', KEYS[1], ARGV[2] .. ' ' .. ARGV[1])
redis.call('HDEL', KEYS[1] .. ':days', ARGV[2])
if ARGV[3] ~= '' then redis.call('HDEL', KEYS[1] .. ':threads', ARGV[3]) end
return 1
`,
);

/** ARGV: now. */
export const freeHolds = redisScript(
  'frees',
  `
local holds = redis.call('HGETALL', KEYS[1] .. ':holds')
for at = 1, #holds, 2 do
  if tonumber(string.match(holds[at + 1], '^%S+ (%S+)')) <= tonumber(ARGV[1]) then
    redis.call('HDEL', KEYS[1] .. ':holds', holds[at])
  end
end
return 1
`,
);
