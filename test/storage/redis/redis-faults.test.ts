import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { systemEnvironment } from '../../../src/app/system-environment.ts';
import type { ThreadId } from '../../../src/core/ids.ts';
import type { Clock } from '../../../src/core/ports.ts';
import { redisClient } from '../../../src/storage/redis/cluster-client.ts';
import type { Store } from '../../../src/storage/store.ts';
import { changeOf, headOf, jobOf, newThreadId, start, threadWith, turnOf } from '../../contracts/store-fixtures.ts';
import { realClock } from '../../support/clock.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';
import { redisStore } from '../../support/redis-store.ts';
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { waitedTime } from '../../support/waited-time.ts';

const patienceMs = 250;
/** Where it is not about time. */
const patientMs = 3_000;
/** What the machine may add when others use it, too. */
const slackMs = 500;

interface Place extends AsyncDisposable {
  server: RedisServer;
  proxy: TcpProxy;
  store: Store;
  prefix: string;
  warnings: string[];
}

/** A server, a way to it that can be cut, and a store that takes that way; each test has its own, so that some wait at the same time. */
async function open(settings: string[] = [], patience = patienceMs): Promise<Place> {
  const server = await startRedis('--appendfsync', 'always', '--enable-debug-command', 'yes', ...settings);
  const proxy = await startProxy(server.port);
  const warnings: string[] = [];
  const prefix = `${randomUUID()}:`;
  const store = redisStore(proxy.url, { prefix, patienceMs: patience, onWarning: text => warnings.push(text) });
  return {
    ...{ server, proxy, store, prefix, warnings },
    async [Symbol.asyncDispose]() {
      server.signal('SIGCONT');
      await store.close();
      await proxy.dispose();
      await server.dispose();
    },
  };
}

const refused = (kind: string) => ({ kind: 'storage', details: { code: 'STORAGE', class: kind } });

/** Rejected, in time for whoever has to decide whether to go on. */
async function refusedInTime(run: () => Promise<unknown>, kind = 'unavailable', within = patienceMs): Promise<void> {
  const waited = waitedTime();
  await expect(run()).rejects.toMatchObject(refused(kind));
  expect(waited()).toBeLessThan(within + slackMs);
}

/** A clock that notes for how long it is asked to wait. */
function noting(fixed: Partial<Clock> = {}) {
  const asked: number[] = [];
  const real = realClock();
  const after: Clock['after'] = (ms, run) => {
    asked.push(ms);
    return real.after(ms, run);
  };
  return { asked, clock: { ...real, ...fixed, after } };
}

async function eventually<Result>(run: () => Promise<Result>): Promise<Result> {
  for (const from = performance.now(); ; await wait(20)) {
    try {
      return await run();
    } catch (error) {
      if (performance.now() - from > 60_000) throw error;
    }
  }
}

/** A thread, written without any hurry; then the store under test is connected. */
async function prepared({ server, store, prefix, warnings }: Place, texts: string[]) {
  const patient = redisStore(server.url, { prefix });
  const head = await threadWith(patient, texts);
  await patient.close();
  await eventually(() => store.head(head.id, start));
  warnings.length = 0;
  return head;
}

async function seqs(store: Store, id: ThreadId): Promise<number[]> {
  const found = await eventually(() => store.read(id, start));
  if (found.state !== 'live') throw new Error(found.state);
  return found.value.turns.map(turn => turn.seq);
}

/** Adds turns one after the other while `disturb` goes on. Answers the seqs that were acknowledged. */
async function addTurns(store: Store, id: ThreadId, count: number, disturb: (n: number) => unknown): Promise<number[]> {
  const acknowledged: number[] = [];
  for (let n = 0; n < count; n++) {
    await disturb(n);
    const found = await eventually(() => store.head(id, start));
    if (found.state !== 'live') throw new Error(found.state);
    const { seq } = found.value;
    try {
      acknowledged.push(await store.commit(id, changeOf(seq, { turns: [turnOf(seq + 1)] })));
    } catch (error) {
      expect(error).toMatchObject(refused('unavailable'));
    }
  }
  return acknowledged;
}

