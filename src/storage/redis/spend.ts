import { uncontended } from '../../core/concurrency.ts';
import { isThreadId } from '../../core/ids.ts';
import { type SpendLedger, type SpendRow, type SpendScope, spendDays, spendThreadDays } from '../../core/usage.ts';
import { daysBefore, keyOf, rounding, rowOf, sumOf, withoutThread } from '../records.ts';
import type { RedisClient } from './cluster-client.ts';
import { ownerHash } from './keys.ts';
import { inBatches, packRecord, unlessDamaged, unpackRecord } from './records.ts';
import { allTextsOf, frees, raiseLife, reads, textsOf, writes } from './script.ts';
import type { RedisParts, RedisThreads } from './threads.ts';

// KEYS of all of them: where an owner's ledger begins, which is also the index of its rows, by `DAY KEY`. Beside it stand
// `:row:KEY` (body, v its version, n the latest changes by name, place in the order of
// the adding), the sums `:days` and `:threads`, and `:holds`
// (id → dollars, end and thread, separated by spaces).

const sums = `
local function used(place, day, thread, now)
  local ofDay = tonumber(redis.call('HGET', place .. ':days', day) or 0)
  local ofThread = tonumber(thread ~= '' and redis.call('HGET', place .. ':threads', thread) or 0)
  local holds = redis.call('HGETALL', place .. ':holds')
  local ends = {}
  for at = 2, #holds, 2 do
    local usd, over, of = string.match(holds[at], '^(%S+) (%S+) (.*)$')
    if tonumber(over) > tonumber(now) then
      ofDay = ofDay + tonumber(usd)
      ends[#ends + 1] = holds[at]
      if thread ~= '' and of == thread then ofThread = ofThread + tonumber(usd) end
    end
  end
  return ofDay, ofThread, ends
end
`;

/** ARGV: day, thread or '', now. Answers texts: what is used of both, and each hold that counts. */
export const usedSpend = reads(`${sums}
local ofDay, ofThread, texts = used(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
table.insert(texts, 1, string.format('%.17g', ofThread))
table.insert(texts, 1, string.format('%.17g', ofDay))
return texts
`);

/** ARGV: day, thread or '', now, id, dollars, end, life, most of the day or '', most of the thread or ''. */
export const holdSpend = writes(`${raiseLife}${sums}
local holds = KEYS[1] .. ':holds'
if redis.call('HEXISTS', holds, ARGV[4]) == 0 then
  local ofDay, ofThread = used(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
  local usd = tonumber(ARGV[5])
  if ARGV[8] ~= '' and ofDay + usd > tonumber(ARGV[8]) then return 0 end
  if ARGV[9] ~= '' and ofThread + usd > tonumber(ARGV[9]) then return 0 end
end
redis.call('HSET', holds, ARGV[4], ARGV[5] .. ' ' .. ARGV[6] .. ' ' .. ARGV[2])
raise(holds, ARGV[7])
return 1
`);

/**
 * ARGV: nonce, key, version, body, day, dollars more, thread or '', hold or '', life, then the key and thread of a row that
 * went into this one. Answers 0 when the row is another one by now.
 */
export const putSpend = writes(`${raiseLife}
local row = KEYS[1] .. ':row:' .. ARGV[2]
local seen = redis.call('HMGET', row, 'v', 'n')
local names = seen[2] or ''
if string.find(names, ARGV[1], 1, true) then return 1 end
if (seen[1] or '0') ~= ARGV[3] then return 0 end
redis.call('HSET', row, 'v', tonumber(ARGV[3]) + 1, 'n', string.sub(ARGV[1] .. ' ' .. names, 1, 1000), 'body', ARGV[4])
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
`);

/** ARGV: key, day, thread or ''. */
export const dropSpend = frees(`
redis.call('UNLINK', KEYS[1] .. ':row:' .. ARGV[1])
redis.call('ZREM', KEYS[1], ARGV[2] .. ' ' .. ARGV[1])
redis.call('HDEL', KEYS[1] .. ':days', ARGV[2])
if ARGV[3] ~= '' then redis.call('HDEL', KEYS[1] .. ':threads', ARGV[3]) end
return 1
`);

/** ARGV: now. */
export const freeHolds = frees(`
local holds = redis.call('HGETALL', KEYS[1] .. ':holds')
for at = 1, #holds, 2 do
  if tonumber(string.match(holds[at + 1], '^%S+ (%S+)')) <= tonumber(ARGV[1]) then
    redis.call('HDEL', KEYS[1] .. ':holds', holds[at])
  end
end
return 1
`);

export interface RedisSpend extends SpendLedger {
  /** Drops old rows, and the threads of those whose thread is gone. */
  prune(ownerHash: string, now: number): Promise<void>;
}

/** The server forgets what was put aside this much later than whoever did it. */
const marginMs = 60_000;

const lifeMs = (spendDays + 30) * 86_400_000;

