import { createQueue, every } from '../core/concurrency.ts';
import { throwIfAborted, warnFrom } from '../core/errors.ts';
import type { Clock, Emit } from '../core/ports.ts';
import type { Store } from '../storage/store.ts';

export interface LeaseOptions {
  store: Store;
  clock: Clock;
  emit: Emit;
  /** Names this process among those that share the store. */
  holder: string;
}

export interface ExclusiveOptions {
  signal: AbortSignal;
  /** Called when the thread is taken and the call has to wait: for others of this process, and then once more for those of others. */
  onWait?: () => void;
}

/** Runs work on a thread, or on a run that waits in one, while no other call, of this or another process, does. */
export type WithThreadLock = ReturnType<typeof createThreadLocks>;

/** A process that died holds a thread for this long at the most. */
const leaseMs = 6_000;
const renewEveryMs = 2_000;
const pollMs = 50;

/** Within the process calls queue in the order they came; between processes a lease in the store decides. */
export function createThreadLocks({ store, clock, emit, holder }: LeaseOptions) {
  const queue = createQueue();
  const warn = warnFrom(emit, 'thread lease');

  return <Result>(id: string, { signal, onWait }: ExclusiveOptions, work: () => Promise<Result>): Promise<Result> => {
    const run = async () => {
      for (let tries = 0; !(await store.lease(id, holder, leaseMs, clock.storeTime())); tries++) {
        if (tries === 0) onWait?.();
        throwIfAborted(signal);
        await clock.sleep(pollMs, signal);
      }
      // Where it fails the exchange goes on: the commit's own check tells whether somebody came between.
      const renew = () => void store.lease(id, holder, leaseMs, clock.storeTime()).catch(warn);
      const stop = every(clock, renewEveryMs, renew);
      try {
        return await work();
      } finally {
        stop();
        // What is not given back lapses by itself, and what the work brought must not be lost for it.
        await store.release(id, holder).catch(warn);
      }
    };
    return queue.run(id, run, signal, onWait);
  };
}