describe('a Redis that is not there', () => {
  it('is refused in time, with one warning, and is found when it starts', async () => {
    await using place = await open();
    const { server, store, prefix, warnings } = place;
    await server.kill();
    await refusedInTime(() => store.create(headOf()));
    for (let n = 0; n < 20; n++) await refusedInTime(() => store.lease('a', 'b', 1_000, start), 'unavailable', 0);
    expect(warnings).toHaveLength(1);
    const { asked, clock } = noting();
    const other = redisStore(server.url, { prefix, patienceMs, clock });
    await expect(other.head(newThreadId(), start)).rejects.toMatchObject(refused('unavailable'));
    // It is looked for less and less often.
    await expect.poll(() => asked.some(ms => ms > 200 && ms < 2_000)).toBe(true);
    await other.close();
    await server.start();
    // Another one each time: what was answered too late is there.
    let head = headOf();
    await eventually(() => {
      head = headOf();
      return store.create(head);
    });
    expect((await store.head(head.id, start)).state).toBe('live');
    expect(warnings).toEqual([expect.stringContaining('cannot serve'), expect.stringContaining('works again')]);
  });

  it('says that it is still reading its data, and serves when it has', async () => {
    await using place = await open(['--key-load-delay', '3000', '--loading-process-events-interval-bytes', '1024']);
    const { server, store } = place;
    const { id } = await prepared(place, ['a'.repeat(5_000), 'b']);
    for (let n = 0; n < 60; n++)
      await store.swapFact({ key: `k${n}`, version: 0, value: { n }, expiresAt: start + 1e6, now: start });
    await server.kill();
    const started = server.start();
    await wait(100);
    await refusedInTime(() => store.head(id, start));
    await started;
    expect(await seqs(store, id)).toEqual([1, 2]);
  });
});

describe('a Redis that is to have each change on its disk', () => {
  it.each([
    ['it keeps no append-only file', ['--appendonly', 'no']],
    ['it refused CONFIG', ['--rename-command', 'CONFIG', '']],
  ])('is refused at once, with what to do, where that cannot be: %s', async (why, settings) => {
    await using place = await open(settings, patientMs);
    const { server, prefix } = place;
    const safe = redisStore(server.url, { prefix, syncs: true });
    await expect(safe.create(headOf())).rejects.toMatchObject({
      ...refused('unavailable'),
      message: expect.stringContaining(why),
      details: { next: expect.stringContaining('REDIS_DURABILITY') },
    });
    await safe.close();
  });
});

describe('a Redis that is slow to connect', () => {
  it('is waited for by the first command, whose own time begins with the connection', async () => {
    await using place = await open();
    const { proxy, store, warnings } = place;
    proxy.firstAnswerAfterMs = 3 * patienceMs;
    const head = headOf();
    await store.create(head);
    expect((await store.head(head.id, start)).state).toBe('live');
    expect(warnings).toEqual([]);
  });
});

/** That of the question included. */
const clients = async (server: RedisServer) =>
  String(await server.command('CLIENT', 'LIST'))
    .trim()
    .split('\n').length;

describe('a connection', () => {
  it('has longer for what is long, and for what comes behind that', async () => {
    await using place = await open();
    const { server, prefix } = place;
    const { asked, clock } = noting({ monotonic: () => 0 });
    const own = redisStore(server.url, { prefix, patienceMs: patientMs, clock });
    const fact = { version: 0, expiresAt: start + 1e6, now: start };
    await own.swapFact({ ...fact, key: 'long', value: { text: 'x'.repeat(1_000_000) } });
    // Four fifths of the time, then it looks once more: 20 bytes are a microsecond.
    expect(Math.max(...asked) / 0.8 - patientMs).toBeCloseTo(50, -1);
    const { id } = await threadWith(own, ['a']);
    await own.read(id, start);
    asked.length = 0;
    await Promise.all([own.read(id, start), own.head(id, start)]);
    expect(asked.filter(ms => ms / 0.8 >= 8 * patientMs)).toHaveLength(2);
    await own.close();
  });

  it('that breaks is made anew within the time of a command, however long it stood', async () => {
    await using place = await open();
    const { proxy, prefix } = place;
    let ahead = 0;
    const real = realClock();
    const clock = { ...real, monotonic: () => real.monotonic() + ahead };
    const own = redisStore(proxy.url, { prefix, patienceMs: patientMs, clock });
    const { id } = await threadWith(own, ['a']);
    ahead = 60_000;
    proxy.left = 0;
    expect((await own.head(id, start)).state).toBe('live');
    await own.close();
  });

  it('that is still being made when all is closed is closed too', async () => {
    await using place = await open();
    const { server } = place;
    const options = { url: server.url, patienceMs, clock: realClock(), random: systemEnvironment().random };
    const client = redisClient({ ...options, onWarning: () => undefined });
    const asked = client.send('GET', 'k');
    client.close();
    await expect(asked).rejects.toThrow('the store is closed');
    await expect.poll(() => clients(server)).toBe(1);
  });

  it('is none any more once the store is closed, which waits for what is under way', async () => {
    await using place = await open([], patientMs);
    const { server, store } = place;
    await store.create(headOf());
    const writing = store.create(headOf());
    await store.close();
    await writing;
    // The one that asks.
    await expect.poll(() => clients(server)).toBe(1);
  });
});

