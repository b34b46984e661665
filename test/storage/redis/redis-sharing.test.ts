import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemEnvironment } from '../../../src/app/system-environment.ts';
import { storageError } from '../../../src/core/errors.ts';
import { threadId } from '../../../src/core/ids.ts';
import { processMarks } from '../../../src/storage/process-mark.ts';
import { type RedisClient, redisClient } from '../../../src/storage/redis/cluster-client.ts';
import { ownerHash, redisKeys } from '../../../src/storage/redis/keys.ts';
import { redisBlobs } from '../../../src/storage/redis/records.ts';
import { putSpend, redisSpend } from '../../../src/storage/redis/spend.ts';
import { redisIndex } from '../../../src/storage/redis/thread-index.ts';
import { commitThread } from '../../../src/storage/redis/thread-scripts.ts';
import { redisThreads } from '../../../src/storage/redis/threads.ts';
import { createStoredState } from '../../../src/storage/shared-state.ts';
import type { Store } from '../../../src/storage/store.ts';
import { sharedStateSuite } from '../../contracts/shared-state-suite.ts';
import {
  changeOf,
  hashOf,
  headOf,
  hour,
  jobOf,
  newExchangeId,
  newThreadId,
  start,
  threadWith,
  turnOf,
} from '../../contracts/store-fixtures.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';
import { redisStore } from '../../support/redis-store.ts';
import { startSqliteProcess } from '../../support/sqlite-process.ts';

let server: RedisServer;
let prefix: string;
let one: Store;
let other: Store;

beforeAll(async () => {
  server = await startRedis('--appendfsync', 'always');
});
afterAll(() => server.dispose());

beforeEach(() => {
  prefix = `${randomUUID()}:`;
  one = redisStore(server.url, { prefix });
  other = redisStore(server.url, { prefix });
});
afterEach(async () => {
  await Promise.all([one.close(), other.close()]);
});

sharedStateSuite('stored in Redis', async clock => createStoredState(one, clock));

const place = () => `${server.url}#${prefix}`;

describe('two clients of one Redis', () => {
  it('see the same threads, leases, facts and changes', async () => {
    const before = await other.mark();
    const { id } = await threadWith(one, ['hello']);
    expect(await other.mark()).not.toBe(before);
    expect(await other.commit(id, changeOf(1, { turns: [turnOf(2)] }))).toBe(2);
    await expect(one.commit(id, changeOf(1, { turns: [turnOf(2)] }))).rejects.toMatchObject({
      details: { class: 'conflict', data: { seq: 2 } },
    });
    expect(await one.lease(id, 'one', 1_000, start)).toBe(true);
    expect(await other.lease(id, 'other', 1_000, start + 999)).toBe(false);
    await one.release(id, 'one');
    expect(await other.lease(id, 'other', 1_000, start)).toBe(true);
    await one.swapFact({ key: 'a/b', version: 0, value: { n: 1 }, expiresAt: start + 1_000, now: start });
    expect((await other.facts('a/', start)).size).toBe(1);
  });

  it('see nothing of others with another prefix', async () => {
    const { id } = await threadWith(one, ['hello']);
    const stranger = redisStore(server.url);
    expect(await stranger.head(id, start)).toEqual({ state: 'unknown' });
    expect(await stranger.list({ owner: 'local', limit: 5, now: start })).toEqual([]);
    await stranger.close();
  });

  it('lose no turn and number none twice when four processes write to one thread', async () => {
    const { id } = await threadWith(one, []);
    const writers = [1, 2, 3, 4].map(n => startSqliteProcess('append', place(), id, '40', `writer ${n}`));
    for (const { ended } of writers) expect(await ended).toEqual({ code: 0, errors: '' });
    const found = await one.read(id, start);
    if (found.state !== 'live') throw new Error(found.state);
    expect(found.value.turns.map(turn => turn.seq)).toEqual(Array.from({ length: 160 }, (_, index) => index + 1));
    expect(new Set(found.value.turns.map(turn => turn.content)).size).toBe(160);
  });

  it('lose no turn that was acknowledged before one was killed', async () => {
    for (let round = 0; round < 4; round++) {
      const { child, lines, said, ended } = startSqliteProcess('write', place());
      await said(line => Number(line) >= 5 + round * 9);
      child.kill('SIGKILL');
      await ended;
      const [thread = '', ...acknowledged] = lines();
      const found = await one.read(threadId(thread), start);
      if (found.state !== 'live') throw new Error(found.state);
      const { turns } = found.value;
      expect(turns.length).toBeGreaterThanOrEqual(Number(acknowledged.at(-1)));
      for (const [index, turn] of turns.entries()) expect(turn.content).toMatch(new RegExp(`^turn ${index + 1} x*$`));
    }
  });

  it('do not wait for the lease of a process that was killed', async () => {
    const holder = startSqliteProcess('lease', place(), 'held');
    await holder.said(line => line === 'true');
    expect(await one.lease('held', 'me', 1_000, start)).toBe(false);
    holder.child.kill('SIGKILL');
    await holder.ended;
    expect(await one.lease('held', 'me', 1_000, start)).toBe(true);
  });
});

