import type { AppEvent } from './event.ts';

/** Time as the rooms see it; tests hand in one that they move. */
export interface Clock {
  /** Milliseconds since the epoch. For what is stored and shown. */
  now(): number;
  /** Milliseconds that never jump. For durations and time limits. */
  monotonic(): number;
  /** Resolves after `ms`; rejects at once with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `run` once after `ms` without keeping the process alive; the result cancels it. */
  after(ms: number, run: () => void): () => void;
}

export interface Random {
  uuid(): string;
  /** At least 0, below 1. */
  fraction(): number;
}

/** Tells the observers that something happened. Never throws, never waits. */
export type Emit = (event: AppEvent) => void;

/** A text whose secrets were replaced by stable placeholders, and how many of each kind were. */
export interface Masked {
  text: string;
  /** Kind of secret → count, e.g. `{ github_token: 1 }`. Empty when nothing was found. */
  found: Record<string, number>;
  /** Where the secrets stood in the text that was given, in order and without overlap. */
  places?: readonly MaskedPlace[];
}

export interface MaskedPlace {
  start: number;
  /** Behind its last character. */
  end: number;
  kind: string;
  /** What stands there now. */
  placeholder: string;
}

/**
 * Replaces the secrets in a text by `[masked:KIND:HASH]`. The hash is keyed by `scope` (a thread id): the same secret gets
 * the same placeholder within one scope, so that a file masked twice stays byte-identical.
 */
export type Mask = (text: string, scope: string) => Promise<Masked>;
