import { createHash } from 'node:crypto';
import { storageError } from '../../core/errors.ts';
import { type JobId, type Sha256, sha256, type ThreadId } from '../../core/ids.ts';
import type { JobReply } from '../../core/job.ts';
import type { JsonObject } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import { createQueue } from '../../memory/queue.ts';
import type { Fact, Store } from '../../storage/store.ts';

/** A call that may come again, until its reply arrived. */
export interface LoggedCall {
  id: string;
  /** Of tool and arguments: the same name for another call is refused. */
  same: Sha256;
  /** `interrupted`: nobody works on it any more, and there is no answer. */
  status: 'running' | 'done' | 'interrupted';
  /** The process that works on it: it holds a lease under this name for as long as it does. */
  holder: string;
  /** Its caller is gone without a word: who sends the same call may have it. */
  lost?: boolean;
  /** When somebody in another process last waited for it (epoch milliseconds). */
  wantedAt?: number;
  /** The thread it works on, and the thread's `seq` before it. Absent: none, or not known yet. */
  thread?: ThreadId;
  baseSeq?: number;
  startedAt: number;
  expiresAt: number;
  /** What it answered. */
  reply?: JobReply;
  /** The answer was that it goes on as this job. */
  job?: JobId;
}

/** The calls of one key as they were read. */
export interface Logged {
  version: number;
  calls: readonly LoggedCall[];
}

/** The calls that may come again, in the store: shared by its processes, gone when their time is over. */
export interface CallLog {
  read(key: Sha256): Promise<Logged>;
  /**
   * Adds a call; is in the store before anything that is asked of it later. `seen` saves a look. `unhurried`: what is asked
   * later comes soon, and takes it along.
   */
  add(key: Sha256, call: LoggedCall, seen: Logged, unhurried?: boolean): Promise<void>;
  /** The same, only where nothing changed since `seen`: false when another call came before. */
  claim(key: Sha256, call: LoggedCall, seen: Logged): Promise<boolean>;
  /** Changes a call that is there; undefined removes it. What is asked in one breath is one change of the record. */
  change(key: Sha256, id: string, change: (call: LoggedCall) => LoggedCall | undefined): Promise<void>;
}

const maxTries = 50;
/** Calls of one key that are kept: the newest. */
const mostCalls = 8;

export function createCallLog(store: Pick<Store, 'fact' | 'swapFact'>, clock: Clock): CallLog {
  const nameOf = (key: Sha256) => `call/${key}`;

  async function read(key: Sha256): Promise<Logged> {
    const now = clock.now();
    const fact: Fact | undefined = await store.fact(nameOf(key), now);
    const calls = fact ? unsealed(fact.value) : [];
    return { version: fact?.version ?? 0, calls: calls.filter(({ expiresAt }) => expiresAt > now) };
  }

  function swap(key: Sha256, version: number, calls: readonly LoggedCall[], unhurried = false): Promise<boolean> {
    const kept = calls.slice(-mostCalls);
    const expiresAt = Math.max(0, ...kept.map(call => call.expiresAt));
    const value = kept.length > 0 ? sealed(kept) : undefined;
    return store.swapFact({ key: nameOf(key), version, value, expiresAt, now: clock.now(), unhurried });
  }

  /** Nobody waits for it. */
  async function changeAll(key: Sha256, change: ChangeAll): Promise<void> {
    for (let tries = 0; tries < maxTries; tries++) {
      const { version, calls } = await read(key);
      const changed = change(calls);
      if (version === 0 && changed.length === 0) return;
      if (await swap(key, version, changed, true)) return;
    }
    throw storageError('unavailable', 'The record of a call is changed by others without a pause.', {
      next: 'Try again.',
    });
  }

  const gather = gathering(changeAll);

  return {
    read,
    async add(key, call, { version, calls }, unhurried) {
      if (await swap(key, version, [...calls, call], unhurried)) return;
      await changeAll(key, others => [...others.filter(({ id }) => id !== call.id), call]);
    },
    claim: (key, call, { version, calls }) => swap(key, version, [...calls, call]),
    change: (key, id, change) =>
      gather(key, calls => calls.flatMap(call => (call.id === id ? (change(call) ?? []) : [call]))),
  };
}

type ChangeAll = (calls: readonly LoggedCall[]) => LoggedCall[];

/**
 * Changes of one key that come in one breath are made as one: a reply that is written at once has arrived by then, and its
 * record goes without ever having held it. Those that come later wait for those before them.
 */
function gathering(make: (key: Sha256, change: ChangeAll) => Promise<void>): typeof make {
  const queue = createQueue();
  const open = new Map<Sha256, { changes: ChangeAll[]; done: Promise<void> }>();
  const never = new AbortController().signal;

  async function run(key: Sha256, changes: readonly ChangeAll[]): Promise<void> {
    const leave = await queue.enter(key, never);
    try {
      await aBreath();
      open.delete(key);
      await make(key, calls => changes.reduce<LoggedCall[]>((before, change) => change(before), [...calls]));
    } finally {
      leave();
    }
  }

  return (key, change) => {
    const found = open.get(key);
    if (found) {
      found.changes.push(change);
      return found.done;
    }
    const changes = [change];
    const done = run(key, changes);
    open.set(key, { changes, done });
    return done;
  };
}

/** A transport tells that a reply arrived in the turn after it wrote it. */
function aBreath(): Promise<void> {
  return new Promise(resolve => setImmediate(() => setImmediate(resolve)));
}

export function hashOf(text: string): Sha256 {
  return sha256(createHash('sha256').update(text).digest('hex'));
}

function sealed(calls: readonly LoggedCall[]): JsonObject {
  const body = JSON.stringify(calls);
  return { body, seal: hashOf(body) };
}

/** What was damaged on the disk counts as not there: a wrong answer would be worse than none. */
function unsealed({ body, seal }: JsonObject): LoggedCall[] {
  if (typeof body !== 'string' || hashOf(body) !== seal) return [];
  const calls: LoggedCall[] = JSON.parse(body);
  return calls;
}
