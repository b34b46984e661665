import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ThreadId } from '../../../src/core/ids.ts';
import { redisKeys, slotOf } from '../../../src/storage/redis/keys.ts';
import type { Store } from '../../../src/storage/store.ts';
import { changeOf, headOf, newThreadId, start, threadWith, turnOf } from '../../contracts/store-fixtures.ts';
import { type RedisCluster, type RedisServer, startRedisCluster } from '../../support/redis-server.ts';
import { redisStore } from '../../support/redis-store.ts';
import { waitedTime } from '../../support/waited-time.ts';

let cluster: RedisCluster;
let prefix: string;
let store: Store;
let warnings: string[];

beforeAll(async () => {
  cluster = await startRedisCluster();
});
afterAll(() => cluster.dispose());

beforeEach(async () => {
  // After a node was silent the others serve nothing for a moment.
  const states = () => Promise.all(cluster.nodes.map(async node => String(await node.command('CLUSTER', 'INFO'))));
  await expect.poll(async () => (await states()).every(state => state.includes('cluster_state:ok'))).toBe(true);
  prefix = `${randomUUID()}:`;
  warnings = [];
  store = redisStore(cluster.url, { prefix, onWarning: text => warnings.push(text) });
});
afterEach(() => store.close());

const slot = (id: ThreadId) => slotOf(redisKeys(prefix).thread(id).head);

/** A new id whose thread lives on that node. */
function idOn(node: RedisServer): ThreadId {
  const index = cluster.nodes.indexOf(node);
  for (;;) {
    const id = newThreadId();
    if (Math.floor((slot(id) * cluster.nodes.length) / 16_384) === index) return id;
  }
}

async function nodeId(node: RedisServer): Promise<string> {
  return String(await node.command('CLUSTER', 'MYID'));
}

async function seqs(id: ThreadId): Promise<number[]> {
  const found = await store.read(id, start);
  if (found.state !== 'live') throw new Error(found.state);
  return found.value.turns.map(turn => turn.seq);
}

describe('slots of a cluster', () => {
  it('are counted as the server counts them', async () => {
    for (const key of ['plain', '{a}b', 'x{thread}:turns', '{}odd', 'a{b', 'x}{y}', 'Zürich {東京}']) {
      expect(slotOf(key)).toBe(Number(await cluster.nodes[0]!.command('CLUSTER', 'KEYSLOT', key)));
    }
  });

  it('are shared out: threads live on all nodes', async () => {
    for (const node of cluster.nodes) await store.create(headOf({ id: idOn(node) }));
    const sizes = await Promise.all(cluster.nodes.map(node => node.command('DBSIZE')));
    for (const size of sizes) expect(Number(size)).toBeGreaterThan(0);
    expect(await store.list({ owner: 'local', limit: 9, now: start })).toHaveLength(3);
  });

  it('are followed when they moved, and while they move', async () => {
    const [from, to] = [cluster.nodes[0]!, cluster.nodes[1]!];
    await store.list({ owner: 'local', limit: 1, now: start });
    const id = idOn(from);
    const [fromId, toId] = await Promise.all([nodeId(from), nodeId(to)]);
    const number = String(slot(id));
    await store.create(headOf({ id }));
    await to.command('CLUSTER', 'SETSLOT', number, 'IMPORTING', fromId);
    await from.command('CLUSTER', 'SETSLOT', number, 'MIGRATING', toId);
    const during = store.commit(id, changeOf(0, { turns: [turnOf(1)] }));
    await wait(100);
    const keys = await from.command('CLUSTER', 'GETKEYSINSLOT', number, '100');
    for (const key of Array.isArray(keys) ? keys : []) {
      await from.command('MIGRATE', '127.0.0.1', String(to.port), String(key), '0', '1000');
    }
    const alone = await store.head(id, start);
    expect(alone.state).toBe('live');
    for (const node of [to, from, cluster.nodes[2]!]) await node.command('CLUSTER', 'SETSLOT', number, 'NODE', toId);
    expect(await during).toBe(1);
    // It is remembered: the old server is asked once more.
    const moved = async () => /errorstat_MOVED:count=(\d+)/.exec(String(await from.command('INFO', 'errorstats')))?.[1];
    await store.head(id, start);
    const before = await moved();
    await store.head(id, start);
    expect(await moved()).toBe(before);
    expect(await store.commit(id, changeOf(1, { turns: [turnOf(2)] }))).toBe(2);
    expect(await seqs(id)).toEqual([1, 2]);
    expect(warnings).toEqual([]);
    // Back again, for the other tests.
    for (const key of redisKeys(prefix).thread(id).all) await to.command('DEL', key);
    for (const node of [from, to, cluster.nodes[2]!]) await node.command('CLUSTER', 'SETSLOT', number, 'NODE', fromId);
  });
});

