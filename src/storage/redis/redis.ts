import { createQueue } from '../../core/concurrency.ts';
import { storageError } from '../../core/errors.ts';
import { isThreadId, type ThreadId } from '../../core/ids.ts';
import { processMarks } from '../process-mark.ts';
import { closedStore, skipWarning, tombstoneLifeMs } from '../records.ts';
import { lastingTimeoutHours, type Store, type StoreInspection, type Unused } from '../store.ts';
import { type RedisClient, type RedisClientOptions, redisClient } from './cluster-client.ts';
import { type RedisFacts, redisFacts } from './facts.ts';
import { type RedisJobs, redisJobs, redisLeases } from './jobs.ts';
import { ownerHash, type RedisKeys, redisKeys } from './keys.ts';
import { inBatches, publicHead, redisBlobs, type StoredHead, unlessDamaged } from './records.ts';
import { allTextsOf, pairsOf, partsOf, textsOf } from './script.ts';
import { type RedisSpend, redisSpend } from './spend.ts';
import { redisIndex } from './thread-index.ts';
import { readThread } from './thread-scripts.ts';
import { type RedisParts, type RedisThreads, redisThreads } from './threads.ts';

const oldest = 7;

/** What an operator should know of the servers behind a store. */
export async function redisInspection(client: RedisClient): Promise<StoreInspection> {
  const isCluster = await client.isCluster();
  const infos = (await client.everywhere(['INFO'])).map(reply => fieldsOf(String(reply)));
  const [first] = infos;
  const version = first?.get('valkey_version') ?? first?.get('redis_version') ?? 'unknown';
  const name = first?.has('valkey_version') ? 'Valkey' : 'Redis';
  if (Number.parseInt(version, 10) < oldest)
    throw storageError('unavailable', `The Redis at ${client.address} is version ${version}.`, {
      next: `Update it to Redis ${oldest} or newer, or Valkey.`,
    });
  // A user may not be allowed to ask for it.
  const policies = await client.everywhere(['CONFIG', 'GET', 'appendfsync']).catch(() => []);
  const isSynced = policies.every(policy => textsOf(policy)[1] === 'always');
  const kind = isCluster ? `a cluster of ${infos.length} primaries` : 'a single server';
  return { text: `${name} ${version} at ${client.address}, ${kind}`, warnings: warningsFor(infos, isSynced) };
}

function warningsFor(infos: readonly ReadonlyMap<string, string>[], isSynced: boolean): string[] {
  const some = (test: (info: ReadonlyMap<string, string>) => boolean) => infos.some(test);
  const warnings: string[] = [];
  if (some(info => info.get('aof_enabled') !== '1')) {
    warnings.push(
      'It keeps no append-only file: a crash loses what came after its last snapshot. Set "appendonly yes".',
    );
  } else if (!isSynced)
    warnings.push(
      'It acknowledges changes before they are on its disk: when it dies, it can lose those of the last two seconds. Set "appendfsync always", or REDIS_DURABILITY=always.',
    );
  if (some(info => Number(info.get('maxmemory') ?? 0) > 0 && info.get('maxmemory_policy') !== 'noeviction'))
    warnings.push('It drops data when it is full: set "maxmemory-policy noeviction", or threads lose their text.');
  return warnings;
}

const fieldsOf = (info: string): Map<string, string> =>
  new Map([...info.matchAll(/^([^:\r\n]+):([^\r\n]*)/gm)].map(([, name = '', value = '']) => [name, value]));

export interface RedisStoreOptions extends RedisClientOptions {
  /** Begins all keys: several products can share one server. */
  prefix: string;
}

/** Counts what is under way, so that closing can wait for it. */
function connectionGate(client: RedisClient) {
  const open = new Set<Promise<unknown>>();
  let closing: Promise<void> | undefined;

  return {
    async pass<Result>(run: () => Promise<Result>): Promise<Result> {
      if (closing) throw closedStore();
      const running = run();
      open.add(running);
      return running.finally(() => open.delete(running));
    },
    close() {
      closing ??= Promise.allSettled(open).then(() => client.close());
      return closing;
    },
  };
}

/**
 * Threads in a Redis that many machines share, alone or a cluster, connected with the first use. A change is one script on the server;
 * what stands elsewhere in a cluster is written around it, so that a stop between them leaves only something to tidy up later.
 */
