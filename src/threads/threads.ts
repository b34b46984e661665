import { every, withTimeout } from '../core/concurrency.ts';
import { type AppError, inputError, isAppError, warnFrom } from '../core/errors.ts';
import { type ExchangeId, exchangeId, isThreadId, normalizeId, type ThreadId, threadId } from '../core/ids.ts';
import type { Clock, Emit, Random } from '../core/ports.ts';
import { safeCut } from '../core/text.ts';
import type { ExchangeEnd, Thread, ThreadHead, Turn, WorkflowState } from '../core/thread.ts';
import type { Lookup, Store, ThreadChange } from '../storage/store.ts';
import { createThreadLocks, type LeaseOptions, type WithThreadLock } from './locks.ts';

/** Whose thread, and where it lives. */
export type ThreadScope = Pick<ThreadHead, 'owner' | 'workspace'>;

const maxIdLength = 36;

const minuteMs = 60_000;

/** A thread lives at least this long after a question came: models take their time. */
const answerMs = 60 * minuteMs;

/** Forks of forks are followed this far back. */
const maxAncestors = 20;

/** The id that a caller means: a UUID, or `last` for the newest thread of the workspace. */
export async function idFor(store: Store, reference: string, place: ThreadScope, now: number): Promise<ThreadId> {
  const id = normalizeId(reference);
  if (isThreadId(id)) return id;
  if (id === 'last') {
    // One that was used while the clock was ahead is newer than no other. Clocks of machines differ a little.
    const newest = { ...place, limit: 1, now };
    const usual = await store.list({ ...newest, before: now + minuteMs });
    const [found] = usual.length > 0 ? usual : await store.list(newest);
    if (found) return found.id;
    throw inputError('"last" matches nothing: this project has no threads yet.', {
      code: 'THREAD_NOT_FOUND',
      next: 'Call any tool without continuation_id to start a thread.',
    });
  }
  // Half of a secret is not known as one any more: of what is too long for an id, only the beginning is shown.
  const shown = reference.length > maxIdLength ? `${safeCut(reference, 12)}…` : reference;
  throw inputError(`Invalid continuation_id "${shown}": expected the UUID from a continuation_offer, or "last".`, {
    next: 'Send the id exactly as it was given, or "last" for the newest thread of this project; a question without one begins a new thread.',
    validationErrors: [{ field: 'continuation_id', error: 'not a UUID', allowed: ['a UUID', 'last'] }],
  });
}

/** A thread with what it shares with those it was forked off: turns, and summaries. Another owner's thread is not found. */
export async function loadThread(store: Store, id: ThreadId, owner: string, now: number): Promise<Thread> {
  const thread = ownedOrRefuse(await store.read(id, now), id, owner);
  if (!thread.parent) return thread;
  const shared = await ancestry(store, thread);
  const turns = [...shared.flatMap(part => part.turns), ...thread.turns];
  const compactions = [...shared.flatMap(part => part.compactions), ...thread.compactions];
  return { ...thread, turns, compactions };
}

/** The ids that texts of a thread may have been masked under: its own, and those of the threads that it begins with. */
export async function scopesOf(store: Store, thread: Child): Promise<[ThreadId, ...ThreadId[]]> {
  const ids: [ThreadId, ...ThreadId[]] = [thread.id];
  for await (const { original } of originals(thread, id => store.head(id, 0))) ids.push(original.id);
  return ids;
}

type Child = Pick<ThreadHead, 'id' | 'owner' | 'parent'>;

/** The threads that a thread was forked off, the nearest first, each with the turn after which the way to the thread leaves it. */
async function* originals<Head extends Child>(thread: Child, read: (id: ThreadId) => Promise<Lookup<Head>>) {
  const seen = new Set([thread.id]);
  for (let next = thread.parent; next && !seen.has(next.thread) && seen.size <= maxAncestors; ) {
    seen.add(next.thread);
    const found: Lookup<Head> = await read(next.thread);
    if (found.state !== 'live' || found.value.owner !== thread.owner) return;
    yield { original: found.value, seq: next.seq };
    next = found.value.parent;
  }
}