it('is described with all of its servers, and with what one of them alone has wrong', async () => {
  const set = (node: RedisServer, name: string, value: string) => node.command('CONFIG', 'SET', name, value);
  for (const node of cluster.nodes) await set(node, 'appendonly', 'yes');
  for (const node of cluster.nodes) await set(node, 'appendfsync', 'always');
  const inspect = () => redisStore(cluster.url, { prefix }).inspect!();
  expect(await inspect()).toMatchObject({ text: expect.stringContaining('a cluster of 3 primaries'), warnings: [] });
  await set(cluster.nodes[1]!, 'appendfsync', 'everysec');
  expect((await inspect()).warnings).toEqual([expect.stringContaining('REDIS_DURABILITY=always')]);
  await set(cluster.nodes[1]!, 'appendonly', 'no');
  expect((await inspect()).warnings).toEqual([expect.stringContaining('appendonly yes')]);
});

describe('one node of a cluster that is silent', () => {
  it('is asked no more for what others have by now', async () => {
    const [first, second, last] = cluster.nodes;
    const quick = redisStore(cluster.url, { prefix, patienceMs: 1_000 });
    const id = idOn(last!);
    expect((await quick.head(id, start)).state).toBe('unknown');
    const [secondId, lastId] = await Promise.all([nodeId(second!), nodeId(last!)]);
    const give = (to: string) =>
      Promise.all([first!, second!].map(node => node.command('CLUSTER', 'SETSLOT', String(slot(id)), 'NODE', to)));
    last!.signal('SIGSTOP');
    try {
      await give(secondId);
      const state = () =>
        quick.head(id, start).then(
          found => found.state,
          () => 'refused',
        );
      await expect.poll(state, { timeout: 15_000 }).toBe('unknown');
      await give(lastId);
    } finally {
      last!.signal('SIGCONT');
    }
    await quick.close();
  });

  it('is asked again what it is part of, where it was the first', async () => {
    for (const node of cluster.nodes) await store.create(headOf({ id: idOn(node) }));
    const late = redisStore(cluster.url, { prefix, patienceMs: 500 });
    const list = () => late.list({ owner: 'local', limit: 9, now: start });
    cluster.nodes[0]!.signal('SIGSTOP');
    try {
      await expect(list()).rejects.toMatchObject({ kind: 'storage' });
    } finally {
      cluster.nodes[0]!.signal('SIGCONT');
    }
    await expect.poll(() => late.list({ owner: 'local', limit: 9, now: start }).catch(() => [])).toHaveLength(3);
    await late.close();
  });

  it('stops its own threads alone, in time, and they go on when it wakes', async () => {
    const quick = redisStore(cluster.url, { prefix, patienceMs: 1_000, onWarning: text => warnings.push(text) });
    const [first, , last] = cluster.nodes;
    const near = await threadWith(store, ['a'], { id: idOn(first!) });
    const far = await threadWith(store, ['a'], { id: idOn(last!) });
    for (const { id } of [near, far]) await quick.head(id, start);
    last!.signal('SIGSTOP');
    try {
      const waited = waitedTime();
      await expect(quick.read(far.id, start)).rejects.toMatchObject({ kind: 'storage' });
      expect(waited()).toBeLessThan(1_800);
      expect((await quick.read(near.id, start)).state).toBe('live');
    } finally {
      last!.signal('SIGCONT');
    }
    for (let tries = 0; ; tries++) {
      const seq = await quick.commit(far.id, changeOf(1, { turns: [turnOf(2)] })).catch(() => 0);
      if (seq === 2 || tries > 300) break;
      await wait(20);
    }
    expect(await seqs(far.id)).toEqual([1, 2]);
    expect(warnings.length).toBeLessThanOrEqual(2);
    await quick.close();
  });
});
