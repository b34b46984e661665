import { frees, raiseLife, reads, writes } from './script.ts';

// KEYS of all of them: head, turns, exchanges, summaries, workflows, blobs, words, forks (keys.ts).
// Fields of a head: s its state, at the time of its end, v counts its changes, n the latest changes by name, exp when it
// expires, texts how long the texts it refers to are kept, head and origin as ../records.ts has them.
// Each change has a name of its own (a nonce), by which one that comes again, because its answer was lost, is recognised.

/** ARGV: nonce, exp, head, origin, life, `revive` to take the place of a tombstone. Answers 1, or 0 when the id is taken. */
export const createThread = writes(`
if redis.call('EXISTS', KEYS[1]) == 1 then
  if redis.call('HGET', KEYS[1], 'n') == ARGV[1] then return 1 end
  if ARGV[6] ~= 'revive' or redis.call('HGET', KEYS[1], 's') == 'live' then return 0 end
  redis.call('UNLINK', KEYS[1])
end
redis.call('HSET', KEYS[1], 's', 'live', 'v', '1', 'n', ARGV[1], 'exp', ARGV[2], 'head', ARGV[3], 'origin', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1
`);

/**
 * KEYS: those, then the lease. ARGV: nonce, v, exp, head, texts, life of the head, life of the rest, who makes the change (may be
 * empty), now, then the parts of the change, each with its name first. Answers 0 when the thread is another one by now, 2 when
 * somebody else holds the lease, else 1 and the blobs to which it referred before.
 */
export const commitThread = writes(`${raiseLife}
local seen = redis.call('HMGET', KEYS[1], 's', 'v', 'n')
if seen[1] ~= 'live' then return {0} end
if string.find(seen[3], ARGV[1], 1, true) then return {1} end
if seen[2] ~= ARGV[2] then return {0} end
local lease = redis.call('HMGET', KEYS[9], 'holder', 'end')
if lease[1] and ARGV[8] ~= '' and lease[1] ~= ARGV[8] and tonumber(lease[2]) > tonumber(ARGV[9]) then return {2} end
redis.call('HSET', KEYS[1], 'exp', ARGV[3], 'head', ARGV[4], 'texts', ARGV[5], 'v', tonumber(ARGV[2]) + 1,
  'n', string.sub(ARGV[1] .. seen[3], 1, 300))
local answer = {1}
local at = 10
while ARGV[at] do
  local part, one, two = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if part == 'turn' then redis.call('RPUSH', KEYS[2], one)
  elseif part == 'joined' then redis.call('HSETNX', KEYS[3], one, two)
  elseif part == 'status' then redis.call('HSET', KEYS[3], one, two)
  elseif part == 'summary' then redis.call('RPUSH', KEYS[4], one)
  elseif part == 'workflow' then redis.call('HSET', KEYS[5], one, two)
  elseif part == 'no workflow' then redis.call('HDEL', KEYS[5], one)
  elseif part == 'words' then redis.call('HSET', KEYS[7], one, two)
  elseif redis.call('HSETNX', KEYS[6], one, two) == 0 then answer[#answer + 1] = one
  end
  at = at + 3
end
raise(KEYS[1], ARGV[6])
raise(KEYS[8], ARGV[6])
for index = 2, 7 do raise(KEYS[index], ARGV[7]) end
return answer
`);

/** Answers the head's fields, and for a live thread its turns, exchanges, summaries and workflows. */
export const readThread = reads(`
local head = redis.call('HMGET', KEYS[1], 's', 'at', 'exp', 'head', 'origin', 'v', 'texts')
if head[1] ~= 'live' then return {head} end
return {head, redis.call('LRANGE', KEYS[2], 0, -1), redis.call('HGETALL', KEYS[3]),
  redis.call('LRANGE', KEYS[4], 0, -1), redis.call('HGETALL', KEYS[5])}
`);

/**
 * Leaves a tombstone. ARGV: state, time, nonce, life of the tombstone, now, v. One that is to be deleted must be alive, one that
 * is to count as expired must not; where v is given, it must still be what it was. Answers 0 when it is not so, else 1 and the blobs to which it referred.
 */
export const endThread = frees(`
local seen = redis.call('HMGET', KEYS[1], 's', 'exp', 'n', 'v')
if seen[1] == ARGV[1] and seen[3] == ARGV[3] then return {1} end
if seen[1] ~= 'live' then return {0} end
if (tonumber(seen[2]) <= tonumber(ARGV[5])) ~= (ARGV[1] == 'expired') then return {0} end
if ARGV[6] ~= '' and seen[4] ~= ARGV[6] then return {0} end
local blobs = redis.call('HGETALL', KEYS[6])
for index = 2, #KEYS do redis.call('UNLINK', KEYS[index]) end
redis.call('HDEL', KEYS[1], 'v', 'exp', 'texts', 'head', 'origin')
redis.call('HSET', KEYS[1], 's', ARGV[1], 'at', ARGV[2], 'n', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {1, blobs}
`);

/** Keeps what a fork begins with. ARGV: life of the head, life of the rest. Answers its origin and its field texts. */
export const keepThread = frees(`${raiseLife}
if redis.call('HGET', KEYS[1], 's') ~= 'live' then return {} end
raise(KEYS[1], ARGV[1])
raise(KEYS[8], ARGV[1])
for index = 2, 7 do raise(KEYS[index], ARGV[2]) end
return redis.call('HMGET', KEYS[1], 'origin', 'texts')
`);

/** Remembers until when a thread's texts are kept; nothing for one that went meanwhile. ARGV: time. */
export const setTexts = writes(`
if redis.call('HGET', KEYS[1], 's') ~= 'live' then return 0 end
redis.call('HSET', KEYS[1], 'texts', ARGV[1])
return 1
`);

/**
 * The newest turns of done exchanges that hold all of the words. KEYS: words, exchanges. ARGV: how many, then words with a
 * space before each.
 */
export const searchThread = reads(`
local turns = redis.call('HGETALL', KEYS[1])
local found = {}
for at = 1, #turns, 2 do
  local all = true
  for word = 2, #ARGV do
    if not string.find(turns[at + 1], ARGV[word], 37, true) then
      all = false
      break
    end
  end
  if all and redis.call('HGET', KEYS[2], string.sub(turns[at + 1], 1, 36)) == 'done' then
    found[#found + 1] = tonumber(turns[at])
  end
end
table.sort(found, function(a, b) return a > b end)
for at = #found, tonumber(ARGV[1]) + 1, -1 do found[at] = nil end
return found
`);

/** KEYS: text, users. ARGV: user, life, text (absent: only if it is there). Answers 0 when there is no such text. */
export const referToBlob = writes(`${raiseLife}
if redis.call('EXISTS', KEYS[1]) == 0 then
  if not ARGV[3] then return 0 end
  redis.call('SET', KEYS[1], ARGV[3])
end
redis.call('SADD', KEYS[2], ARGV[1])
raise(KEYS[1], ARGV[2])
raise(KEYS[2], ARGV[2])
return 1
`);

/** KEYS: text, users. ARGV: user. The text goes with the last of them. */
export const dropBlob = frees(`
redis.call('SREM', KEYS[2], ARGV[1])
if redis.call('SCARD', KEYS[2]) == 0 then redis.call('UNLINK', KEYS[1], KEYS[2]) end
return 1
`);

/** KEYS: text, users. ARGV: life. */
export const keepBlob = frees(`${raiseLife}
raise(KEYS[1], ARGV[1])
raise(KEYS[2], ARGV[1])
return 1
`);
