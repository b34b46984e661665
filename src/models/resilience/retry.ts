import type { Random } from '../../core/ports.ts';

/** Attempts at one candidate, the first one included. */
export const maxAttempts = 3;

const defaultBaseMs = 500;
const defaultCapMs = 8000;

export interface RetrySituation {
  /** The attempt that failed, counted from 1. */
  attempt: number;
  random: Random;
  /** What the vendor asked for. */
  retryAfterSeconds?: number;
  /** Milliseconds that may be waited at most; a wait that needs more is not begun. */
  patienceMs: number;
  baseMs?: number;
  capMs?: number;
}

/**
 * Milliseconds until the next attempt: a random part of a doubling interval (full jitter), but never less than the vendor
 * asked for. Undefined when that is more than the call can wait: then it fails at once instead of failing later.
 */
export function retryDelay(situation: RetrySituation): number | undefined {
  const { attempt, random, retryAfterSeconds = 0, patienceMs } = situation;
  const { baseMs = defaultBaseMs, capMs = defaultCapMs } = situation;
  const jitter = random.fraction() * Math.min(capMs, baseMs * 2 ** (attempt - 1));
  const delay = Math.ceil(Math.max(jitter, retryAfterSeconds * 1000));
  return delay < patienceMs ? delay : undefined;
}
