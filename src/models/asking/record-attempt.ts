import type { Candidate } from '../../core/model.ts';
import { costOf, noUsage } from '../../core/usage.ts';
import type { AttemptRecord } from '../ask-model.ts';
import type { Run, Try } from '../call/call-run.ts';

export interface Told {
  outcome: AttemptRecord['outcome'] | 'cancelled';
  elapsedMs: number;
  /** Milliseconds until the retry. */
  nextInMs?: number;
  /** Who is asked instead. */
  next?: Candidate;
}

/** Keeps one attempt for the reply and tells the observers of it. */
export function recordAttempt(run: Run, last: Try, { outcome, elapsedMs, nextInMs, next }: Told): void {
  const { provider, id: model } = last.candidate.model;
  const cancelled = outcome === 'cancelled';
  const failureClass = cancelled ? 'cancelled' : last.error?.details.class;
  run.attempts.push({ provider, model, outcome: cancelled ? 'failed' : outcome, class: failureClass, elapsedMs });
  const { reqId, tool, payer } = run.question;
  const { status } = last.error?.details ?? {};
  const event = { reqId, attempt: run.attempts.length, tool, provider, model, elapsedMs, outcome, class: failureClass };
  const follows = outcome === 'retry' ? 'retry' : next ? `${next.model.provider}:${next.model.id}` : 'none';
  const costUsd = last.costUsd ?? (last.usage && costOf(last.usage, last.candidate.model.price));
  const ended = { usage: last.usage, costUsd, finish: last.finish?.kind };
  run.parts.emit({ type: 'model.attempt', ...event, thread: payer?.thread, status, ...ended, nextInMs, next: follows });
  // The text of a broken attempt may yet be the answer.
  if (outcome !== 'ok' && last !== run.broken) tellWaste(run, last);
}

/** Tells what an attempt cost that is not the answer. A vendor that broke off before it told its tokens has searched all the same. */
export function tellWaste({ question }: Run, { candidate: { model }, usage, fees, costUsd }: Try): void {
  const known = usage ?? (fees && { ...noUsage, fees });
  if (known) question.onWaste?.({ model, usage: known, costUsd: costUsd ?? costOf(known, model.price) });
}