/** A row as it is replaced, if it is still what was seen. */
interface Change {
  row: SpendRow;
  /** What the change is called; absent: a new name. */
  id?: string | undefined;
  /** Frees what was put aside under it. */
  hold?: string;
  /** The row that goes into it, and whose sums count already. */
  instead?: SpendRow;
}

/** The ledger: all of an owner's rows, sums and holds in one slot. */
export function redisSpend({ client, keys, random }: RedisParts, threads: Pick<RedisThreads, 'find'>): RedisSpend {
  const placeOf = (owner: string) => keys.spend(ownerHash(owner));

  async function put(place: string, { row, id: nonce = random.uuid(), hold = '', instead }: Change): Promise<void> {
    const key = keyOf(row);
    await uncontended('The ledger', async () => {
      const before = await seenRow(client, place, key);
      const body = packRecord({ kind: 'spend', row: before.row ? sumOf(before.row, row) : row });
      const usd = instead ? 0 : row.costUsd;
      const facts = [nonce, key, before.version, body, row.day, usd, row.thread ?? '', hold, lifeMs];
      const rest = instead ? [keyOf(instead), instead.thread ?? ''] : [];
      return Number(await client.run(putSpend, [place], [...facts, ...rest])) === 1 || undefined;
    });
  }

  return {
    async add(entry, hold) {
      if (entry) {
        await client.send('SADD', keys.owners, ownerHash(entry.owner));
        await put(placeOf(entry.owner), { row: rowOf(entry), id: entry.id, hold });
      } else if (hold !== undefined) {
        const owner = await client.send('GET', keys.hold(hold));
        if (owner !== null) await client.send('HDEL', `${keys.spend(String(owner))}:holds`, hold);
      }
    },
    async hold({ id, owner, day, thread, now, usd, expiresAt, dayLimit, threadLimit }) {
      const life = Math.ceil(Math.max(1, expiresAt - now) + marginMs);
      // First, because whoever frees it knows no more than its name.
      await client.send('SET', keys.hold(id), ownerHash(owner), 'PX', life);
      const limits = [dayLimit, threadLimit].map(limit => (limit === undefined ? '' : limit + rounding));
      const facts = [day, thread ?? '', now, id, usd, expiresAt, life, ...limits];
      return Number(await client.run(holdSpend, [placeOf(owner)], facts)) === 1;
    },
    async used({ owner, day, thread, now }: SpendScope) {
      const sums = await client.run(usedSpend, [placeOf(owner)], [day, thread ?? '', now]);
      const [ofDay = 0, ofThread = 0, ...holds] = allTextsOf(sums);
      const held = holds.map(text => {
        const [usd, at, of] = text.split(' ');
        return { usd: Number(usd), at: Number(at), ...(of && { thread: of }) };
      });
      return { day: Number(ofDay), thread: Number(ofThread), held: held.sort((a, b) => a.at - b.at) };
    },
    async rows({ owner, from, thread }) {
      const rows = await rowsSince(client, placeOf(owner), from);
      return rows.filter(row => row.owner === owner && (thread === undefined || row.thread === thread));
    },
    async prune(owner, now) {
      const place = keys.spend(owner);
      await client.run(freeHolds, [place], [now]);
      const old = `(${daysBefore(now, spendDays)}`;
      for (const name of allTextsOf(await client.fetch('ZRANGE', place, '-', old, 'BYLEX'))) {
        const [day = '', key = ''] = name.split(' ');
        const { row } = await seenRow(client, place, key);
        await client.run(dropSpend, [place], [key, day, row?.thread ?? '']);
      }
      const late = daysBefore(now, spendThreadDays);
      for (const row of await rowsSince(client, place, '')) {
        const { thread } = row;
        if (thread === undefined || row.day >= late) continue;
        const found = isThreadId(thread) ? await unlessDamaged(threads.find(thread)) : { state: 'unknown' };
        if (found && found.state !== 'stored') await put(place, { row: withoutThread(row), instead: row });
      }
    },
  };
}

/** Rows of a day are shown in the order in which they came. */
async function seenRow(client: RedisClient, place: string, key: string) {
  const found = await client.send('HMGET', `${place}:row:${key}`, 'body', 'v', 'place');
  const [body, version = '0', order] = textsOf(found);
  // A sum that is damaged can't be gone on with: what is known counts from here.
  return { row: unpackRecord(body, 'spend')?.row, version, order: Number(order ?? 0) };
}

async function rowsSince(client: RedisClient, place: string, from: string): Promise<SpendRow[]> {
  const names = allTextsOf(await client.fetch('ZRANGE', place, from === '' ? '-' : `[${from}`, '+', 'BYLEX'));
  const found = await inBatches(names, name => seenRow(client, place, name.slice(name.indexOf(' ') + 1)));
  // A damaged row is missing from the sums; it does not hide the others.
  const rows = found.flatMap(({ row, order }) => (row ? [{ row, order }] : []));
  rows.sort((a, b) => (a.row.day === b.row.day ? a.order - b.order : a.row.day < b.row.day ? -1 : 1));
  return rows.map(({ row }) => row);
}
