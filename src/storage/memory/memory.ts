import type { JobId, Sha256, ThreadId } from '../../core/ids.ts';
import type { Job } from '../../core/job.ts';
import type { ExchangeStatus, StoredTurn, Thread, ThreadHead, Turn } from '../../core/thread.ts';
import {
  blobsOfTurns,
  changedHead,
  closedStore,
  endedJob,
  type GoneLookup,
  goneAs,
  isListedAfter,
  isUnused,
  refuseExisting,
  refuseExistingJob,
  refuseNotLive,
  storedJson,
  tombstoneLifeMs,
} from '../records.ts';
import { matchWords, queryWords } from '../search-words.ts';
import type {
  AtOnce,
  Fact,
  ListQuery,
  Lookup,
  Prunable,
  SearchHit,
  SearchQuery,
  Store,
  ThreadChange,
  Unused,
} from '../store.ts';
import { memorySpend } from './spend.ts';

/** The threads that a prune takes: whose time is over, but for originals of forks that stay. */
export function endingThreads(
  threads: ReadonlyMap<ThreadId, { head: ThreadHead }>,
  now: number,
  unused: Unused | undefined,
): Set<ThreadId> {
  const isOver = (head: ThreadHead) => head.expiresAt <= now || (unused !== undefined && isUnused(head, unused));
  const ending = new Set<ThreadId>();
  for (const [id, { head }] of threads) if (isOver(head)) ending.add(id);
  for (const [id, { head }] of threads) {
    if (ending.has(id)) continue;
    for (let at = head.parent?.thread; at !== undefined && ending.delete(at); )
      at = threads.get(at)?.head.parent?.thread;
  }
  return ending;
}

interface Kept {
  body: string;
  version: number;
  expiresAt: number;
}

/** Facts of one process, gone with it. */
export function memoryFacts(): AtOnce<'fact' | 'facts' | 'swapFact'> & { dropExpiredFacts(now: number): void } {
  const kept = new Map<string, Kept>();
  let lastVersion = 0;
  const live = (key: string, now: number) => {
    const found = kept.get(key);
    return found && found.expiresAt > now ? found : undefined;
  };
  const factOf = ({ body, version }: Kept): Fact => ({ value: JSON.parse(body), version });
  return {
    fact(key, now) {
      const found = live(key, now);
      return found && factOf(found);
    },
    facts(prefix, now) {
      const found = [...kept].filter(([key, { expiresAt }]) => key.startsWith(prefix) && expiresAt > now);
      return new Map(found.map(([key, each]) => [key, factOf(each)]));
    },
    swapFact({ key, version, value, expiresAt, now }) {
      if ((live(key, now)?.version ?? 0) !== version) return false;
      if (value === undefined) kept.delete(key);
      else kept.set(key, { body: storedJson(value), version: ++lastVersion, expiresAt });
      return true;
    },
    dropExpiredFacts(now) {
      for (const [key, { expiresAt }] of kept) if (expiresAt <= now) kept.delete(key);
    },
  };
}

export interface MemoryStoreOptions {
  /** The thread that was unused for longest goes when there would be more; it reads as expired then. */
  maxThreads?: number;
}

interface Held {
  head: ThreadHead;
  turns: Turn[];
  statuses: Map<string, ExchangeStatus>;
  compactions: Thread['compactions'];
  workflows: Map<string, Thread['workflows'][string]>;
  blobs: Set<Sha256>;
}

/** As the other stores keep it: a copy, without undefined members, every text well-formed. */
function stored<Value>(value: Value): Value {
  const copy: Value = JSON.parse(storedJson(value));
  return copy;
}

/** What the store holds; the order of `threads` is that of their last use. */
class Shelf {
  readonly threads = new Map<ThreadId, Held>();
  readonly tombstones = new Map<ThreadId, GoneLookup>();
  readonly leases = new Map<string, { holder: string; expiresAt: number }>();
  readonly jobs = new Map<JobId, Job>();
  readonly facts = memoryFacts();
  readonly #blobs = new Map<Sha256, { text: string; users: number }>();
  readonly #maxThreads: number;

  constructor(maxThreads: number) {
    this.#maxThreads = maxThreads;
  }

  find(id: ThreadId, now: number): Lookup<Held> {
    const held = this.threads.get(id);
    if (!held) return this.tombstones.get(id) ?? { state: 'unknown' };
    if (held.head.expiresAt <= now) return { state: 'expired', expiredAt: held.head.expiresAt };
    this.#use(id, held);
    return { state: 'live', value: held };
  }

