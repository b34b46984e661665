import { cancelledError, limitError } from '../../core/errors.ts';

export interface CapacityRules {
  /** Calls of one caller that run at the same time. */
  perCaller: number;
  /** Calls of all callers that run at the same time. */
  inAll: number;
  /** Calls of all callers that wait for their turn; more are refused. */
  queued: number;
}

export interface Capacity {
  /** Waits for a turn and answers what ends it; rejects with OVER_CAPACITY at once when too many wait, or when `signal` is aborted. */
  enter(caller: string, signal: AbortSignal): Promise<() => void>;
  running(): number;
  waiting(): number;
  /** What may run at the same time in all. */
  most(): number;
  /** Callers that are remembered: those with calls that run. */
  callers(): number;
}

/** A refused call may come again after this many seconds. */
const retryAfterSeconds = 5;

interface Waiting {
  caller: string;
  begin(): void;
}

/** Turns, in the order in which calls came; one caller's many calls don't keep the others waiting. */
export function createCapacity({ perCaller, inAll, queued }: CapacityRules): Capacity {
  const running = new Map<string, number>();
  const line: Waiting[] = [];
  let all = 0;
  const isFree = (caller: string) => all < inAll && (running.get(caller) ?? 0) < perCaller;

  function begin(caller: string): () => void {
    all += 1;
    running.set(caller, (running.get(caller) ?? 0) + 1);
    let over = false;
    return () => {
      if (over) return;
      over = true;
      all -= 1;
      const left = (running.get(caller) ?? 1) - 1;
      if (left > 0) running.set(caller, left);
      else running.delete(caller);
      next();
    };
  }

  function next(): void {
    const at = line.findIndex(({ caller }) => isFree(caller));
    if (at >= 0) for (const { begin: start } of line.splice(at, 1)) start();
  }

  return {
    running: () => all,
    waiting: () => line.length,
    most: () => inAll,
    callers: () => running.size,
    async enter(caller, signal) {
      if (signal.aborted) throw cancelledError();
      if (isFree(caller)) return begin(caller);
      if (line.length >= queued) throw overCapacity(line.length);
      return new Promise((resolve, reject) => {
        const waiting: Waiting = {
          caller,
          begin() {
            signal.removeEventListener('abort', onAbort);
            resolve(begin(caller));
          },
        };
        const onAbort = () => {
          const at = line.indexOf(waiting);
          if (at >= 0) line.splice(at, 1);
          reject(cancelledError());
        };
        signal.addEventListener('abort', onAbort, { once: true });
        line.push(waiting);
      });
    },
  };
}

function overCapacity(waiting: number) {
  return limitError('over_capacity', `This server is busy: ${waiting} calls wait already.`, {
    retryable: true,
    retryAfterSeconds,
    next: `Send the same call again in ${retryAfterSeconds} s.`,
  });
}
