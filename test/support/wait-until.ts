import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';

export interface WaitOptions {
  /** Pause between two looks. */
  everyMs?: number;
  /** After this long it rejects: well before the test's own limit, which would not say what was waited for. */
  atMostMs?: number;
  /** What is known by then, for the message. */
  known?: () => string;
}

/** Looks again and again until `isSo`. `what` completes "waited in vain until …". */
export async function waitUntil(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  { everyMs = 20, atMostMs = 60_000, known }: WaitOptions = {},
): Promise<void> {
  const began = performance.now();
  while (!(await isSo())) {
    if (performance.now() - began > atMostMs)
      throw new Error(`waited in vain until ${what}${known ? `: ${known().slice(-4_000)}` : ''}`);
    await wait(everyMs);
  }
}