export function createRedisStore({ prefix, onWarning, ...options }: RedisStoreOptions): Store {
  const client = redisClient({ ...options, onWarning });
  const { clock, random } = options;
  const keys = redisKeys(prefix);
  const parts = { client, keys, clock, random, marks: processMarks() };
  const blobs = redisBlobs(client, keys);
  const index = redisIndex(client, keys, skipWarning('in Redis', onWarning));
  const threads = redisThreads(parts, blobs, index);
  const jobs = redisJobs(parts);
  const leases = redisLeases(parts);
  const facts = redisFacts(parts);
  const spend = redisSpend(parts, threads);
  const { prune, prunable } = redisPrune(parts, { threads, jobs, facts, spend });
  const { pass, close } = connectionGate(client);
  const queue = createQueue();

  /** What concerns one id is done one after the other, in the order of the asking; different ids do not wait for each other. */
  const inTurn = <Result>(id: string, run: () => Promise<Result>): Promise<Result> => pass(() => queue.run(id, run));

  return {
    kind: 'redis',
    defaultTimeoutHours: lastingTimeoutHours,

    create: (head, over) => inTurn(head.id, () => threads.create(head, over)),
    read: (id, now) => pass(() => threads.read(id, now)),
    head: (id, now) =>
      pass(async () => {
        const found = await threads.find(id);
        if (found.state !== 'stored') return found;
        const head = publicHead(found.value);
        return head.expiresAt > now ? { state: 'live', value: head } : { state: 'expired', expiredAt: head.expiresAt };
      }),
    commit: (id, change) => inTurn(id, () => threads.commit(id, change)),
    blobs: hashes => pass(() => blobs.read(hashes)),
    list: query => pass(() => index.list(query)),
    search: query => pass(() => index.search(query)),
    remove: (id, now) =>
      inTurn(id, async () => {
        const found = await threads.find(id);
        if (found.state !== 'stored' || !(await threads.end(found.value, 'deleted', now))) return false;
        await jobs.dropOfThread(found.value.head.owner, id);
        return true;
      }),
    prune: (now, unused) => pass(() => prune(now, unused)),
    prunable: (now, unused) => pass(() => prunable(now, unused)),
    createJob: job => inTurn(job.id, () => jobs.createJob(job)),
    job: (id, now) => pass(() => jobs.job(id, now)),
    jobs: query => pass(() => jobs.jobs(query)),
    endJob: (id, end) => inTurn(id, () => jobs.endJob(id, end)),
    lease: (id, holder, ttlMs, now) => inTurn(id, () => leases.lease(id, holder, ttlMs, now)),
    release: (id, holder) => inTurn(id, () => leases.release(id, holder)),
    fact: (key, now) => pass(() => facts.fact(key, now)),
    facts: (prefixOfKeys, now) => pass(() => facts.facts(prefixOfKeys, now)),
    swapFact: swap => inTurn(`fact ${swap.key}`, () => facts.swapFact(swap)),
    mark: () => pass(async () => String((await client.send('GET', keys.mark)) ?? 0)),
    spend: {
      add: (entry, hold) => inTurn(`spend ${entry?.owner ?? hold}`, () => spend.add(entry, hold)),
      hold: hold => inTurn(`spend ${hold.owner}`, () => spend.hold(hold)),
      used: scope => pass(() => spend.used(scope)),
      rows: query => pass(() => spend.rows(query)),
    },
    time: () =>
      pass(async () => {
        const [seconds, microseconds] = partsOf(await client.time(keys.mark));
        return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
      }),
    inspect: () =>
      pass(async () => {
        const inspection = await redisInspection(client);
        // What can be read may take no writes: a replica, or a server that is full.
        await leases.lease('inspection', 'inspection', 1, clock.storeTime());
        return inspection;
      }),
    close,
  };
}