/** What stood before the fork point, oldest first. An original that is gone leaves the fork with its own turns. */
async function ancestry(store: Store, thread: Thread): Promise<Pick<Thread, 'turns' | 'compactions'>[]> {
  const chain: Pick<Thread, 'turns' | 'compactions'>[] = [];
  let upTo = Number.POSITIVE_INFINITY;
  // An expired original is still there until it is pruned.
  for await (const { original, seq } of originals(thread, id => store.read(id, 0))) {
    // A fork may begin before the point where its own original was forked off.
    upTo = Math.min(upTo, seq);
    const shared = original.turns.filter(turn => turn.seq <= upTo);
    const last = shared.at(-1);
    // Its prompts begin as those did that led to the fork point: with the summary that stood in them, not with a later one.
    const compactions = original.compactions.filter(
      ({ upToSeq, createdAt }) => last !== undefined && upToSeq < last.seq && createdAt <= last.timestamp,
    );
    chain.unshift({ turns: shared, compactions });
  }
  return chain;
}

function ownedOrRefuse<Head extends ThreadHead>(found: Lookup<Head>, id: ThreadId, owner: string): Head {
  switch (found.state) {
    case 'live':
      if (found.value.owner === owner) return found.value;
      throw notFound(id);
    case 'expired':
      throw inputError(`Thread ${id} expired at ${new Date(found.expiredAt).toISOString()}.`, {
        code: 'THREAD_EXPIRED',
        next: 'Omit continuation_id to start a new thread. CONVERSATION_TIMEOUT_HOURS sets how long threads last.',
      });
    case 'deleted':
      throw notFound(id, ` It was deleted at ${new Date(found.deletedAt).toISOString()}.`);
    case 'unknown':
      throw notFound(id);
  }
}

const notFound = (id: ThreadId, why = ''): AppError =>
  inputError(`Unknown thread ${id}.${why}`, {
    code: 'THREAD_NOT_FOUND',
    next: 'List this project\'s threads with "threads", use "last", or omit continuation_id to start a new thread.',
  });

/** How often, in milliseconds, a store is tried that failed, how many times, and how many answers wait for it at most. */
const lateEveryMs = 2_000;
const lateTries = 1_800;
const maxLate = 100;

/** Answers that a store could not take, in memory until it can: at most one of each thread, whose next call waits for it. */
function createLateAnswers(clock: Clock, emit: Emit, exclusively: WithThreadLock) {
  const waiting = new Map<ThreadId, () => Promise<unknown>>();
  const { signal } = new AbortController();

  /** Expects to run under the thread's lock. Rejects where the store still fails. */
  async function flush(id: ThreadId, isLast = false): Promise<void> {
    const store = waiting.get(id);
    if (!store) return;
    let outcome = 'is stored now.';
    try {
      await store();
    } catch (error) {
      if (isPassing(error) && !isLast) throw error;
      outcome = `cannot be stored: ${isAppError(error) ? error.message : String(error)}`;
    }
    waiting.delete(id);
    emit({ type: 'warning', where: 'store', message: `An answer in thread ${id} that was not persisted ${outcome}` });
  }

  function flushLater(id: ThreadId, tries: number): void {
    clock.after(lateEveryMs, () => {
      if (tries === 0) return void flushLast(id);
      exclusively(id, { signal }, () => flush(id)).catch(() => flushLater(id, tries - 1));
    });
  }

  /** Where not even the thread can be had, that is the end of it. */
  const flushLast = (id: ThreadId) => exclusively(id, { signal }, () => flush(id, true)).catch(() => flush(id, true));

  return {
    flush,
    /** False where it cannot be kept. */
    keep(id: ThreadId, error: unknown, store: () => Promise<unknown>): boolean {
      if (!isPassing(error) || waiting.has(id) || waiting.size >= maxLate) return false;
      waiting.set(id, store);
      flushLater(id, lateTries);
      return true;
    },
    /** The last try, as the process ends. */
    close: () => withTimeout(clock, lateEveryMs, Promise.all([...waiting.keys()].map(flushLast))),
  };
}

const isPassing = (error: unknown): boolean =>
  isAppError(error) && ['unavailable', 'storage_full'].includes(error.details.class);

/** Where the shared state has what waits for an answer in a thread: the keys go on with the thread's id. */
export const runPrefixes = ['run/', 'run-body/'] as const;

