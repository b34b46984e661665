import { isRecord, numberIn, textIn } from '../../../core/json.ts';
import { cutMiddle } from '../../../core/text.ts';
import type { Usage } from '../../../core/usage.ts';

/** One CLI: how it is started so that nobody has to sit before it, and what its output means. */
export interface CliDefinition {
  /** Its executable; stands behind the colon of `cli:name`, and is the `cli_name` of `clink`. Lower case. */
  name: string;
  /** For people, and for the agent itself. */
  title: string;
  /** Tokens that a prompt may have; a careful guess where nobody tells. */
  window: number;
  /** All arguments but the prompt. `session`: to be gone on with; `extra`: what configuration adds, where flags may stand. */
  command(call: { model?: string; session?: string; mayWrite: boolean }, extra: readonly string[]): string[];
  /** Flags that let it do more than read, with `=` where one takes a value: left out unless the operator allows writing. */
  widening: readonly string[];
  /** Short forms of flags, with what they stand for. */
  short?: Readonly<Record<string, string>>;
  /** `stdin`, or `last`: it takes it as its last argument only. */
  promptBy: 'stdin' | 'last';
  /** PAL's word for what reads its output; shown in replies. */
  parser: string;
  /** What an object means of those that it prints, one a line or one in all; absent: what it prints is the answer. */
  read?: Reader;
  /** An at sign means nothing to it. Absent: it may read a file for it, so that none reaches it. */
  plainAt?: boolean;
  /** Variables of our environment that it gets beside those that every CLI gets; `*` at the end stands for any letters. */
  env: readonly string[];
  /** Variables that are set for it. */
  set?: Readonly<Record<string, string>>;
  /** Those that are set, whatever configuration says, while it may only read. */
  setToRead?: Readonly<Record<string, string>>;
  /** Tells by what it printed that nobody is logged in. */
  login: RegExp;
  /** What to do then. */
  loginHint: string;
  /** Other things that it refuses, and what to do then. */
  refusals?: readonly { says: RegExp; class: string; hint: string }[];
}

/** What a line of a CLI's output means. Whatever is empty tells nothing. */
export type CliEvent =
  | { type: 'session'; id: string }
  | { type: 'model'; name: string }
  /** `block`: a message of its own, set off from the one before. */
  | { type: 'text'; text: string; block?: boolean }
  /** The answer as a whole: counts when no `text` came. */
  | { type: 'final'; text: string }
  /** Thinking and narration: no part of the answer. */
  | { type: 'note'; text: string }
  | { type: 'tool_use'; name: string; id?: string; detail: string }
  | { type: 'tool_result'; name?: string; id?: string; ok: boolean; detail: string }
  | { type: 'usage'; usage: Usage; ofSession?: boolean }
  | { type: 'cost'; usd: number }
  | { type: 'warning'; message: string }
  | { type: 'error'; message: string }
  /** Its own word for how it ended. */
  | { type: 'end'; ok: boolean };

/** What an object that a CLI prints means. */
export type Reader = (event: Record<string, unknown>) => CliEvent[];

/** Reads objects by their `type`; those of other types mean nothing. */
export const byType =
  (readers: Readonly<Record<string, Reader>>): Reader =>
  event => {
    const type = textIn(event.type);
    return Object.hasOwn(readers, type) ? (readers[type]?.(event) ?? []) : [];
  };

const maxDetailLength = 500;

/** Anything that an event brings along, as a short text for the log. */
export function detailOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return cutMiddle(text, maxDetailLength);
}

type Count = 'input' | 'output' | 'reasoning' | 'cacheRead' | 'cacheWrite';

/** Token counts, each as `count` tells it. */
export const usageBy = (count: (name: Count) => number): Usage => ({
  input: count('input'),
  output: count('output'),
  reasoning: count('reasoning'),
  cacheRead: count('cacheRead'),
  cacheWrite: count('cacheWrite'),
});

/** Token counts by the names under which they stand in `counts`; what is not told is nought. */
export const usageFrom = (counts: Record<string, unknown>, names: Partial<Record<Count, string>>): Usage =>
  usageBy(count => {
    const value = numberIn(counts[names[count] ?? '']);
    return Number.isFinite(value) && value > 0 ? Math.floor(value) : 0;
  });

/** The message of an error, however it is wrapped. */
export function messageIn(value: unknown): string {
  if (typeof value === 'string') return value;
  if (!isRecord(value)) return '';
  const { message, error, data } = value;
  if (typeof message === 'string') return message;
  return messageIn(error) || (isRecord(data) ? messageIn(data) : '');
}