/** Tidies up what expired; the server would forget all of it by itself, only later. */
export function redisPrune(
  { client, keys }: RedisParts,
  { threads, jobs, facts, spend }: { threads: RedisThreads; jobs: RedisJobs; facts: RedisFacts; spend: RedisSpend },
): Pick<Store, 'prune' | 'prunable'> {
  const ownersOf = async () => allTextsOf(await client.send('SMEMBERS', keys.owners));

  const ranged = async (list: string, upTo: string | number): Promise<string[]> =>
    allTextsOf(await client.send('ZRANGE', list, '-inf', upTo, 'BYSCORE'));

  /** The stored threads that begin with this one; a damaged one counts. */
  async function forksOf(id: string): Promise<ThreadId[]> {
    const forks = allTextsOf(await client.send('SMEMBERS', keys.thread(id).forks)).filter(isThreadId);
    const found = await inBatches(forks, fork => unlessDamaged(threads.find(fork)));
    return forks.filter((_, index) => !found[index] || found[index].state === 'stored');
  }

  /** An owner's threads whose time is over. The lists only say where to look; `mends` puts right what they have wrong. */
  async function over(owner: string, now: number, unused: Unused | undefined, mends: boolean): Promise<StoredHead[]> {
    const { ends, threads: byUse } = keys.owner(owner);
    const ids = await ranged(ends, now);
    if (unused && ownerHash(unused.owner) === owner) ids.push(...(await ranged(byUse, `(${unused.since}`)));
    const found = await inBatches([...new Set(ids)], async id => {
      const thread = isThreadId(id) ? await unlessDamaged(threads.find(id)) : undefined;
      if (thread?.state !== 'stored') {
        // One that is damaged goes when the server forgets it.
        if (mends) await client.send('ZREM', ends, id);
        return undefined;
      }
      const { head } = thread.value;
      const isUnused = unused && head.owner === unused.owner && head.updatedAt < unused.since;
      if (head.expiresAt <= now || isUnused) return thread.value;
      if (mends) await client.send('ZADD', ends, 'XX', head.expiresAt, id);
      return undefined;
    });
    return found.filter(each => each !== undefined);
  }

  /** Those that go: whose time is over, but for originals of forks that stay. */
  async function going(owners: readonly string[], now: number, unused: Unused | undefined, mends: boolean) {
    const found = new Map<ThreadId, StoredHead>();
    for (const owner of owners) {
      for (const stored of await over(owner, now, unused, mends)) found.set(stored.head.id, stored);
    }
    const forks = await inBatches([...found.keys()], async id => [id, await forksOf(id)] as const);
    for (let last = -1; last !== found.size; ) {
      last = found.size;
      for (const [id, children] of forks) if (children.some(child => !found.has(child))) found.delete(id);
    }
    return found;
  }

  /** Ids of threads that went long ago. */
  async function forget(owner: string, now: number): Promise<void> {
    const { gone } = keys.owner(owner);
    const ids = await ranged(gone, now - tombstoneLifeMs);
    await inBatches(ids.filter(isThreadId), async id => {
      const found = await unlessDamaged(threads.find(id));
      if (found && found.state !== 'stored') await client.send('UNLINK', keys.thread(id).head);
    });
    if (ids.length > 0) await client.send('ZREM', gone, ...ids);
  }

  return {
    async prunable(now, unused) {
      const ids = [...(await going(await ownersOf(), now, unused, false)).keys()];
      const blobs = await lostTexts(client, keys, ids);
      const rows = await inBatches(ids, async id =>
        bytesIn(await client.run(readThread, keys.thread(id).all, [], 'bulk')),
      );
      const bytes = [...blobs, ...rows].reduce((sum, size) => sum + size, 0);
      return { threads: ids.length, blobs: blobs.length, bytes };
    },

    async prune(now, unused) {
      await facts.dropExpiredFacts(now);
      const owners = await ownersOf();
      for (const owner of owners) {
        await forget(owner, now);
        await jobs.dropExpired(owner, now);
      }
      const all = await going(owners, now, unused, true);
      const ended = await inBatches([...all.values()], async stored => {
        const { id, expiresAt } = stored.head;
        // It may have been forked since.
        if ((await forksOf(id)).some(fork => !all.has(fork))) return false;
        return threads.end(stored, expiresAt <= now ? 'expired' : 'unused', now);
      });
      for (const owner of owners) await spend.prune(owner, now);
      return ended.filter(Boolean).length;
    },
  };
}

/** Of all texts in a reply, however deep. */
function bytesIn(reply: unknown): number {
  if (typeof reply === 'string') return Buffer.byteLength(reply);
  return partsOf(reply).reduce<number>((sum, part) => sum + bytesIn(part), 0);
}

/** The texts that nobody refers to but these threads: the bytes of each. */
async function lostTexts(client: RedisClient, keys: RedisKeys, ids: readonly ThreadId[]): Promise<number[]> {
  const uses = new Map<string, Set<string>>();
  await inBatches(ids, async id => {
    for (const [sha, user] of pairsOf(await client.send('HGETALL', keys.thread(id).blobs)))
      uses.set(sha, (uses.get(sha) ?? new Set()).add(user));
  });
  const lost = await inBatches([...uses], async ([sha, users]) => {
    const [text, list] = keys.blob(sha);
    if (Number(await client.send('SCARD', list)) > users.size) return 0;
    return Number(await client.send('STRLEN', text));
  });
  return lost.filter(bytes => bytes > 0);
}