/** Not with the first write, which somebody waits for. */
const firstAfterMs = 30_000;

const everyMs = 86_400_000;

export interface ThreadsOptions extends Omit<LeaseOptions, 'holder'> {
  random: Random;
  /** Hours after its last use until a thread expires; absent: the store's own default. */
  timeoutHours?: number;
}

/** What an exchange adds to its thread, before or after the model answers. */
export interface Addition
  extends ExchangeEnd,
    Pick<ThreadChange, 'blobs' | 'workflow' | 'compaction' | 'tokens' | 'costUsd'> {
  turns: Turn[];
}

export type Threads = ReturnType<typeof createThreads>;

/** Takes what expired out of the store, once a day until it is closed, and never in anybody's way. */
function createPruning(store: Store, clock: Clock, emit: Emit) {
  const prune = () => store.prune(clock.now()).catch(warnFrom(emit, 'prune'));
  let stop: (() => void) | undefined;
  return {
    /** Called with each write: a process that never writes leaves the store as it is. */
    begin(): void {
      stop ??= every(clock, everyMs, prune, firstAfterMs);
    },
    close(): void {
      stop?.();
      stop = () => {};
    },
  };
}

/** The threads of a store, as calls use them: found or refused by name, worked on by one call at a time. */
export function createThreads({ store, clock, random, emit, timeoutHours }: ThreadsOptions) {
  const lifetimeMs = (timeoutHours ?? store.defaultTimeoutHours) * 3_600_000;
  const pruning = createPruning(store, clock, emit);
  const holder = random.uuid();
  const exclusively = createThreadLocks({ store, clock, emit, holder });
  const late = createLateAnswers(clock, emit, exclusively);
  const load = (id: ThreadId, owner: string) => loadThread(store, id, owner, clock.now());

  function touch(thread: Pick<Thread, 'seq'>): Pick<ThreadChange, 'baseSeq' | 'holder' | 'updatedAt' | 'expiresAt'> {
    const now = clock.now();
    return { baseSeq: thread.seq, holder, updatedAt: now, expiresAt: now + lifetimeMs };
  }

  function changeOf(seq: number, id: ExchangeId, { status, attempts, ...rest }: Addition): ThreadChange {
    const change = { ...touch({ seq }), ...rest, exchange: { id, status, ...(attempts && { attempts }) } };
    const isOpen = status === 'pending' && lifetimeMs < answerMs;
    return isOpen ? { ...change, expiresAt: change.updatedAt + answerMs } : change;
  }

  function newHead(facts: Pick<ThreadHead, 'owner' | 'workspace' | 'toolName' | 'title' | 'initialContext'>) {
    const now = clock.now();
    const times = { createdAt: now, updatedAt: now, expiresAt: now + lifetimeMs };
    return { ...facts, ...times, id: threadId(random.uuid()), totals: { tokens: 0, costUsd: 0 }, seq: 0 };
  }

  return {
    store,
    /** Milliseconds that a thread lives after its last use. */
    lifetimeMs,
    exclusively,
    /** Stores what a store that failed could not take so far, and takes nothing more out of it. */
    close() {
      pruning.close();
      return late.close();
    },
    newExchange: () => exchangeId(random.uuid()),

    /** A new thread; nothing is stored before its first exchange. */
    start: ({ owner, workspace }: ThreadScope, toolName: string): Thread => ({
      ...newHead({ owner, workspace, toolName, title: '', initialContext: {} }),
      turns: [],
      compactions: [],
      workflows: {},
    }),

    /** By its id, or `last` of the workspace. Throws INVALID_INPUT_FORMAT, THREAD_EXPIRED, or THREAD_NOT_FOUND, also for another owner's. */
    find: async (reference: string, place: ThreadScope): Promise<Thread> =>
      load(await idFor(store, reference, place, clock.now()), place.owner),

    /** The same without its turns: for who reads the thread under its lease anyway. */
    async findHead(reference: string, place: ThreadScope): Promise<ThreadHead> {
      const now = clock.now();
      const id = await idFor(store, reference, place, now);
      return ownedOrRefuse(await store.head(id, now), id, place.owner);
    },

    /** Reads a thread, as it is now under its lease, and closes exchanges that a dead process left open. */
    async refresh(thread: Pick<ThreadHead, 'id' | 'owner'>): Promise<Thread> {
      await late.flush(thread.id);
      const current = await load(thread.id, thread.owner);
      const open = new Set(current.turns.filter(turn => turn.status === 'pending').map(turn => turn.exchange));
      for (const id of open)
        await store.commit(current.id, { ...touch(current), exchange: { id, status: 'interrupted' } });
      return open.size > 0 ? load(thread.id, thread.owner) : current;
    },

    /** Stores an addition; resolves once it is durable. Answers the thread as it is then. */
    async add(thread: Thread, exchange: ExchangeId, addition: Addition): Promise<Thread> {
      const change = changeOf(thread.seq, exchange, addition);
      // Sent together, so that a store that gathers its writes waits for the disk once.
      // A thread is stored with its first exchange, so one without a turn is in no store yet.
      const created = thread.seq === 0 ? store.create(headOf(thread)) : undefined;
      const [seq] = await Promise.all([store.commit(thread.id, change), created]);
      pruning.begin();
      return withChange(thread, change, seq);
    },

    /** Adds it once a store works again that refused it, to the thread as it was. False where that will not happen. */
    addLater: ({ id, owner, seq }: Thread, exchange: ExchangeId, addition: Addition, error: unknown): boolean =>
      late.keep(id, error, async () => {
        const { turns } = await load(id, owner);
        // The store may have taken it, and only its word got lost.
        if (turns.some(turn => turn.exchange === exchange && turn.status === addition.status)) return;
        await store.commit(id, changeOf(seq, exchange, addition));
      }),

    /** Removes a thread with what waits in it; false when it was not live. Under its lease. */
    async remove(id: ThreadId): Promise<boolean> {
      const removed = await store.remove(id, clock.now());
      const now = clock.storeTime();
      for (const prefix of runPrefixes) {
        for (const [key, { version }] of await store.facts(prefix + id, now))
          await store.swapFact({ key, version, expiresAt: now, now });
      }
      return removed;
    },

    /** A new thread that begins with the turns up to `upToSeq` of another one; its own turns are numbered on from there. */
    async fork(thread: Thread, upToSeq: number, title: string): Promise<ThreadHead> {
      const begun = { parent: { thread: thread.id, seq: upToSeq }, seq: upToSeq };
      const child = { ...newHead({ ...headOf(thread), title }), ...begun };
      await store.create(child);
      for (const workflow of workflowsAt(thread, upToSeq)) await store.commit(child.id, { ...touch(child), workflow });
      return child;
    },
  };
}