it('names what it keeps in the same way in every release, or what an earlier one wrote would be gone', () => {
  const keys = redisKeys('p:');
  const { workspace, ...lists } = keys.owner(ownerHash('local'));
  const owner = 'p:{owner:25bf8e1a2393f1108d37029b3df55932}';
  expect([...keys.thread('t').all, ...Object.values(lists), workspace('/w')]).toEqual([
    ...['p:{t}', 'p:{t}:turns', 'p:{t}:exchanges', 'p:{t}:summaries', 'p:{t}:workflows', 'p:{t}:blobs', 'p:{t}:words'],
    ...['p:{t}:forks', `${owner}:threads`, `${owner}:ends`, `${owner}:gone`, `${owner}:jobs`],
    `${owner}:in:d1bb8ca354673cd575d31d952490058c`,
  ]);
  expect([...keys.blob('s'), keys.job('j'), keys.lease('t'), keys.spend('o'), keys.hold('h')]).toEqual([
    ...['p:{blob:s}', 'p:{blob:s}:users', 'p:{job:j}', 'p:{t}:lease', 'p:{owner:o}:spend', 'p:{hold:h}'],
  ]);
  expect([keys.owners, keys.fact, keys.mark]).toEqual(['p:{owners}', 'p:{fact}', 'p:{mark}']);
});

