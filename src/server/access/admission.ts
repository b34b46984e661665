import { type AppError, isAppError, limitError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { ToolHost, ToolReply } from '../../core/tool-host.ts';
import type { Capacity } from './limits.ts';

/** Where all calls of a daemon pass. */
export interface Gate {
  /** The host as one client sees it: his calls wait for their turn, and none begins once the gate is shut. */
  before(host: ToolHost, client: string): ToolHost;
  /** Counts something that has to end before the gate is empty; the result ends it. */
  hold(): () => void;
  isShut(): boolean;
  /** Calls that run, that wait for their turn, and that may run at the same time. */
  load(): { running: number; waiting: number; max: number };
  /** Lets no call in any more; resolves when none runs, or after `ms`. */
  shut(ms: number): Promise<void>;
}

export function createGate(capacity: Capacity, clock: Pick<Clock, 'after'>): Gate {
  let shut = false;
  let held = 0;
  const { promise: empty, resolve } = Promise.withResolvers<void>();
  const settle = () => {
    if (shut && held === 0) resolve();
  };
  const hold = () => {
    held += 1;
    let over = false;
    return () => {
      if (!over) held -= 1;
      over = true;
      settle();
    };
  };
  return {
    hold,
    isShut: () => shut,
    load: () => ({ running: capacity.running(), waiting: capacity.waiting(), max: capacity.max() }),
    before: (host, client) => ({
      ...host,
      async call(request, signal) {
        if (shut) return refused(request.name, shuttingDown());
        const release = hold();
        try {
          const leave = await capacity.enter(client, signal);
          try {
            return await host.call(request, signal);
          } finally {
            leave();
          }
        } catch (error) {
          // A turn that never came is a reply like any other failure.
          if (!isAppError(error)) throw error;
          return refused(request.name, error);
        } finally {
          release();
        }
      },
    }),
    async shut(ms) {
      shut = true;
      settle();
      const stop = clock.after(ms, resolve);
      await empty;
      stop();
    },
  };
}

function shuttingDown(): AppError {
  return limitError('over_capacity', 'This server is shutting down and takes no more calls.', {
    retryable: true,
    retryAfterSeconds: 5,
    next: 'Send the same call again once it is back, or to another server on the same store.',
  });
}

/** A failure before the call began, in the form of all others. */
function refused(tool: string, error: AppError): ToolReply {
  const { code, next = null, retryable = false, retryAfterSeconds, class: kind } = error.details;
  const document = {
    status: 'error',
    content: next === null ? error.message : `${error.message} ${next}`,
    content_type: 'text',
    tool_name: tool,
    error: {
      code,
      class: kind,
      message: error.message,
      next,
      retryable,
      ...(retryAfterSeconds !== undefined && { retry_after_s: retryAfterSeconds }),
    },
  };
  return { isError: true, document, text: JSON.stringify(document) };
}
