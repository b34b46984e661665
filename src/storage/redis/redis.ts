import type { Clock, Random } from '../../core/ports.ts';
import { redisBlobs } from '../../memory/stores/redis-blobs.ts';
import { inOrder } from '../../memory/stores/redis-in-order.ts';
import { redisInspection } from '../../memory/stores/redis-inspection.ts';
import { redisLeases } from '../../memory/stores/redis-leases.ts';
import { redisPrunable } from '../../memory/stores/redis-prunable.ts';
import type { Store } from '../store.ts';
import { closedRedis, type RedisWire, redisWire } from './cluster-client.ts';
import { redisFacts } from './facts.ts';
import { redisJobs } from './jobs.ts';
import { redisKeys } from './keys.ts';
import { redisPrune } from './prune.ts';
import { publicHead } from './records.ts';
import { redisSpend } from './spend.ts';
import { redisIndex } from './thread-index.ts';
import { redisThreads } from './threads.ts';

export interface RedisStoreOptions {
  /** `redis://user:password@host:port/database`, `rediss://` for TLS. Never shown. */
  url: string;
  /** File of the authorities (PEM) that are trusted for `rediss://`; absent: those of this machine. */
  caFile?: string | undefined;
  /** Begins all keys: several products can share one server. */
  prefix: string;
  /** Milliseconds after which a server that does not answer counts as gone, for now. */
  patienceMs: number;
  clock: Clock;
  random: Random;
  /** Told when the server begins to fail and when that is over: for the log, one sentence each. */
  onWarning: (message: string) => void;
}

/** Counts what is under way, so that closing can wait for it. */
function door(wire: RedisWire) {
  const open = new Set<Promise<unknown>>();
  let closing: Promise<void> | undefined;

  async function finish(): Promise<void> {
    await Promise.allSettled(open);
    wire.close();
  }

  return {
    async pass<Result>(run: () => Promise<Result>): Promise<Result> {
      if (closing) throw closedRedis();
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
  const wire = redisWire({ ...options, onWarning });
  const { clock, random } = options;
  const keys = redisKeys(prefix);
  const parts = { wire, keys, clock, random };
  const blobs = redisBlobs(wire, keys);
  const told = new Set<string>();
  const index = redisIndex(wire, keys, thread => {
    if (told.has(thread)) return;
    told.add(thread);
    onWarning(`Thread ${thread} is damaged in Redis; lists and searches leave it out.`);
  });
  const threads = redisThreads(parts, blobs, index);
  const jobs = redisJobs(parts);
  const leases = redisLeases(parts);
  const facts = redisFacts(parts);
  const spend = redisSpend(parts, threads);
  const prune = redisPrune(parts, { threads, jobs, facts, spend });
  const prunable = redisPrunable(parts, threads);
  const ordered = inOrder();
  const { pass, close } = door(wire);

  return {
    kind: 'redis',
    defaultTimeoutHours: 720,

    create: (head, over) => pass(() => ordered(head.id, () => threads.create(head, over))),
    read: (id, now) => pass(() => threads.read(id, now)),
    head: (id, now) =>
      pass(async () => {
        const found = await threads.find(id);
        if (found.state !== 'stored') return found;
        const head = publicHead(found.value);
        return head.expiresAt > now ? { state: 'live', value: head } : { state: 'expired', expiredAt: head.expiresAt };
      }),
    commit: (id, change) => pass(() => ordered(id, () => threads.commit(id, change))),
    blobs: hashes => pass(() => blobs.read(hashes)),
    list: query => pass(() => index.list(query)),
    search: query => pass(() => index.search(query)),
    remove: (id, now) =>
      pass(() =>
        ordered(id, async () => {
          const found = await threads.find(id);
          if (found.state !== 'stored' || !(await threads.bury(found.value, 'deleted', now))) return false;
          await jobs.dropOfThread(found.value.head.owner, id);
          return true;
        }),
      ),
    prune: (now, unused) => pass(() => prune(now, unused)),
    prunable: (now, unused) => pass(() => prunable(now, unused)),
    createJob: job => pass(() => ordered(job.id, () => jobs.create(job))),
    job: (id, now) => pass(() => jobs.job(id, now)),
    jobs: query => pass(() => jobs.jobs(query)),
    endJob: (id, end) => pass(() => ordered(id, () => jobs.end(id, end))),
    lease: (id, holder, ttlMs, now) => pass(() => ordered(id, () => leases.lease(id, holder, ttlMs, now))),
    release: (id, holder) => pass(() => ordered(id, () => leases.release(id, holder))),
    fact: (key, now) => pass(() => facts.fact(key, now)),
    facts: (prefixOfKeys, now) => pass(() => facts.facts(prefixOfKeys, now)),
    swapFact: swap => pass(() => ordered(`fact ${swap.key}`, () => facts.swapFact(swap))),
    mark: () => pass(async () => String((await wire.send(keys.mark, ['GET', keys.mark])) ?? 0)),
    spend: {
      add: (entry, hold) => pass(() => ordered(`spend ${entry?.owner ?? hold}`, () => spend.add(entry, hold))),
      hold: hold => pass(() => ordered(`spend ${hold.owner}`, () => spend.hold(hold))),
      used: scope => pass(() => spend.used(scope)),
      rows: query => pass(() => spend.rows(query)),
    },
    inspect: () => pass(() => redisInspection(wire)),
    close,
  };
}