describe('a Redis that is silent', () => {
  it('is given up in time, and gone on with when it wakes', async () => {
    await using place = await open();
    const { server, store, warnings } = place;
    const { id } = await prepared(place, ['a']);
    server.signal('SIGSTOP');
    await refusedInTime(() => store.commit(id, changeOf(1, { turns: [turnOf(2)] })));
    for (let n = 0; n < 20; n++) await refusedInTime(() => store.read(id, start), 'unavailable', 0);
    expect(warnings).toHaveLength(1);
    server.signal('SIGCONT');
    // Whether the change that nobody answered was made is seen by reading.
    const known = await seqs(store, id);
    expect([[1], [1, 2]]).toContainEqual(known);
    await store.commit(id, changeOf(known.length, { turns: [turnOf(known.length + 1)] }));
    expect(await seqs(store, id)).toHaveLength(known.length + 1);
  });

  it('counts once what is added to the ledger again, since nobody answered', async () => {
    await using place = await open();
    const { server, store } = place;
    const usage = { input: 1, output: 1, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
    const spent = { at: start, owner: 'local', tool: 'chat', provider: 'openai', model: 'm', usage, costUsd: 0.25 };
    await store.spend.add({ ...spent, id: randomUUID() });
    const late = { ...spent, id: randomUUID() };
    server.signal('SIGSTOP');
    await refusedInTime(() => store.spend.add(late));
    server.signal('SIGCONT');
    await eventually(() => store.spend.add(late));
    for (const id of [randomUUID(), late.id]) await store.spend.add({ ...spent, id });
    expect(await store.spend.rows({ owner: 'local', from: '' })).toMatchObject([{ calls: 3, costUsd: 0.75 }]);
  });

  it('never makes a list look empty, nor what is kept look forgotten', async () => {
    await using place = await open();
    const { server, store } = place;
    await prepared(place, ['a']);
    const job = jobOf();
    await eventually(() => store.createJob(job).catch(error => expect(error.details.class).toBe('conflict')));
    server.signal('SIGSTOP');
    const query = { owner: 'local', limit: 5, now: start };
    for (const ask of [() => store.jobs(query), () => store.list(query), () => store.prune(start)]) {
      await refusedInTime(ask);
    }
    server.signal('SIGCONT');
    expect(await eventually(() => store.jobs(query))).toStrictEqual([job]);
  });
});

describe('a connection that breaks', () => {
  it('within an answer makes nobody fail, and nothing happen twice', async () => {
    await using place = await open([], patientMs);
    const { proxy, store, warnings } = place;
    const { id } = await threadWith(store, []);
    let seq = 0;
    // The first answers are a kilobyte: the cut meets every one of them, at every point.
    for (let left = 0; left < 1_500; left += 37) {
      proxy.left = left;
      const change = changeOf(seq, { turns: [turnOf(seq + 1)], tokens: 1 });
      expect(await store.commit(id, change)).toBe(++seq);
    }
    expect(await seqs(store, id)).toEqual(Array.from({ length: seq }, (_, index) => index + 1));
    expect(await store.head(id, start)).toMatchObject({ value: { totals: { tokens: seq } } });
    expect(warnings).toEqual([]);
  });

  it('makes no lease, fact or thread look as if somebody else had it', async () => {
    await using place = await open([], patientMs);
    const { proxy, store } = place;
    for (let left = 0; left < 12; left++) {
      const key = `key ${left}`;
      proxy.left = left;
      expect(await store.lease(key, 'me', 1_000, start)).toBe(true);
      proxy.left = left;
      expect(await store.swapFact({ key, version: 0, value: { n: 1 }, expiresAt: start + 1_000, now: start })).toBe(
        true,
      );
      const head = headOf();
      proxy.left = left;
      await store.create(head);
      proxy.left = left;
      expect(await store.remove(head.id, start)).toBe(true);
    }
  });

  it('leads to the new primary after a failover', async () => {
    await using place = await open([], patientMs);
    const { server, proxy, store, warnings } = place;
    const second = await startRedis();
    try {
      const { id } = await threadWith(store, ['a']);
      await second.command('REPLICAOF', '127.0.0.1', String(server.port));
      while (!String(await second.command('INFO', 'replication')).includes('master_link_status:up')) await wait(20);
      await second.command('REPLICAOF', 'NO', 'ONE');
      await server.command('REPLICAOF', '127.0.0.1', String(second.port));
      proxy.target = second.port;
      await refusedInTime(() => store.commit(id, changeOf(1, { turns: [turnOf(2)] })));
      expect(await eventually(() => store.commit(id, changeOf(1, { turns: [turnOf(2)] })))).toBe(2);
      expect(warnings).toEqual([expect.stringContaining('no writes'), expect.stringContaining('works again')]);
    } finally {
      await second.dispose();
    }
  });
});

describe('a Redis that takes no writes', () => {
  it('is still read, says so once, and takes them again when it may', async () => {
    await using place = await open([], patientMs);
    const { server, store, warnings } = place;
    const { id } = await threadWith(store, ['a']);
    await server.command('REPLICAOF', '127.0.0.1', '1');
    for (let n = 0; n < 5; n++) {
      await refusedInTime(() => store.commit(id, changeOf(1, { turns: [turnOf(2)] })));
      expect(await seqs(store, id)).toEqual([1]);
    }
    expect(warnings.filter(text => text.includes('no writes'))).toHaveLength(1);
    await server.command('REPLICAOF', 'NO', 'ONE');
    expect(await eventually(() => store.commit(id, changeOf(1, { turns: [turnOf(2)] })))).toBe(2);
  });

  it('for want of room is still read, lets threads be deleted, and takes writes when there is room', async () => {
    await using place = await open([], patientMs);
    const { server, store, warnings } = place;
    const { id } = await threadWith(store, ['a']);
    const other = await threadWith(store, ['b']);
    await server.command('CONFIG', 'SET', 'maxmemory', '1');
    for (let n = 0; n < 5; n++) {
      await refusedInTime(() => store.commit(id, changeOf(1, { turns: [turnOf(2)] })), 'storage_full');
      await refusedInTime(() => store.create(headOf()), 'storage_full');
      expect(await seqs(store, id)).toEqual([1]);
    }
    expect(warnings).toHaveLength(1);
    await store.remove(other.id, start).catch(() => undefined);
    expect((await store.read(other.id, start)).state).toBe('deleted');
    await server.command('CONFIG', 'SET', 'maxmemory', '0');
    expect(await store.commit(id, changeOf(1, { turns: [turnOf(2)] }))).toBe(2);
    expect(warnings).toHaveLength(2);
  });

  it('because of a wrong password tells it without showing it', async () => {
    await using place = await open(['--requirepass', 'right-word']);
    const { server, warnings } = place;
    const wrong = redisStore(`redis://:wrong-word@127.0.0.1:${server.port}`, {
      patienceMs: 1_000,
      onWarning: text => warnings.push(text),
    });
    const error = await wrong.head(newThreadId(), start).catch(each => each);
    expect(error).toMatchObject({ ...refused('unavailable'), message: expect.stringContaining('WRONGPASS') });
    expect(error.details.next).toContain('password');
    expect(JSON.stringify([error.message, error.details.next, warnings])).not.toContain('wrong-word');
    await wrong.close();
    const right = redisStore(`redis://:right-word@127.0.0.1:${server.port}`);
    expect((await right.head(newThreadId(), start)).state).toBe('unknown');
    await right.close();
  });

  it('because its user may not is told with what to let that user do', async () => {
    await using place = await open([], patientMs);
    const { server } = place;
    await server.command('ACL', 'SETUSER', 'half', 'on', '>word', '~*', '+ping', '+info', '+select');
    const half = redisStore(server.url.replace('redis://', 'redis://half:word@'));
    const next = expect.stringContaining('let that user run scripts');
    await expect(half.head(newThreadId(), start)).rejects.toMatchObject({
      ...refused('unavailable'),
      details: { next },
    });
    await half.close();
  });
});

// Each of these waits for a second or more.
describe.concurrent('a Redis', () => {
  it('that comes back after a crash has lost nothing that was acknowledged', async () => {
    await using place = await open([], 1_000);
    const { server, store } = place;
    const { id } = await prepared(place, []);
    const acknowledged = await addTurns(store, id, 20, async n => {
      if (n % 10 !== 5) return;
      await server.kill();
      await expect(store.commit(id, changeOf(0))).rejects.toMatchObject(refused('unavailable'));
      await server.start();
    });
    expect(acknowledged.length).toBeGreaterThanOrEqual(18);
    expect(await seqs(store, id)).toEqual(expect.arrayContaining(acknowledged));
  });

  it('that is to have each change on its disk loses nothing when it is killed, although it is configured to wait for a second', async () => {
    await using place = await open(['--appendfsync', 'everysec'], patientMs);
    const { server, prefix } = place;
    const safe = redisStore(server.url, { prefix, syncs: true, patienceMs: 1_500 });
    const heads = await Promise.all(Array.from({ length: 10 }, () => threadWith(safe, [])));
    const acknowledged: string[] = [];
    const write = async (id: ThreadId) => {
      const found = await eventually(() => safe.head(id, start));
      for (let seq = found.state === 'live' ? found.value.seq : Number.NaN; ; ) {
        seq = await safe.commit(id, changeOf(seq, { turns: [turnOf(seq + 1)] }));
        acknowledged.push(`${id} ${seq}`);
      }
    };
    for (let round = 0; round < 2; round++) {
      const enough = acknowledged.length + 200;
      const writing = Promise.allSettled(heads.map(({ id }) => write(id)));
      await waitUntil('turns were acknowledged', () => acknowledged.length >= enough, { everyMs: 1 });
      expect(Object.values(Object(await server.command('CONFIG', 'GET', 'appendfsync')))).toContain('always');
      await server.kill();
      for (const end of await writing) expect(end).toMatchObject({ reason: refused('unavailable') });
      await server.start();
    }
    const kept = await Promise.all(heads.map(async ({ id }) => (await seqs(safe, id)).map(seq => `${id} ${seq}`)));
    const known = new Set(kept.flat());
    expect(acknowledged.filter(turn => !known.has(turn))).toEqual([]);
    expect(acknowledged.length).toBeGreaterThanOrEqual(400);
    await safe.close();
  });

  it('that is slow is given up in time', async () => {
    await using place = await open();
    const { server, store } = place;
    const { id } = await prepared(place, ['a']);
    const slow = server.command('DEBUG', 'SLEEP', '2');
    // It answers until it has read that it is to sleep.
    const isAsleep = () =>
      store.head(id, start).then(
        () => false,
        () => true,
      );
    await waitUntil('Redis slept', isAsleep, { everyMs: 1 });
    await refusedInTime(() => store.read(id, start));
    await slow;
    expect(await seqs(store, id)).toEqual([1]);
  });

  it('whose old connection brings nothing any more is asked on a new one', async () => {
    await using place = await open();
    const { server, proxy, prefix } = place;
    const near = redisStore(server.url, { prefix });
    const { id } = await threadWith(near, ['a']);
    await near.close();
    const { asked, clock } = noting();
    const quick = redisStore(proxy.url, { prefix, patienceMs: 50, clock });
    await eventually(() => quick.head(id, start));
    const before = proxy.connections;
    proxy.hangs = true;
    proxy.left = 5;
    await expect(quick.head(id, start)).rejects.toMatchObject(refused('unavailable'));
    await wait(700);
    proxy.left = Number.POSITIVE_INFINITY;
    expect((await eventually(() => quick.head(id, start))).state).toBe('live');
    expect(proxy.connections).toBeGreaterThan(before);
    expect(asked).toContain(12 * 50);
    await quick.close();
  });

  it('whose connections break again and again loses nothing that was acknowledged', async () => {
    await using place = await open();
    const { proxy, store } = place;
    const { id } = await prepared(place, []);
    let goes = true;
    const flapping = (async () => {
      while (goes) {
        await wait(60);
        proxy.refuses = !proxy.refuses;
        proxy.cutAll();
      }
      proxy.refuses = false;
    })();
    const acknowledged = await addTurns(store, id, 24, () => wait(5));
    goes = false;
    await flapping;
    const kept = await seqs(store, id);
    expect(kept).toEqual(expect.arrayContaining(acknowledged));
    expect(acknowledged.length).toBeGreaterThan(6);
    expect(new Set(kept).size).toBe(kept.length);
  });
});
