import { type AppError, isAppError, storageError } from '../../core/errors.ts';
import { tlsAdvice } from '../../memory/stores/redis-tls.ts';

/** What is wrong with a server, as far as it makes a difference: a log says it once, and once when it is over. */
export type Trouble = 'unreachable' | 'full' | 'read_only' | 'refused';

/** There is no connection, or it brought no answer: whether the server did what it was told is not known then. */
export class Unreachable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'Unreachable';
  }
}

/** The first word of an error that the server answered: `MOVED`, `OOM`, `READONLY`. */
export function replyCode(error: unknown): string {
  const [word = ''] = error instanceof Error ? error.message.split(' ', 1) : [];
  return /^[A-Z]+$/.test(word) ? word : '';
}

/** It is there, but can't serve yet or for now: the same command succeeds later. */
const passing = new Set(['LOADING', 'CLUSTERDOWN', 'MASTERDOWN', 'TRYAGAIN', 'BUSY', 'NOREPLICAS']);
const accessDenied = new Set(['NOAUTH', 'WRONGPASS', 'NOPERM']);
const access =
  'Correct the user and password in REDIS_URL, and let that user run scripts and all commands on its keys.';

export function troubleOf(error: unknown): Trouble {
  if (error instanceof Unreachable) return 'unreachable';
  const code = replyCode(error);
  if (code === 'OOM') return 'full';
  if (code === 'READONLY') return 'read_only';
  return passing.has(code) ? 'unreachable' : 'refused';
}

/** Says in our words what Redis refused, or that it can't be reached. Errors that are ours already stay as they are. */
export function redisFailure(error: unknown, address: string): AppError {
  if (isAppError(error)) return error;
  // It was ours before it was what kept a connection from coming about.
  if (error instanceof Unreachable && isAppError(error.cause)) return error.cause;
  const raw = error instanceof Error ? error.message : String(error);
  const details = { cause: error, retryable: true };
  const code = replyCode(error);
  switch (troubleOf(error)) {
    case 'full':
      return storageError('storage_full', `The Redis at ${address} has no memory left for new data (maxmemory).`, {
        ...details,
        next: 'Raise its maxmemory, or delete threads; the next call works again without a restart.',
      });
    case 'read_only':
      return storageError('unavailable', `The Redis at ${address} takes no writes: it is a replica now.`, {
        ...details,
        next: 'Try again in a moment; if it stays so, let REDIS_URL name the primary.',
      });
    case 'unreachable': {
      const advice = tlsAdvice(error);
      const why = advice === undefined ? "can't serve now" : "can't be trusted";
      return storageError('unavailable', `The Redis at ${address} ${why}: ${raw}`, {
        ...details,
        ...(advice !== undefined && { retryable: false }),
        next:
          advice ??
          (accessDenied.has(code)
            ? access
            : 'Check that it runs and that REDIS_URL names it, with rediss:// where it speaks TLS and redis:// where not; it is tried again without end, so the next call may work.'),
      });
    }
    case 'refused':
      return storageError('unavailable', `The Redis at ${address} refused a command: ${raw}`, {
        ...details,
        next: accessDenied.has(code) ? access : 'Let REDIS_URL name a Redis 7 or newer, or a Valkey.',
      });
  }
}
