import { cancelledError, isAppError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { ToolReply, ToolRequest } from '../../core/tool-host.ts';

export interface SharedWorkOptions {
  clock: Clock;
  /** Milliseconds that the work goes on for nobody. */
  graceMs: number;
  /** Called when the last caller is gone without a word. */
  onLost(): void;
  /** Called when somebody waits for it again after that. */
  onFound(): void;
  /** Whether somebody whom this process can't see waits for it. */
  isWanted(): Promise<boolean>;
}

/** Why work ended that was ended from outside. */
export type Ending = 'cancelled' | 'interrupted';

/** Work that outlives its caller: who comes again for it may have it. */
export interface SharedWork {
  /** Resolves with the reply; never rejects. */
  reply: Promise<ToolReply>;
  /** The reply for one caller: of the work, or that he cancelled while others still wait. */
  join(request: ToolRequest, signal: AbortSignal): Promise<ToolReply | 'cancelled'>;
  /** Whether somebody waits for it. */
  isAwaited(): boolean;
  endedBy(): Ending | undefined;
  /** Whether it has its reply, or is told to end. */
  isEnding(): boolean;
  interrupt(): void;
}

type Run = (request: ToolRequest, signal: AbortSignal, isAwaited: () => boolean) => Promise<ToolReply>;

export function shareWork(options: SharedWorkOptions, request: ToolRequest, run: Run): SharedWork {
  const stop = new AbortController();
  const callers = new Set<ToolRequest>();
  let ending: Ending | undefined;
  let over = false;
  let isLost = false;
  let stopGrace = () => {};

  function end(how: Ending, reason: unknown): void {
    ending ??= how;
    stopGrace();
    stop.abort(isAppError(reason) ? reason : cancelledError(undefined, { cause: reason }));
  }

  function giveGrace(): void {
    stopGrace = options.clock.after(options.graceMs, () => {
      options.isWanted().then(
        wanted => (wanted ? giveGrace() : interrupt()),
        // Nobody can say so while the store is down; what was paid for so far is worth another grace.
        giveGrace,
      );
    });
  }

  function interrupt(): void {
    end('interrupted', cancelledError('Its caller was gone, and nobody came for it.'));
  }

  function leave(caller: ToolRequest): boolean {
    return callers.delete(caller) && callers.size === 0 && ending === undefined;
  }

  const onProgress: ToolRequest['onProgress'] = update => {
    for (const caller of callers) caller.onProgress?.(update);
  };
  const reply = run({ ...request, onProgress }, stop.signal, () => callers.size > 0).finally(() => {
    over = true;
    stopGrace();
  });

  return {
    reply,
    isAwaited: () => callers.size > 0,
    endedBy: () => ending,
    isEnding: () => over || ending !== undefined,
    interrupt,
    async join(caller, signal) {
      const gone = caller.session?.gone;
      const left = Promise.withResolvers<'cancelled'>();
      const onCancel = () => {
        if (leave(caller)) end('cancelled', signal.reason);
        else left.resolve('cancelled');
      };
      const onGone = () => {
        if (!leave(caller)) return;
        isLost = true;
        giveGrace();
        options.onLost();
      };
      if (isLost) {
        isLost = false;
        stopGrace();
        options.onFound();
      }
      callers.add(caller);
      signal.addEventListener('abort', onCancel, { once: true });
      gone?.addEventListener('abort', onGone, { once: true });
      if (signal.aborted) onCancel();
      else if (gone?.aborted) onGone();
      try {
        return await Promise.race([reply, left.promise]);
      } finally {
        signal.removeEventListener('abort', onCancel);
        gone?.removeEventListener('abort', onGone);
        callers.delete(caller);
      }
    },
  };
}
