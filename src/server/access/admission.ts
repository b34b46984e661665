import { setImmediate as aTurn } from 'node:timers/promises';
import { onAbort, withTimeout } from '../../core/concurrency.ts';
import { type AppError, interruptedError, isAppError, limitError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { ToolHost, ToolReply } from '../../core/tool-host.ts';
import { bytesForCalls, type Capacity, createCapacity, createSlots } from './limits.ts';

/** Where all calls of a daemon pass. */
export type Admission = ReturnType<typeof createAdmission>;

/** Milliseconds in which a call that was ended tells how far it came, and as many in which that is written. */
const lastWordMs = 1_000;

/** For a server with one client: as many calls as the memory bears. */
export const memoryCapacity = (): Capacity =>
  createCapacity({ perCaller: Infinity, inAll: Infinity, queued: Infinity, bytes: bytesForCalls() });

export function createAdmission(capacity: Capacity, clock: Pick<Clock, 'after'>) {
  /** The calls under way: what ends each, and what answers it in its stead. */
  const calls = new Set<{ stop: AbortController; abandon(error: AppError): void }>();
  let shut = false;
  const held = createSlots();
  const { promise: empty, resolve } = Promise.withResolvers<void>();
  const settle = () => {
    if (shut && held.inAll() === 0) resolve();
  };
  const hold = () => held.take('anything', settle);
  return {
    /** Counts something that has to end before it is empty; the result ends it. */
    hold,
    reserveInput: capacity.reserveInput,
    isShut: () => shut,
    /** Calls that run, that wait for their turn, and that may run at the same time. */
    load: () => ({ running: capacity.running(), waiting: capacity.waiting(), max: capacity.max() }),
    /** The host as one client sees it: his calls wait for their turn, and none begins once it is shut. */
    before: (host: ToolHost, client: string): ToolHost => ({
      ...host,
      async call(request, cancelled) {
        if (shut) return refused(request.name, shuttingDown());
        const release = hold();
        const stop = new AbortController();
        const forget = onAbort(cancelled, () => stop.abort(cancelled.reason));
        const { promise: abandoned, resolve: answer } = Promise.withResolvers<ToolReply>();
        const call = { stop, abandon: (error: AppError) => answer(refused(request.name, error)) };
        calls.add(call);
        try {
          const leave = await capacity.enter(client, stop.signal, JSON.stringify(request.arguments).length);
          try {
            return await Promise.race([host.call(request, stop.signal), abandoned]);
          } finally {
            leave();
          }
        } catch (error) {
          // A turn that never came is a reply like any other failure.
          if (!isAppError(error)) throw error;
          return refused(request.name, error);
        } finally {
          forget();
          calls.delete(call);
          release();
        }
      },
    }),
    /** Lets no call in any more; resolves when none runs. Calls that still run after `ms` are ended, and have a moment to be answered. */
    async shut(ms: number) {
      shut = true;
      settle();
      await withTimeout(clock, ms, empty);
      for (const { stop } of calls) stop.abort(stopped());
      await withTimeout(clock, lastWordMs, empty);
      for (const { abandon } of calls) abandon(stopped());
      await withTimeout(clock, lastWordMs, empty);
      // The last answers are on their way to their sockets.
      await aTurn();
    },
  };
}

/** The host with something held during each call: `hold` takes it, and what that answers gives it back. */
export function holdingInCalls(host: ToolHost, hold: () => (() => void) | undefined): ToolHost {
  const call: ToolHost['call'] = async (request, signal) => {
    const release = hold();
    try {
      return await host.call(request, signal);
    } finally {
      release?.();
    }
  };
  return { ...host, call };
}

const shuttingDown = (): AppError =>
  limitError('over_capacity', 'This server is shutting down and takes no more calls.', {
    retryable: true,
    retryAfterSeconds: 5,
    next: 'Resend the call once it is back, or to another server on the same store.',
  });

const stopped = (): AppError =>
  interruptedError('This server stopped before the answer came.', {
    class: 'shutting_down',
    retryAfterSeconds: 5,
    next: 'Resend the call once it is back, or to another server on the same store; the model is asked again.',
  });

/** A failure before the call began, in the form of all others. */
function refused(tool: string, error: AppError): ToolReply {
  const { code, next = null, retryable = false, retryAfterSeconds, class: kind } = error.details;
  const document = {
    status: 'error',
    content: next === null ? error.message : `${error.message} ${next}`,
    content_type: 'text',
    tool_name: tool,
    error: { code, class: kind, message: error.message, next, retryable, retry_after_s: retryAfterSeconds },
  };
  return { isError: true, document, text: JSON.stringify(document) };
}
