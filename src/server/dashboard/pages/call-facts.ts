import type { AppEvent } from '../../../core/events.ts';
import type { WatchedCall } from '../../../core/ports.ts';
import { html, type Markup } from '../html.ts';
import { duration, line, type Mood, pill } from './words.ts';

/** What the events of a call come to. */
export interface CallFacts {
  /** What it is at, in its own words. */
  stage: string;
  mood: Mood;
  /** How it ended, in a word. */
  outcome: string;
  /** As `provider:model`, in the order in which they were asked first. */
  models: string[];
  attempts: number;
  /** Input and output tokens. */
  tokens: number;
  costUsd: number;
  tookMs: number;
}

export function factsOf({ startedAt, endedAt, events }: WatchedCall, now: number): CallFacts {
  const attempts = events.flatMap(({ event }) =>
    event.type === 'model.attempt' && event.outcome !== 'skipped' ? [event] : [],
  );
  const stages = events.flatMap(({ event }) => (event.type === 'call.stage' ? [event.stage] : []));
  const end = events.findLast(({ event }) => event.type === 'call.end')?.event;
  return {
    stage: stages.at(-1) ?? 'begins',
    ...(end?.type === 'call.end' ? endOf(end) : { mood: 'busy', outcome: 'running' }),
    models: [...new Set(attempts.map(({ provider, model }) => `${provider}:${model}`))],
    attempts: attempts.length,
    tokens: attempts.reduce((sum, { usage }) => sum + (usage ? usage.input + usage.output : 0), 0),
    costUsd: attempts.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0),
    tookMs: end?.type === 'call.end' ? end.elapsedMs : (endedAt ?? now) - startedAt,
  };
}

type Ended = Extract<AppEvent, { type: 'call.end' }>;

function endOf({ code, status }: Ended): Pick<CallFacts, 'mood' | 'outcome'> {
  if (code === 'CANCELLED') return { mood: 'warn', outcome: 'cancelled' };
  if (code !== undefined) return { mood: 'bad', outcome: line(code.toLowerCase().replaceAll('_', ' '), 40) };
  // What every tool says when all went well tells nothing.
  const isUsual = status === 'success' || status === 'continuation_available';
  return { mood: 'good', outcome: isUsual ? 'done' : line(status.replaceAll('_', ' '), 40) };
}

export function outcomePill({ mood, outcome }: CallFacts): Markup {
  return pill(mood, outcome);
}

/** A clock that goes on in the browser. */
export function runningClock(ms: number): Markup {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const text = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  return html`<span data-elapsed="${Math.max(0, Math.round(ms))}">${text}</span>`;
}

export function took(facts: CallFacts): string {
  return duration(facts.tookMs);
}
