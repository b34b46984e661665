import type { AskOptions } from '../../calls/ask/ask.ts';
import type { Parsed } from '../../calls/call-record.ts';
import type { AppError } from '../../core/errors.ts';
import { noUsage, type Usage } from '../../core/usage.ts';
import type { ModelAnswer } from '../../models/ask-model.ts';
import type { Seat } from '../modes/ask-many/seats.ts';

export interface FanoutSettings {
  /** Who is asked when a call names nobody; empty: the default model, or one that is chosen. */
  defaultModels: readonly string[];
  /** The one sentence that models are told beside the text; absent: nothing. */
  language?: string;
  /** All providers there are, with the short names that may stand before a model's. */
  prefixes: readonly { id: string; names: readonly string[] }[];
}

export interface FanoutOptions extends AskOptions {
  fanout: FanoutSettings;
}

/** One model that was asked for, and who that is; or why it can't be asked. */
export interface Slot extends Pick<Seat, 'who' | 'warnings'> {
  /** As the caller, or the operator's default, named it. */
  requested: string;
}

/** What came of asking it. */
/** `answer` has its secrets masked; `said` is what the model wrote, for files alone. */
export type Outcome = { answer: ModelAnswer; said: string } | { error: AppError; latencyMs: number };

export interface Response {
  slot: Slot;
  outcome: Outcome;
}

/** One call with what all its questions have in common. */
export interface Fan {
  options: FanoutOptions;
  /** With its secrets masked. */
  call: Parsed;
  /** What every model is asked. */
  text: string;
  /** Tokens and dollars of all answers so far. */
  spent: { usage: Usage; costUsd?: number };
}

export function openFan(options: FanoutOptions, call: Parsed, text: string): Fan {
  return { options, call, text, spent: { usage: noUsage } };
}
