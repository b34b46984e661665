import { type ProcessMarks, processMarks } from '../../storage/process-mark.ts';
import { redisScript } from '../../storage/redis/script.ts';
import type { RedisParts } from '../../storage/redis/threads.ts';

export interface RedisLeases {
  lease(id: string, holder: string, ttlMs: number, now: number): Promise<boolean>;
  release(id: string, holder: string): Promise<void>;
}

/** The server forgets a lease this much later than its holder: their clocks need not agree. */
const marginMs = 2_000;

/** KEYS: lease. ARGV: holder, end, now, life, whom it may be taken from. Answers whose it is. */
const takeScript = redisScript(
  'writes',
  `
local seen = redis.call('HMGET', KEYS[1], 'holder', 'end')
if seen[1] and seen[1] ~= ARGV[1] and seen[1] ~= ARGV[5] and tonumber(seen[2]) > tonumber(ARGV[3]) then return seen[1] end
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'end', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return ARGV[1]
`,
);

/** KEYS: lease. ARGV: holder. */
const giveScript = redisScript(
  'frees',
  `
if redis.call('HGET', KEYS[1], 'holder') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`,
);

/**
 * A lease falls when its time is over by the clock of whoever asks, or by the server's own; that of a process that was killed
 * on this machine falls at once, where the system can tell.
 */
export function redisLeases({ wire, keys }: RedisParts, marks: ProcessMarks = processMarks()): RedisLeases {
  const named = (holder: string) => (marks.own === undefined ? holder : `${holder} ${marks.own}`);
  return {
    async lease(id, holder, ttlMs, now) {
      const name = keys.lease(id);
      const mine = named(holder);
      const facts = [mine, String(now + ttlMs), String(now), String(Math.ceil(ttlMs + marginMs))];
      const current = String(await wire.run(takeScript, [name], [...facts, '']));
      if (current === mine) return true;
      if (marks.stateOf(current.slice(current.indexOf(' ') + 1)) !== 'gone') return false;
      return String(await wire.run(takeScript, [name], [...facts, current])) === mine;
    },
    async release(id, holder) {
      await wire.run(giveScript, [keys.lease(id)], [named(holder)]);
    },
  };
}
