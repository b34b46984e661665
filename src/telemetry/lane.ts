import type { Clock } from '../core/ports.ts';

/** False: there was nothing to write. */
// biome-ignore lint/suspicious/noConfusingVoidType: most writers answer nothing
export type Written = void | boolean;

export interface LaneParts<Item> {
  /** For messages about it. */
  name: string;
  /** Gets everything that came in since the last time; called again only after it ended. False: none of it was to be written. */
  write(batch: readonly Item[]): Written | Promise<Written>;
  /** The most that may wait, by `sizeOf`; more is left out. */
  maxWaiting: number;
  /** Absent: each counts one. */
  sizeOf?(item: Item): number;
  /** Lets what comes within `ms` go into one write, unless somebody waits for it. Absent: written at once. */
  gather?: { clock: Pick<Clock, 'after'>; ms: number };
  /** Hears of a write that began to fail, once until one works again, and of what was left out. */
  onError(name: string, error: unknown): void;
}

export interface Lane<Item> {
  /** Never throws, never waits. */
  push(item: Item): void;
  /** Resolves when everything pushed so far was written, or given up. Never rejects. */
  idle(): Promise<void>;
}

/** The queue of one writer: whoever pushes neither waits for it nor hears of its troubles. */
export function createLane<Item>({ name, write, maxWaiting, sizeOf, gather, onError }: LaneParts<Item>): Lane<Item> {
  let waiting: Item[] = [];
  let size = 0;
  let dropped = 0;
  let failing = false;
  let running: Promise<void> | undefined;
  let awaited = 0;
  let hurry = () => {};

  const gathered = ({ clock, ms }: NonNullable<typeof gather>): Promise<void> =>
    new Promise(resolve => {
      const stop = clock.after(ms, resolve);
      hurry = () => {
        stop();
        resolve();
      };
    });
  const writeBatch = async (batch: readonly Item[]): Promise<void> => {
    try {
      const written = await write(batch);
      // What had nothing to do has not shown that it works again.
      if (written !== false) failing = false;
    } catch (error) {
      // Observing goes on without this batch: no call may fail because of it.
      if (!failing) onError(name, error);
      failing = true;
    }
  };
  const drain = async (): Promise<void> => {
    // The writer's own code never runs within `push`.
    await Promise.resolve();
    while (waiting.length > 0) {
      if (gather && awaited === 0) await gathered(gather);
      const batch = waiting;
      waiting = [];
      size = 0;
      await writeBatch(batch);
    }
    running = undefined;
    if (dropped > 0) onError(name, new Error(`${dropped} records were left out: writing was too slow`));
    dropped = 0;
  };

  return {
    push(item) {
      const own = sizeOf?.(item) ?? 1;
      if (size + own > maxWaiting) dropped++;
      else {
        size += own;
        waiting.push(item);
      }
      running ??= drain();
    },
    async idle() {
      awaited++;
      hurry();
      try {
        await running;
      } finally {
        awaited--;
      }
    },
  };
}

/** Waits for `work`, which never rejects, but no longer than `ms`. */
export async function atMost(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  await new Promise<void>(resolve => {
    const cancel = clock.after(ms, resolve);
    void work.then(() => {
      cancel();
      resolve();
    });
  });
}
