import { factValue, storedJson } from '../records.ts';
import type { Fact, Store } from '../store.ts';
import { frees, partsOf, reads, textsOf, writes } from './script.ts';
import type { RedisParts } from './threads.ts';

export interface RedisFacts extends Pick<Store, 'fact' | 'facts' | 'swapFact'> {
  dropExpiredFacts(now: number): Promise<void>;
}

// All facts stand in one slot, so that they have one count of versions and can be listed. KEYS of all scripts: where facts
// begin, which is also their index by name. Fields of a fact: v its version, e its end, b its value, n the last change by name.

/** ARGV: beginning of the names. */
const listScript = reads(`
local found = {}
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], '[' .. ARGV[1], '(' .. ARGV[1] .. '\\255', 'BYLEX')) do
  local fact = redis.call('HMGET', KEYS[1] .. ':' .. name, 'v', 'e', 'b')
  if fact[1] then found[#found + 1] = {name, fact[1], fact[2], fact[3]} end
end
return found
`);

/** ARGV: name, nonce, version, now, end, life, value (absent: it is removed). */
const swapScript = writes(`
local fact = KEYS[1] .. ':' .. ARGV[1]
local seen = redis.call('HMGET', fact, 'v', 'e', 'n')
if seen[3] == ARGV[2] then return 1 end
local version = seen[1]
if not version or tonumber(seen[2]) <= tonumber(ARGV[4]) then version = '0' end
if version ~= ARGV[3] then return 0 end
if not ARGV[7] then
  redis.call('DEL', fact)
  redis.call('ZREM', KEYS[1], ARGV[1])
  return 1
end
redis.call('HSET', fact, 'v', redis.call('INCR', KEYS[1] .. '.count'), 'e', ARGV[5], 'b', ARGV[7], 'n', ARGV[2])
redis.call('PEXPIRE', fact, ARGV[6])
redis.call('ZADD', KEYS[1], 0, ARGV[1])
return 1
`);

/** ARGV: now. */
const dropScript = frees(`
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local over = redis.call('HGET', KEYS[1] .. ':' .. name, 'e')
  if not over or tonumber(over) <= tonumber(ARGV[1]) then
    redis.call('DEL', KEYS[1] .. ':' .. name)
    redis.call('ZREM', KEYS[1], name)
  end
end
return 1
`);

/** The server forgets a fact this much later than whoever wrote it. */
const marginMs = 60_000;

export function redisFacts({ client, keys, random }: RedisParts): RedisFacts {
  const place = [keys.fact];
  return {
    fact: async (key, now) => liveFact(textsOf(await client.send('HMGET', `${keys.fact}:${key}`, 'v', 'e', 'b')), now),
    async facts(prefix, now) {
      const found = new Map<string, Fact>();
      for (const part of partsOf(await client.run(listScript, place, [prefix], 'bulk'))) {
        const [key = '', ...rest] = textsOf(part);
        const fact = liveFact(rest, now);
        if (fact) found.set(key, fact);
      }
      return found;
    },
    async swapFact({ key, version, value, expiresAt, now }) {
      const life = Math.ceil(Math.max(0, expiresAt - now) + marginMs);
      const facts = [key, random.uuid(), version, now, expiresAt, life];
      const args = value === undefined ? facts : [...facts, storedJson(value)];
      return Number(await client.run(swapScript, place, args)) === 1;
    },
    async dropExpiredFacts(now) {
      await client.run(dropScript, place, [now]);
    },
  };
}

const liveFact = ([version, end, body = '']: readonly (string | undefined)[], now: number): Fact | undefined =>
  version === undefined || Number(end) <= now ? undefined : { value: factValue(body), version: Number(version) };
