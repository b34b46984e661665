import { AppError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { CallLimits } from '../ask-model.ts';

/** Reasoning models think before they write; machines at home are slow. The larger factor counts. */
const reasoningFactor = 4;
const localFactor = 10;
/** Characters that must arrive in every idle interval; fewer is a drip that would hold the call for its total. */
const minCharsPerIdle = 16;
/** What the end of the stream may take once the answer is finished. */
const settleMs = 1000;

/** The limits of one call to one kind of model; what the caller set itself is not widened. */
export function limitsFor(
  configured: CallLimits,
  model: { reasoning: boolean; local: boolean },
  own: Partial<CallLimits> = {},
): CallLimits {
  const factor = model.local ? localFactor : model.reasoning ? reasoningFactor : 1;
  return {
    firstByteMs: own.firstByteMs ?? configured.firstByteMs * factor,
    idleMs: own.idleMs ?? configured.idleMs * factor,
    totalMs: own.totalMs ?? configured.totalMs * factor,
  };
}

/** The clocks of one attempt. They all end in one signal, which the attempt hands to the vendor's HTTP call. */
export interface AttemptClocks {
  /** Aborted when a limit expires, when the caller gives up, and by `stop(true)`. */
  readonly signal: AbortSignal;
  /** Tells that this many characters of answer or reasoning arrived. Keep-alives are no progress and are not told. */
  progress(chars: number): void;
  /** The answer is complete; only the end of the stream is awaited, and not for long. */
  settle(): void;
  /** Why the signal was aborted, when a limit did it. */
  expired(): AppError | undefined;
  /** Ends the clocks; with `abort` the connection is closed too. */
  stop(abort: boolean): void;
}

export interface ClockPlan {
  clock: Clock;
  limits: CallLimits;
  /** What is left of `limits.totalMs`. */
  remainingMs: number;
  /** The caller's signal. */
  parent: AbortSignal;
}

export function startClocks({ clock, limits, remainingMs, parent }: ClockPlan): AttemptClocks {
  const controller = new AbortController();
  let failure: AppError | undefined;
  let started = false;
  let received = 0;

  const expire = (error: AppError) => {
    if (controller.signal.aborted) return;
    failure = error;
    controller.abort(error);
  };
  const cancelTotal = clock.after(Math.max(0, remainingMs), () => expire(totalError(limits.totalMs)));
  let cancelWait = clock.after(limits.firstByteMs, () => expire(firstByteError(limits.firstByteMs)));
  const waitIdle = (ms: number) => {
    cancelWait();
    cancelWait = clock.after(ms, () => expire(idleError(limits.idleMs, received)));
    received = 0;
  };
  const onParentAbort = () => controller.abort(parent.reason);
  if (parent.aborted) onParentAbort();
  else parent.addEventListener('abort', onParentAbort, { once: true });

  return {
    signal: controller.signal,
    progress(chars) {
      if (chars <= 0) return;
      received += chars;
      if (!started || received >= minCharsPerIdle) waitIdle(limits.idleMs);
      started = true;
    },
    settle: () => waitIdle(settleMs),
    expired: () => failure,
    stop(abort) {
      cancelTotal();
      cancelWait();
      parent.removeEventListener('abort', onParentAbort);
      if (abort) controller.abort(failure ?? parent.reason);
    },
  };
}

function timeoutError(clock: string, limitMs: number, message: string, retryable: boolean): AppError {
  return new AppError('model', message, { code: 'API_ERROR', class: 'timeout', retryable, data: { clock, limitMs } });
}

const seconds = (ms: number) => `${Math.round(ms / 100) / 10} s`;

function firstByteError(ms: number): AppError {
  return timeoutError('first_byte', ms, `No part of an answer arrived within ${seconds(ms)} (first-byte limit).`, true);
}

function idleError(ms: number, chars: number): AppError {
  const what = chars === 0 ? 'nothing more' : `only ${chars} characters more`;
  return timeoutError('idle', ms, `The answer stalled: ${what} arrived within ${seconds(ms)} (idle limit).`, true);
}

export function totalError(ms: number): AppError {
  return timeoutError('total', ms, `The call took longer than ${seconds(ms)} in all (total limit).`, false);
}