describe('the server', () => {
  const ttl = async (key: string) => Number(await server.command('PTTL', key));

  it('forgets by itself what nobody needs any more, and remembers for longer that a thread was there', async () => {
    const blob = { sha256: hashOf('text'), text: 'text' };
    const { id } = await threadWith(one, ['a'], { expiresAt: start + hour });
    await one.commit(id, changeOf(1, { blobs: [blob], updatedAt: start, expiresAt: start + hour }));
    const keys = redisKeys(prefix);
    const [head = '', turns = ''] = keys.thread(id).all;
    const day = 24 * hour;
    expect(await ttl(turns)).toBeGreaterThan(hour);
    expect(await ttl(turns)).toBeLessThanOrEqual(7 * day + hour);
    expect(await ttl(head)).toBeGreaterThan(89 * day);
    expect(await ttl(head)).toBeLessThan(91 * day);
    const all = await server.command('KEYS', `${prefix}*`);
    const without = [];
    for (const key of Array.isArray(all) ? all.map(String) : []) if ((await ttl(key)) === -1) without.push(key);
    expect(without.sort()).toEqual([keys.mark, keys.owners].sort());
    await one.swapFact({ key: 'k', version: 0, value: { n: 1 }, expiresAt: start + hour, now: start });
    expect(await ttl(`${keys.fact}:k`)).toBeLessThan(2 * hour);
  });

  it('keeps the texts of a thread that is used again and again', async () => {
    const blob = { sha256: hashOf('kept'), text: 'kept' };
    const { id } = await threadWith(one, ['a'], { expiresAt: start + hour });
    await one.commit(id, changeOf(1, { blobs: [blob], updatedAt: start, expiresAt: start + hour }));
    const [text] = redisKeys(prefix).blob(blob.sha256);
    await server.command('PEXPIRE', text, '60000');
    const much = 30 * 24 * hour;
    await one.commit(id, changeOf(1, { updatedAt: start + hour / 2, expiresAt: start + much }));
    expect(await ttl(text)).toBeGreaterThan(much);
  });

  it('keeps what a fork begins with for as long as the fork', async () => {
    const parent = await threadWith(one, ['a', 'b'], { expiresAt: start + hour });
    const much = 100 * 24 * hour;
    const child = headOf({ parent: { thread: parent.id, seq: 2 }, seq: 2, expiresAt: start + hour });
    await one.create(child);
    await one.commit(child.id, changeOf(2, { turns: [turnOf(3)], updatedAt: start, expiresAt: start + much }));
    expect(await ttl(redisKeys(prefix).thread(parent.id).all[1]!)).toBeGreaterThan(much);
  });

  it('counts a thread whose turns are gone as expired when its time is over, else as damaged', async () => {
    const now = Date.now();
    const over = await threadWith(one, ['a'], {
      updatedAt: now - 2 * hour,
      createdAt: now - 2 * hour,
      expiresAt: now - hour,
    });
    const alive = await threadWith(one, ['a'], { updatedAt: now, expiresAt: now + hour });
    for (const { id } of [over, alive]) await server.command('DEL', redisKeys(prefix).thread(id).all[1]!);
    expect(await one.read(over.id, 0)).toEqual({ state: 'expired', expiredAt: now - hour });
    await expect(one.read(alive.id, 0)).rejects.toMatchObject({ details: { class: 'corrupt' } });
  });

  it('gives a row of the ledger up that others change again and again', async () => {
    const { clock, random } = systemEnvironment();
    const parts = { url: server.url, patienceMs: 5_000, clock, random, marks: processMarks() };
    const real = redisClient({ ...parts, onWarning: () => undefined });
    const run: RedisClient['run'] = async (script, ...rest) => (script === putSpend ? 0 : real.run(script, ...rest));
    const find = async () => ({ state: 'unknown' }) as const;
    const spend = redisSpend({ ...parts, client: { ...real, run }, keys: redisKeys(prefix) }, { find });
    const usage = { input: 1, output: 1, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
    const entry = { owner: 'local', at: start, tool: 'chat', provider: 'openai', model: 'm', usage, costUsd: 1 };
    await expect(spend.add(entry)).rejects.toMatchObject({ kind: 'storage' });
    real.close();
  });

  it('knows the time', async () => {
    expect(Math.abs((await one.time!()) - Date.now())).toBeLessThan(60_000);
  });

  it('frees with a prune what was put aside for longer than it lasts', async () => {
    const hold = { owner: 'local', day: '2026-01-31', id: 'h', usd: 1, now: start, expiresAt: start + 5 };
    expect(await one.spend.hold(hold)).toBe(true);
    await one.spend.add(undefined, 'other');
    await server.command('SADD', redisKeys(prefix).owners, ownerHash('local'));
    await one.prune(start + 5);
    expect(await server.command('HLEN', `${redisKeys(prefix).spend(ownerHash('local'))}:holds`)).toBe(0);
  });

  it('finds words in the turns of a fork', async () => {
    const parent = await threadWith(one, ['a', 'b']);
    const exchange = newExchangeId();
    const child = headOf({ parent: { thread: parent.id, seq: 2 }, seq: 2 });
    await one.create(child);
    const turns = [turnOf(3, { content: 'cherry', exchange })];
    await one.commit(child.id, changeOf(2, { turns, exchange: { id: exchange, status: 'done' } }));
    const hits = await one.search({ owner: 'local', text: 'cherry', limit: 5, now: start });
    expect(hits).toMatchObject([{ thread: { id: child.id }, seq: 3 }]);
  });

  it('names the turn that is gone', async () => {
    const { id } = await threadWith(one, ['a', 'b', 'c']);
    await server.command('RPOP', redisKeys(prefix).thread(id).all[1]!);
    await expect(one.read(id, start)).rejects.toThrow('turn 3 is damaged');
  });

  it('goes by what heads say where its lists say something else, and puts those right', async () => {
    const older = await threadWith(one, ['apple'], { updatedAt: start, expiresAt: start + hour });
    const newer = await threadWith(one, ['apple'], { updatedAt: start + 1, expiresAt: start + hour });
    const { ends, threads } = redisKeys(prefix).owner(ownerHash('local'));
    await server.command('ZADD', ends, '5', newer.id);
    await server.command('ZADD', threads, '1', newer.id);
    const query = { owner: 'local', limit: 5, now: start };
    const unused = { owner: 'local', since: start };
    const hits = await one.search({ ...query, text: 'apple' });
    for (const found of [await one.list(query), hits.map(({ thread }) => thread)])
      expect(found.map(({ id }) => id)).toEqual([newer.id, older.id]);
    expect(await one.prunable(start, unused)).toMatchObject({ threads: 0 });
    expect(await server.command('ZSCORE', ends, newer.id)).toBe(5);
    expect(await one.prune(start, unused)).toBe(0);
    expect(await server.command('ZSCORE', ends, newer.id)).toBe(newer.expiresAt);
  });

  it('forgets a text with the last thread that refers to it, however often that did', async () => {
    const blob = { sha256: hashOf('twice'), text: 'twice' };
    const { id } = await threadWith(one, ['a']);
    for (const seq of [1, 1]) await one.commit(id, changeOf(seq, { blobs: [blob] }));
    await one.remove(id, start);
    expect(await server.command('EXISTS', redisKeys(prefix).blob(blob.sha256)[0])).toBe(0);
  });

  it.each([
    ['storage_full', 0],
    ['unavailable', 1],
  ] as const)('keeps the texts of a change that ended as %s, unless it was surely not made: %s', async (kind, kept) => {
    const { id } = await threadWith(one, ['a']);
    const { clock, random } = systemEnvironment();
    const parts = { url: server.url, patienceMs: 5_000, clock, random, marks: processMarks() };
    const real = redisClient({ ...parts, onWarning: () => undefined });
    const client: RedisClient = {
      ...real,
      run: (script, ...rest) =>
        script === commitThread ? Promise.reject(storageError(kind, 'no', {})) : real.run(script, ...rest),
    };
    const keys = redisKeys(prefix);
    const threads = redisThreads(
      { ...parts, client, keys },
      redisBlobs(real, keys),
      redisIndex(real, keys, () => {}),
    );
    const blob = { sha256: hashOf(kind), text: kind };
    await expect(threads.commit(id, changeOf(1, { blobs: [blob] }))).rejects.toMatchObject({
      details: { class: kind },
    });
    expect(await server.command('EXISTS', keys.blob(blob.sha256)[0])).toBe(kept);
    real.close();
  });

  it('never serves a turn that was changed behind our back', async () => {
    const { id } = await threadWith(one, ['right', 'x']);
    const turns = redisKeys(prefix).thread(id).all[1]!;
    const stored = String(await server.command('LINDEX', turns, '0'));
    await server.command('LSET', turns, '0', stored.replace('right', 'wrong'));
    await expect(one.read(id, start)).rejects.toMatchObject({ details: { class: 'corrupt', data: { thread: id } } });
    expect(await one.search({ owner: 'local', text: 'wrong', limit: 5, now: start })).toEqual([]);
  });

  it('shows and tidies up all the others when one thread or job is damaged', async () => {
    const warnings: string[] = [];
    const watching = redisStore(server.url, { prefix, onWarning: text => warnings.push(text) });
    const [broken, whole] = [await threadWith(one, ['apple']), await threadWith(one, ['apple'])];
    const over = await threadWith(one, ['x'], { expiresAt: start + 5 });
    const [brokenJob, job] = [jobOf(), jobOf()];
    for (const each of [brokenJob, job]) await one.createJob(each);
    const keys = redisKeys(prefix);
    await server.command('HSET', keys.thread(broken.id).head, 'head', 'nonsense');
    await server.command('HSET', keys.job(brokenJob.id), 'body', 'nonsense');
    const odd = await threadWith(one, ['apple']);
    const { head: oddKey } = keys.thread(odd.id);
    await server.command('DEL', oddKey);
    await server.command('SET', oddKey, 'what another program keeps');
    const query = { owner: 'local', limit: 9, now: start + 10 };
    for (let n = 0; n < 2; n++) expect((await watching.list(query)).map(({ id }) => id)).toEqual([whole.id]);
    expect((await watching.search({ ...query, text: 'apple' })).map(hit => hit.thread.id)).toEqual([whole.id]);
    expect((await watching.jobs(query)).map(({ id }) => id)).toEqual([job.id]);
    expect(await watching.prune(start + 10)).toBe(1);
    expect((await watching.read(over.id, start)).state).toBe('expired');
    expect(warnings.toSorted()).toEqual([broken.id, odd.id].toSorted().map(id => expect.stringContaining(id)));
    await expect(watching.read(odd.id, start)).rejects.toMatchObject({
      message: expect.stringContaining(`The key "${oddKey}"`),
      details: { class: 'corrupt', next: expect.stringContaining('REDIS_PREFIX') },
    });
    await expect(watching.read(broken.id, start)).rejects.toMatchObject({ details: { class: 'corrupt' } });
    await expect(watching.job(brokenJob.id, start)).rejects.toMatchObject({ details: { class: 'corrupt' } });
    await watching.close();
  });

  it('is described without its password, with what an operator should change', async () => {
    const inspection = await one.inspect!();
    expect(inspection.text).toMatch(/^Redis 7\.\d+\.\d+ at 127\.0\.0\.1:\d+, a single server$/);
    expect(inspection.warnings).toEqual([]);
    await server.command('REPLICAOF', '127.0.0.1', '1');
    await expect(one.inspect!()).rejects.toMatchObject({
      details: { next: expect.stringContaining('REDIS_URL name the primary') },
    });
    await server.command('REPLICAOF', 'NO', 'ONE');
    await server.command('CONFIG', 'SET', 'maxmemory', '1mb');
    await expect(one.inspect!()).rejects.toMatchObject({ details: { class: 'storage_full' } });
    await server.command('CONFIG', 'SET', 'maxmemory', '0');
    await server.command('CONFIG', 'SET', 'appendfsync', 'everysec');
    expect((await one.inspect!()).warnings).toEqual([expect.stringContaining('REDIS_DURABILITY=always')]);
    await server.command('CONFIG', 'SET', 'appendfsync', 'always');
    await server.command('CONFIG', 'SET', 'appendonly', 'no');
    await server.command('CONFIG', 'SET', 'maxmemory', '1gb');
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    expect((await one.inspect!()).warnings).toEqual([
      expect.stringContaining('appendonly yes'),
      expect.stringContaining('noeviction'),
    ]);
    await server.command('CONFIG', 'SET', 'maxmemory', '0');
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    await server.command('CONFIG', 'SET', 'appendonly', 'yes');
  });
});

it('an id of another thread does not lead to a thread', async () => {
  expect(await one.read(newThreadId(), start)).toEqual({ state: 'unknown' });
});
