import { isRecord, numberIn } from '../../../core/json.ts';
import { cutMiddle } from '../../../core/text.ts';
import { noUsage, type Usage } from '../../../core/usage.ts';

/** One CLI: how it is started so that nobody has to sit before it, and what its output means. */
export interface CliDefinition {
  /** Stands behind the colon of `cli:name`, and is the `cli_name` of `clink`. Lower case. */
  name: string;
  /** For people, and for the agent itself. */
  title: string;
  /** Looked for in PATH (with PATHEXT on Windows), unless it is an absolute path. */
  executable: string;
  /** Tokens that a prompt may have. */
  window: number;
  /** All arguments but the prompt. `extra` is what configuration adds: it stands where flags may stand. */
  command(call: CliCall, extra: readonly string[]): string[];
  /** Flags that let it do more than read, with the number of values each takes: left out unless the operator allows writing. */
  widening: Readonly<Record<string, number>>;
  /** `stdin`, or `last`: it takes it as its last argument only. */
  promptBy: 'stdin' | 'last';
  /** `text`: what it prints is the answer. `json`: objects, one a line, or one in all. */
  output: 'text' | 'json';
  /** PAL's word for what reads its output; shown in replies. */
  parser: string;
  /** What one object of its output means; absent for `text`. */
  read?(event: Record<string, unknown>): CliEvent[];
  /** An at sign means nothing to it. Absent: it may read a file for it, so that none reaches it. */
  plainAt?: boolean;
  /** Variables of our environment that it gets beside those that every CLI gets; `*` at the end stands for any letters. */
  env: readonly string[];
  /** Variables that are set for it. */
  set?: Readonly<Record<string, string>>;
  /** Tells by what it printed that nobody is logged in. */
  login: RegExp;
  /** What to do then. */
  loginHint: string;
  /** Other things that it refuses, and what to do then. */
  refusals?: readonly { says: RegExp; class: string; hint: string }[];
}

/** A call as the command line says it. */
export interface CliCall {
  model?: string;
  /** To be gone on with. */
  session?: string;
  mayWrite: boolean;
}

/** What a line of a CLI's output means. */
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

/** Typed identity; a CLI is one file of `clis/` that exports one of these. */
export function defineCli(definition: CliDefinition): CliDefinition {
  return definition;
}

const maxDetailLength = 500;

/** Anything that an event brings along, as a short text for the log. */
export function detailOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return cutMiddle(text, maxDetailLength);
}

/** An event when there is something to tell. */
export function when(condition: unknown, event: CliEvent): CliEvent[] {
  return condition === undefined || condition === '' || condition === false ? [] : [event];
}

/** Token counts by the names under which they stand in `counts`; what is not told is nought. */
export function usageFrom(
  counts: Record<string, unknown>,
  names: Partial<Record<'input' | 'output' | 'reasoning' | 'cacheRead' | 'cacheWrite', string>>,
): Usage {
  const count = (name: string | undefined) => {
    const value = name === undefined ? 0 : numberIn(counts[name]);
    return Number.isFinite(value) && value > 0 ? Math.floor(value) : 0;
  };
  return {
    ...noUsage,
    input: count(names.input),
    output: count(names.output),
    reasoning: count(names.reasoning),
    cacheRead: count(names.cacheRead),
    cacheWrite: count(names.cacheWrite),
  };
}

/** The message of an error, however it is wrapped. */
export function messageIn(value: unknown): string {
  if (typeof value === 'string') return value;
  if (!isRecord(value)) return '';
  const { message, error, data } = value;
  if (typeof message === 'string') return message;
  return messageIn(error) || (isRecord(data) ? messageIn(data) : '');
}
