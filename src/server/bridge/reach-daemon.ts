import { type AppError, configError, storageError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { StartedDaemon } from '../proxy/start-daemon.ts';
import { type Readiness, readinessOf } from './readiness.ts';

export interface ReachOptions {
  /** As `http://127.0.0.1:8765`. */
  url: string;
  /** Starts a daemon, or answers undefined when another bridge is at it; absent: none may be started. */
  start?: (() => { daemon: StartedDaemon; release(): void } | undefined) | undefined;
  clock: Pick<Clock, 'sleep' | 'monotonic'>;
  onRemark(text: string): void;
}

/** A daemon that is told to stop lets calls end first. */
const longestMs = 60_000;
/** One that went away is given so long to come back by itself, by whoever looks after it. */
const returnMs = 3_000;
const askEveryMs = 100;

/** Resolves when a daemon takes calls at the address. `again`: one did before. */
export async function reachDaemon(options: ReachOptions, again: boolean, signal: AbortSignal): Promise<void> {
  const { url, start, clock, onRemark } = options;
  const began = clock.monotonic();
  let started: ReturnType<NonNullable<typeof start>>;
  try {
    for (;;) {
      const state = await readinessOf(url);
      if (state === 'ready') return;
      const waited = clock.monotonic() - began;
      const end = started?.daemon.end();
      if (end !== undefined) throw ended(end);
      if (state === 'other' || waited > longestMs) throw unreachable(url, state);
      if (state === 'absent' && !started && (!again || waited > returnMs)) {
        if (!start) throw unreachable(url, state);
        started = start();
        if (started) onRemark(`No daemon runs at ${url}; one is started (process ${started.daemon.pid}).`);
      }
      await clock.sleep(askEveryMs, signal);
    }
  } finally {
    started?.release();
  }
}

function ended(said: string): AppError {
  return configError(`The daemon that was started ended at once. It said: ${said || 'nothing'}`, {
    next: 'Run "polylogue serve" to see what it needs.',
  });
}

function unreachable(url: string, state: Readiness): AppError {
  if (state === 'other') {
    return configError(`What answers at ${url} is no Polylogue daemon.`, {
      next: 'Set POLYLOGUE_PORT to a port that nobody uses, or name the daemon with --url.',
    });
  }
  const why = state === 'absent' ? 'Nobody answers' : 'No daemon takes calls';
  return storageError('unavailable', `${why} at ${url}.`, {
    retryable: true,
    next: 'Start one with "polylogue serve", or see with "polylogue status" what it waits for.',
  });
}
