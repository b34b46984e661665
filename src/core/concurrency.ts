import { abortError, storageError, throwIfAborted } from './errors.ts';
import type { Clock } from './ports.ts';

/** Runs over all items, at most `limit` at a time; results are in the order of the items. The first failure or an abort ends it. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  limit: number,
  run: (item: Item) => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result[]> {
  const results: Result[] = [];
  const queue = items.entries();
  let failed = false;
  async function work(): Promise<void> {
    for (const [index, item] of queue) {
      if (failed) return;
      try {
        throwIfAborted(signal);
        results[index] = await run(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  }
  // every worker is waited for, so that nothing goes on behind a call that has failed
  const settled = await Promise.allSettled(Array.from({ length: Math.min(limit, items.length) }, work));
  for (const outcome of settled) if (outcome.status === 'rejected') throw outcome.reason;
  return results;
}

/** Lets callers of one key through one at a time, in the order they came. */
export function createQueue() {
  const last = new Map<string, Promise<void>>();

  /** Resolves when it is this caller's turn; the result ends the turn. Rejects when the signal is aborted while waiting. */
  async function enter(key: string, signal?: AbortSignal, onWait?: () => void) {
    throwIfAborted(signal);
    const before = last.get(key);
    const { promise: turn, resolve: end } = Promise.withResolvers<void>();
    const mine = (before ?? Promise.resolve()).then(() => turn);
    last.set(key, mine);
    const leave = () => {
      end();
      if (last.get(key) === mine) last.delete(key);
    };
    if (before) {
      onWait?.();
      try {
        await (signal ? orAbort(before, signal) : before);
      } catch {
        // Who comes next still waits for those before.
        end();
        void mine.then(leave);
        throw abortError(signal);
      }
    }
    return leave;
  }

  return {
    enter,
    /** Runs `work` when it is this caller's turn, which ends with it; rejects as `enter` does while waiting. */
    async run<Result>(key: string, work: () => Promise<Result>, signal?: AbortSignal, onWait?: () => void) {
      const leave = await enter(key, signal, onWait);
      return Promise.resolve().then(work).finally(leave);
    },
  };
}

/** The promise, unless the signal comes first; then it rejects at once for that, whether and however the promise reacts. */
export async function orAbort<T>(promise: PromiseLike<T>, signal: AbortSignal | undefined): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const forget = onAbort(signal, () => reject(abortError(signal)));
  try {
    return await Promise.race([aborted, promise]);
  } catch (error) {
    throwIfAborted(signal);
    throw error;
  } finally {
    forget();
  }
}

/** Calls the listener once the signal is aborted, at once where it was before; answers what takes it away again. */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal?.aborted) listener();
  else signal?.addEventListener('abort', listener, { once: true });
  return () => signal?.removeEventListener('abort', listener);
}

/** Waits for `work`, but no longer than `ms`; undefined: it takes longer. */
export async function withTimeout<Result>(
  clock: Pick<Clock, 'after'>,
  ms: number,
  work: Promise<Result>,
): Promise<Result | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const stop = clock.after(ms, () => resolve(undefined));
  return Promise.race([work, late]).finally(stop);
}

/** The same, or until the signal is aborted, for work whose waiting keeps the process alive. Absent work: sleeps. */
export async function sleepUntil(
  clock: Pick<Clock, 'sleep'>,
  ms: number,
  work: Promise<unknown> | undefined,
  signal?: AbortSignal,
): Promise<void> {
  const enough = new AbortController();
  // However the pause ends, whoever waits looks for himself what there is.
  const pause = clock.sleep(ms, signal ? AbortSignal.any([signal, enough.signal]) : enough.signal).catch(() => {});
  await Promise.race(work ? [pause, work] : [pause]);
  enough.abort();
}

/** Runs with a signal that is aborted after `ms`, for `reason`, or with the parent. */
export async function withDeadline<Result>(
  clock: Pick<Clock, 'after'>,
  ms: number,
  run: (signal: AbortSignal) => Promise<Result>,
  parent?: AbortSignal,
  reason?: () => Error,
): Promise<Result> {
  const late = new AbortController();
  const stop = clock.after(ms, () => late.abort(reason?.()));
  try {
    return await run(parent ? AbortSignal.any([parent, late.signal]) : late.signal);
  } finally {
    stop();
  }
}

/** Does `work`, which may not fail, each `ms` after it was done, until the result is called; the first time after `firstMs`. */
export function every(clock: Pick<Clock, 'after'>, ms: number, work: () => unknown, firstMs = ms): () => void {
  let stop: (() => void) | undefined = clock.after(firstMs, run);
  async function run(): Promise<void> {
    await work();
    stop &&= clock.after(ms, run);
  }
  return () => {
    stop?.();
    stop = undefined;
  };
}

const maxTries = 200;

/**
 * Makes a change anew as long as it answers undefined, since somebody came between. Each try that fails is a success of another
 * process: so many in a row mean that something is wrong.
 */
export async function uncontended<Result>(what: string, change: () => Promise<Result | undefined>): Promise<Result> {
  for (let tries = 0; tries < maxTries; tries++) {
    const result = await change();
    if (result !== undefined) return result;
  }
  throw storageError('unavailable', `${what} is changed by others without a pause.`, {
    retryable: true,
    next: 'Try again.',
  });
}

/** Makes a change of a database of SQLite that is whole or did not happen. */
export function wholeChange<Result>(
  db: { exec(sql: string): void; readonly isTransaction: boolean },
  change: () => Result,
): Result {
  db.exec('BEGIN IMMEDIATE');
  try {
    const result = change();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    // SQLite has ended it already where the disk failed.
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** After a piece the next words are gathered for so many milliseconds, or until they are so many characters. */
const gatherMs = 40;
const gatherLength = 4_096;

/** Sends a text on as it is written: the first words at once, then one piece at a time with all that came since the last one. */
export function gatherText(clock: Pick<Clock, 'after'>, send: (text: string) => Promise<unknown>) {
  let text = '';
  let isSending = false;
  let hurry = () => {};
  let then: (() => void) | undefined;
  const isEnough = () => then !== undefined || text.length >= gatherLength;

  async function flush(): Promise<void> {
    isSending = true;
    while (text !== '') {
      const { promise: gathered, resolve } = Promise.withResolvers<void>();
      hurry = resolve;
      const stop = clock.after(gatherMs, resolve);
      const piece = text;
      text = '';
      await send(piece);
      if (!isEnough()) await gathered;
      stop();
    }
    isSending = false;
    then?.();
  }

  function look(): void {
    if (!isSending) void flush();
    else if (isEnough()) hurry();
  }

  return {
    write(delta: string): void {
      if (then) return;
      text += delta;
      look();
    },
    /** `after` comes behind the last piece; what is written later is not sent. */
    end(after: () => void): void {
      then = after;
      look();
    },
  };
}

/** Puts a value last in a map, which forgets what was put first beyond `most` entries. */
export function remember<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.size > most ? map.keys() : [];
  if (oldest !== undefined) map.delete(oldest);
}
