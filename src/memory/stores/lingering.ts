import { scheduler } from 'node:timers/promises';

/** What may wait for others to share their transaction waits no longer than this many milliseconds. */
const lingerMs = 5;

/** Things to do that may wait a little, so that they go along with what can't. */
export interface Lingering {
  add(run: () => void): void;
  /** Does all of it now, in its order. */
  flush(): void;
}

/** By the machine's own time, as the disk's is: a clock that a test has stopped must not stop what was asked. */
export function createLingering(): Lingering {
  let waiting: (() => void)[] = [];
  let isTimed = false;

  function flush(): void {
    const all = waiting;
    waiting = [];
    for (const run of all) run();
  }

  return {
    add(run) {
      waiting.push(run);
      if (isTimed) return;
      isTimed = true;
      void scheduler.wait(lingerMs).then(() => {
        isTimed = false;
        flush();
      });
    },
    flush,
  };
}
