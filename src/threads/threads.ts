import { type ExchangeId, exchangeId, type ThreadId, threadId } from '../core/ids.ts';
import type { Clock, Emit, Random } from '../core/ports.ts';
import type { Compaction, ExchangeStatus, Thread, ThreadHead, Turn, WorkflowState } from '../core/thread.ts';
import { idFor, loadHead, loadThread, type Place } from '../memory/lookup.ts';
import { createRetention } from '../memory/upkeep/retention.ts';
import type { Store, ThreadChange } from '../storage/store.ts';
import { createLeases, type Exclusively } from './thread-lock.ts';

export interface ThreadsOptions {
  store: Store;
  clock: Clock;
  random: Random;
  emit: Emit;
  /** Hours after its last use until a thread expires; absent: the store's own default. */
  timeoutHours?: number;
}

/** What an exchange adds to its thread, before or after the model answers. */
export interface Addition {
  turns: Turn[];
  status: ExchangeStatus;
  blobs?: ThreadChange['blobs'];
  workflow?: { tool: string; state: WorkflowState | null };
  compaction?: Compaction;
  tokens?: number;
  costUsd?: number;
}

/** The threads of a store, as calls use them: found or refused by name, worked on by one call at a time. */
export interface Threads {
  readonly store: Store;
  /** Milliseconds that a thread lives after its last use. */
  readonly lifetimeMs: number;
  /** A new thread; nothing is stored before its first exchange. */
  start(place: Place, toolName: string): Thread;
  /**
   * Finds a thread by its id or `last` (the newest of the workspace). Throws INVALID_INPUT_FORMAT, THREAD_NOT_FOUND or
   * THREAD_EXPIRED; another owner's thread is not found.
   */
  find(reference: string, place: Place): Promise<Thread>;
  /** The same without its turns: for who reads the thread under its lease anyway. */
  findHead(reference: string, place: Place): Promise<ThreadHead>;
  exclusively: Exclusively;
  /** Reads a thread, as it is now under its lease, and closes exchanges that a dead process left open. */
  refresh(thread: Pick<ThreadHead, 'id' | 'owner'>): Promise<Thread>;
  newExchange(): ExchangeId;
  /** Stores an addition; resolves once it is durable. Answers the thread as it is then. */
  add(thread: Thread, exchange: ExchangeId, addition: Addition): Promise<Thread>;
  /** A new thread that begins with the turns up to `upToSeq` of another one; its own turns are numbered on from there. */
  fork(thread: Thread, upToSeq: number, title: string): Promise<ThreadHead>;
}

export function createThreads({ store, clock, random, emit, timeoutHours }: ThreadsOptions): Threads {
  const lifetimeMs = (timeoutHours ?? store.defaultTimeoutHours) * 3_600_000;
  const retention = createRetention({ store, clock, emit });
  const load = (id: ThreadId, owner: string) => loadThread(store, id, owner, clock.now());

  function touch(thread: Thread): Pick<ThreadChange, 'baseSeq' | 'updatedAt' | 'expiresAt'> {
    const now = clock.now();
    return { baseSeq: thread.seq, updatedAt: now, expiresAt: now + lifetimeMs };
  }

  function newHead(
    facts: Pick<ThreadHead, 'owner' | 'workspace' | 'toolName' | 'title' | 'initialContext'>,
  ): ThreadHead {
    const now = clock.now();
    const times = { createdAt: now, updatedAt: now, expiresAt: now + lifetimeMs };
    return { ...facts, ...times, id: threadId(random.uuid()), totals: { tokens: 0, costUsd: 0 }, seq: 0 };
  }

  return {
    store,
    lifetimeMs,
    exclusively: createLeases({ store, clock, emit, holder: random.uuid() }),
    newExchange: () => exchangeId(random.uuid()),

    start: ({ owner, workspace }, toolName) => ({
      ...newHead({ owner, workspace, toolName, title: '', initialContext: {} }),
      turns: [],
      compactions: [],
      workflows: {},
    }),

    async find(reference, place) {
      return load(await idFor(store, reference, place, clock.now()), place.owner);
    },

    async findHead(reference, place) {
      const now = clock.now();
      return loadHead(store, await idFor(store, reference, place, now), place.owner, now);
    },

    async refresh(thread) {
      const current = await load(thread.id, thread.owner);
      const open = new Set(current.turns.filter(turn => turn.status === 'pending').map(turn => turn.exchange));
      for (const id of open) {
        await store.commit(current.id, { ...touch(current), exchange: { id, status: 'interrupted' } });
      }
      return open.size > 0 ? load(thread.id, thread.owner) : current;
    },

    async add(thread, exchange, { turns, status, ...rest }) {
      const change: ThreadChange = { ...touch(thread), ...rest, turns, exchange: { id: exchange, status } };
      // Sent together, so that a store that gathers its writes waits for the disk once.
      const created = isNew(thread) ? store.create(headOf(thread)) : undefined;
      const [seq] = await Promise.all([store.commit(thread.id, change), created]);
      retention.begin();
      return withChange(thread, change, seq);
    },

    async fork(thread, upToSeq, title) {
      const parent = { thread: thread.id, seq: upToSeq };
      const child = { ...newHead({ ...headOf(thread), title }), parent, seq: upToSeq };
      await store.create(child);
      return child;
    },
  };
}

/** A thread is stored with its first exchange, so one without a turn is in no store yet. */
function isNew(thread: Thread): boolean {
  return thread.seq === 0;
}

function headOf({ turns: _turns, compactions: _compactions, workflows: _workflows, ...head }: Thread): ThreadHead {
  return head;
}

function withChange(thread: Thread, change: ThreadChange, seq: number): Thread {
  const { exchange, workflow, compaction } = change;
  const status = exchange?.status ?? 'done';
  const turns = thread.turns.map(turn => (turn.exchange === exchange?.id ? { ...turn, status } : turn));
  const workflows = { ...thread.workflows };
  if (workflow?.state === null) delete workflows[workflow.tool];
  else if (workflow) workflows[workflow.tool] = workflow.state;
  return {
    ...thread,
    seq,
    updatedAt: change.updatedAt,
    expiresAt: change.expiresAt,
    turns: [...turns, ...(change.turns ?? []).map(turn => ({ ...turn, status }))],
    compactions: compaction ? [...thread.compactions, compaction] : thread.compactions,
    workflows,
    totals: {
      tokens: thread.totals.tokens + (change.tokens ?? 0),
      costUsd: thread.totals.costUsd + (change.costUsd ?? 0),
    },
  };
}
