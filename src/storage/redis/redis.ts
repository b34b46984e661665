import { createQueue } from '../../core/concurrency.ts';
import { storageError } from '../../core/errors.ts';
import { processMarks } from '../process-mark.ts';
import { closedStore, skipWarning } from '../records.ts';
import { lastingTimeoutHours, type Store, type StoreInspection } from '../store.ts';
import { type RedisClient, redisClient } from './cluster-client.ts';
import type { RedisLinkOptions } from './connection.ts';
import { redisFacts } from './facts.ts';
import { redisJobs, redisLeases } from './jobs.ts';
import { redisKeys } from './keys.ts';
import { redisPrune } from './prune.ts';
import { publicHead, redisBlobs } from './records.ts';
import { partsOf, textsOf } from './script.ts';
import { redisSpend } from './spend.ts';
import { redisIndex } from './thread-index.ts';
import { redisThreads } from './threads.ts';

const oldest = 7;

/** What an operator should know of the servers behind a store. */
export async function redisInspection(client: RedisClient): Promise<StoreInspection> {
  const isCluster = await client.isCluster();
  const infos = (await client.everywhere(['INFO'])).map(reply => fieldsOf(String(reply)));
  const [first] = infos;
  const version = first?.get('valkey_version') ?? first?.get('redis_version') ?? 'unknown';
  const name = first?.has('valkey_version') ? 'Valkey' : 'Redis';
  if (Number.parseInt(version, 10) < oldest) {
    throw storageError('unavailable', `The Redis at ${client.address} is version ${version}.`, {
      next: `Update it to Redis ${oldest} or newer, or Valkey.`,
    });
  }
  // A user may not be allowed to ask for it.
  const policies = await client.everywhere(['CONFIG', 'GET', 'appendfsync']).catch(() => []);
  const isSynced = policies.every(policy => textsOf(policy)[1] === 'always');
  const kind = isCluster ? `a cluster of ${infos.length} primaries` : 'a single server';
  return { text: `${name} ${version} at ${client.address}, ${kind}`, warnings: warningsFor(infos, isSynced) };
}

function warningsFor(infos: readonly ReadonlyMap<string, string>[], isSynced: boolean): string[] {
  const some = (test: (info: ReadonlyMap<string, string>) => boolean) => infos.some(test);
  const warnings: string[] = [];
  if (some(info => info.get('role') === 'slave'))
    warnings.push('It is a replica and takes no writes: let REDIS_URL name the primary.');
  if (some(info => info.get('aof_enabled') !== '1')) {
    warnings.push(
      'It keeps no append-only file: a crash loses what came after its last snapshot. Set "appendonly yes".',
    );
  } else if (!isSynced) {
    warnings.push(
      'It acknowledges changes before they are on its disk: when it dies, it can lose those of the last two seconds. Set "appendfsync always", or REDIS_DURABILITY=always.',
    );
  }
  if (some(info => Number(info.get('maxmemory') ?? 0) > 0 && info.get('maxmemory_policy') !== 'noeviction')) {
    warnings.push('It drops data when it is full: set "maxmemory-policy noeviction", or threads lose their text.');
  }
  return warnings;
}

function fieldsOf(info: string): Map<string, string> {
  const pairs = info
    .split(/\r?\n/)
    .map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)] as const);
  return new Map(pairs.filter(([name]) => name !== ''));
}

export interface RedisStoreOptions extends RedisLinkOptions {
  /** Begins all keys: several products can share one server. */
  prefix: string;
  /** Told when the server begins to fail and when that is over: for the log, one sentence each. */
  onWarning: (message: string) => void;
}

/** Counts what is under way, so that closing can wait for it. */
function connectionGate(client: RedisClient) {
  const open = new Set<Promise<unknown>>();
  let closing: Promise<void> | undefined;

  async function finish(): Promise<void> {
    await Promise.allSettled(open);
    client.close();
  }

  return {
    async pass<Result>(run: () => Promise<Result>): Promise<Result> {
      if (closing) throw closedStore();
      const running = run();
      open.add(running);
      try {
        return await running;
      } finally {
        open.delete(running);
      }
    },
    close() {
      closing ??= finish();
      return closing;
    },
  };
}

/**
 * Threads in a Redis that any number of machines share, alone or a cluster. Connects with the first use. Every change of a
 * thread is one script on the server; what stands elsewhere in a cluster (texts, lists of an owner) is written around it so
 * that a stop between them leaves nothing that is wrong, only something that is tidied up later.
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
  const never = new AbortController().signal;

  /** What concerns one id is done one after the other, in the order of the asking; different ids do not wait for each other. */
  const inTurn = <Result>(id: string, run: () => Promise<Result>): Promise<Result> =>
    pass(async () => {
      const leave = await queue.enter(id, never);
      try {
        return await run();
      } finally {
        leave();
      }
    });

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
        if (found.state !== 'stored' || !(await threads.bury(found.value, 'deleted', now))) return false;
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
    mark: () => pass(async () => String((await client.send(keys.mark, ['GET', keys.mark])) ?? 0)),
    spend: {
      add: (entry, hold) => inTurn(`spend ${entry?.owner ?? hold}`, () => spend.add(entry, hold)),
      hold: hold => inTurn(`spend ${hold.owner}`, () => spend.hold(hold)),
      used: scope => pass(() => spend.used(scope)),
      rows: query => pass(() => spend.rows(query)),
    },
    time: () =>
      pass(async () => {
        const [seconds, microseconds] = partsOf(await client.send(keys.mark, ['TIME']));
        return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
      }),
    inspect: () => pass(() => redisInspection(client)),
    close,
  };
}