  add(head: ThreadHead, over?: 'revive'): void {
    if (this.threads.has(head.id) || (!over && this.tombstones.has(head.id))) refuseExisting(head.id);
    this.tombstones.delete(head.id);
    const empty = { turns: [], compactions: [], statuses: new Map(), workflows: new Map(), blobs: new Set<Sha256>() };
    this.threads.set(head.id, { head: stored(head), ...empty });
    for (const [id, { head: oldest }] of this.threads) {
      if (this.threads.size <= this.#maxThreads) break;
      this.drop(id, { state: 'expired', expiredAt: Math.min(oldest.expiresAt, head.createdAt) });
    }
    // Otherwise the ids of threads that went would be kept without a bound.
    for (const id of this.tombstones.keys()) {
      if (this.tombstones.size <= this.#maxThreads * 10) break;
      this.tombstones.delete(id);
    }
  }

  drop(id: ThreadId, tombstone: GoneLookup): void {
    for (const sha of this.threads.get(id)?.blobs ?? []) {
      const blob = this.#blobs.get(sha);
      if (blob && --blob.users === 0) this.#blobs.delete(sha);
    }
    this.threads.delete(id);
    this.tombstones.set(id, tombstone);
  }

  commit(id: ThreadId, change: ThreadChange): number {
    const held = this.threads.get(id);
    if (!held) return refuseNotLive(id);
    const head = changedHead(held.head, change);
    // Copied before anything is kept: what cannot be copied must leave no half of a change behind.
    const { turns = [], blobs = [], workflow, compaction } = stored(change);
    held.head = head;
    held.turns.push(...turns);
    for (const { exchange } of turns) if (!held.statuses.has(exchange)) held.statuses.set(exchange, 'pending');
    if (change.exchange) held.statuses.set(change.exchange.id, change.exchange.status);
    if (workflow?.state) held.workflows.set(workflow.tool, workflow.state);
    else if (workflow) held.workflows.delete(workflow.tool);
    if (compaction) held.compactions.push(compaction);
    for (const { sha256, text } of blobs) {
      if (!this.#blobs.has(sha256)) this.#blobs.set(sha256, { text, users: 0 });
    }
    this.#refer(held, [...blobs.map(blob => blob.sha256), ...blobsOfTurns(turns)]);
    this.#use(id, held);
    return head.seq;
  }

  /** The texts that nobody needs who is not among these. */
  blobsOnlyOf(ids: ReadonlySet<ThreadId>): Sha256[] {
    const users = new Map<Sha256, number>();
    for (const id of ids)
      for (const sha of this.threads.get(id)?.blobs ?? []) users.set(sha, (users.get(sha) ?? 0) + 1);
    return [...users].filter(([sha, count]) => this.#blobs.get(sha)?.users === count).map(([sha]) => sha);
  }

  blob(sha: Sha256): string | undefined {
    return this.#blobs.get(sha)?.text;
  }

  #refer(held: Held, hashes: readonly Sha256[]): void {
    for (const sha of hashes) {
      const blob = this.#blobs.get(sha);
      if (!blob || held.blobs.has(sha)) continue;
      held.blobs.add(sha);
      blob.users++;
    }
  }

  #use(id: ThreadId, held: Held): void {
    this.threads.delete(id);
    this.threads.set(id, held);
  }
}

/** Threads in this process alone, gone with it: for tests and for calls that must leave nothing on the disk. */
export function createMemoryStore({ maxThreads = 1000 }: MemoryStoreOptions = {}): Store {
  const shelf = new Shelf(maxThreads);
  let changes = 0;
  const spend = memorySpend(run => opened(run));
  let closed = false;

  /** Refuses a closed store, and makes of what is thrown a rejection. */
  async function opened<Result>(run: () => Result): Promise<Result> {
    if (!closed) return run();
    throw closedStore();
  }

  const changing: Opened = run => {
    changes++;
    return opened(run);
  };

  return {
    kind: 'memory',
    defaultTimeoutHours: 3,

    create: (head, over) => changing(() => shelf.add(head, over)),
    read: (id, now) => opened(() => mapped(shelf.find(id, now), wholeThread)),
    head: (id, now) => opened(() => mapped(shelf.find(id, now), ({ head }) => structuredClone(head))),
    commit: (id, change) => changing(() => shelf.commit(id, change)),
    blobs: hashes =>
      opened(() => {
        const found = new Map<Sha256, string>();
        for (const sha of hashes) {
          const text = shelf.blob(sha);
          if (text !== undefined) found.set(sha, text);
        }
        return found;
      }),
    list: query => opened(() => listed(shelf, query).map(({ head }) => structuredClone(head))),
    search: query => opened(() => search(shelf, query)),
    remove: (id, now) =>
      changing(() => {
        const live = shelf.find(id, now).state === 'live';
        if (!live) return false;
        shelf.drop(id, { state: 'deleted', deletedAt: now });
        for (const { id: job, thread } of shelf.jobs.values()) if (thread === id) shelf.jobs.delete(job);
        return true;
      }),
    prune: (now, unused) =>
      changing(() => {
        const gone = prune(shelf, now, unused);
        spend.prune(now, id => shelf.threads.has(id));
        return gone;
      }),
    prunable: (now, unused) => opened(() => prunable(shelf, now, unused)),
    ...jobStore(shelf, opened, changing),
    lease: (id, holder, ttlMs, now) =>
      opened(() => {
        const current = shelf.leases.get(id);
        if (current && current.holder !== holder && current.expiresAt > now) return false;
        shelf.leases.set(id, { holder, expiresAt: now + ttlMs });
        return true;
      }),
    release: (id, holder) =>
      opened(() => {
        if (shelf.leases.get(id)?.holder === holder) shelf.leases.delete(id);
      }),
    fact: (key, now) => opened(() => shelf.facts.fact(key, now)),
    facts: (prefix, now) => opened(() => shelf.facts.facts(prefix, now)),
    swapFact: swap => opened(() => shelf.facts.swapFact(swap)),
    mark: () => opened(() => String(changes)),
    spend,
    async close() {
      closed = true;
    },
  };
}

type Opened = <Result>(run: () => Result) => Promise<Result>;

function jobStore(
  { jobs }: Shelf,
  opened: Opened,
  changing: Opened,
): Pick<Store, 'createJob' | 'job' | 'jobs' | 'endJob'> {
  return {
    createJob: job =>
      changing(() => {
        if (jobs.has(job.id)) refuseExistingJob(job.id);
        jobs.set(job.id, stored(job));
      }),
    job: (id, now) =>
      opened(() => {
        const job = jobs.get(id);
        return job && job.expiresAt > now ? structuredClone(job) : undefined;
      }),
    jobs: ({ owner, limit, now }) =>
      opened(() =>
        [...jobs.values()]
          .filter(job => job.owner === owner && job.expiresAt > now)
          .reverse()
          .sort((a, b) => b.createdAt - a.createdAt)
          .slice(0, Math.max(0, limit))
          .map(job => structuredClone(job)),
      ),
    endJob: (id, end) =>
      changing(() => {
        const job = jobs.get(id);
        const ended = job && endedJob(job, end);
        if (ended) jobs.set(id, stored(ended));
        return ended !== undefined;
      }),
  };
}

function mapped<From, To>(found: Lookup<From>, map: (value: From) => To): Lookup<To> {
  return found.state === 'live' ? { state: 'live', value: map(found.value) } : { ...found };
}

function wholeThread({ head, turns, statuses, compactions, workflows }: Held): Thread {
  const withStatus = (turn: Turn): StoredTurn => ({ ...turn, status: statuses.get(turn.exchange) ?? 'pending' });
  return structuredClone({
    ...head,
    turns: turns.map(withStatus),
    compactions,
    workflows: Object.fromEntries(workflows),
  });
}

function listed(shelf: Shelf, { owner, workspace, limit, now, ...page }: ListQuery): Held[] {
  return [...shelf.threads.values()]
    .filter(({ head }) => head.owner === owner && (workspace === undefined || head.workspace === workspace))
    .filter(({ head }) => head.expiresAt > now && isListedAfter(head, page))
    .sort((a, b) => b.head.updatedAt - a.head.updatedAt || (a.head.id < b.head.id ? 1 : -1))
    .slice(0, Math.max(0, limit));
}

function search(shelf: Shelf, { text, limit, ...query }: SearchQuery): SearchHit[] {
  const words = queryWords(text);
  const hits: SearchHit[] = [];
  if (words.length === 0) return hits;
  for (const held of listed(shelf, { ...query, limit: Number.POSITIVE_INFINITY })) {
    if (hits.length >= limit) break;
    const best = held.turns
      .filter(turn => held.statuses.get(turn.exchange) === 'done')
      .flatMap(({ seq, content }) => ({ seq, match: matchWords(content, words) }))
      .reduceRight<(SearchHit & { count: number }) | undefined>((found, { seq, match }) => {
        if (!match || match.count <= (found?.count ?? 0)) return found;
        return { thread: held.head, seq, ...match };
      }, undefined);
    if (best) hits.push({ thread: structuredClone(best.thread), seq: best.seq, snippet: best.snippet });
  }
  return hits;
}

function prune(shelf: Shelf, now: number, unused: Unused | undefined): number {
  for (const [id, { expiresAt }] of shelf.leases) if (expiresAt <= now) shelf.leases.delete(id);
  for (const [id, { expiresAt }] of shelf.jobs) if (expiresAt <= now) shelf.jobs.delete(id);
  shelf.facts.dropExpiredFacts(now);
  for (const [id, tombstone] of shelf.tombstones) {
    const at = tombstone.state === 'expired' ? tombstone.expiredAt : tombstone.deletedAt;
    if (at <= now - tombstoneLifeMs) shelf.tombstones.delete(id);
  }
  const ending = endingThreads(shelf.threads, now, unused);
  for (const id of ending) {
    const expiresAt = shelf.threads.get(id)?.head.expiresAt ?? now;
    shelf.drop(id, expiresAt <= now ? goneAs('expired', expiresAt) : goneAs('deleted', now));
  }
  return ending.size;
}

function prunable(shelf: Shelf, now: number, unused: Unused | undefined): Prunable {
  const ending = endingThreads(shelf.threads, now, unused);
  const blobs = shelf.blobsOnlyOf(ending);
  let bytes = 0;
  for (const sha of blobs) bytes += Buffer.byteLength(shelf.blob(sha) ?? '');
  for (const id of ending) {
    const held = shelf.threads.get(id);
    if (held) bytes += Buffer.byteLength(JSON.stringify(wholeThread(held)));
  }
  return { threads: ending.size, blobs: blobs.length, bytes };
}