const headOf = ({ turns: _turns, compactions: _compactions, workflows: _workflows, ...head }: Thread): ThreadHead =>
  head;

/** The workflows of which no step came after a turn. What the others knew then is not kept. */
function workflowsAt({ turns, workflows }: Thread, upToSeq: number): { tool: string; state: WorkflowState }[] {
  const isLater = (tool: string) =>
    turns.some(({ seq, status, toolName }) => seq > upToSeq && status === 'done' && toolName === tool);
  const states = Object.entries(workflows).map(([tool, state]) => ({ tool, state }));
  return states.filter(({ tool }) => !isLater(tool));
}

function withChange(thread: Thread, change: ThreadChange, seq: number): Thread {
  const { exchange, workflow, compaction } = change;
  const { id: _, ...end } = exchange ?? { status: 'done' };
  const turns = thread.turns.map(turn => (turn.exchange === exchange?.id ? { ...turn, ...end } : turn));
  const workflows = { ...thread.workflows };
  if (workflow?.state === null) delete workflows[workflow.tool];
  else if (workflow) workflows[workflow.tool] = workflow.state;
  return {
    ...thread,
    seq,
    updatedAt: change.updatedAt,
    expiresAt: change.expiresAt,
    turns: [...turns, ...(change.turns ?? []).map(turn => ({ ...turn, ...end }))],
    compactions: compaction ? [...thread.compactions, compaction] : thread.compactions,
    workflows,
    totals: {
      tokens: thread.totals.tokens + (change.tokens ?? 0),
      costUsd: thread.totals.costUsd + (change.costUsd ?? 0),
    },
  };
}
