import type { ProcessEnvironment } from '../../app/compose-front.ts';
import type { AppConfig } from '../../app/settings.ts';
import { allowedText } from '../../config/option-values.ts';
import { inputError } from '../../core/errors.ts';
import { textsIn } from '../../core/json.ts';
import type { OptionSpec } from '../../core/option.ts';
import { didYouMean } from '../../core/text.ts';
import type { Output } from './output.ts';

/** The flags of a command by name, as they were given. */
export type Flags = Readonly<Record<string, unknown>>;

export function textFlag(flags: Flags, name: string): string | undefined {
  const value = flags[name];
  return typeof value === 'string' ? value : undefined;
}

/** The values of a flag that may be repeated. */
export const listFlag = (flags: Flags, name: string): string[] => textsIn(flags[name]);

/** The words of a flag that may be repeated and takes several at once, between commas; undefined where there are none. */
export function wordsFlag(flags: Flags, name: string): string[] | undefined {
  const words = listFlag(flags, name).flatMap(value => value.split(','));
  const found = words.flatMap(word => word.trim() || []);
  return found.length > 0 ? found : undefined;
}

/** Whether a flag without a value was given. */
export const isOn = (flags: Flags, name: string): boolean => flags[name] === true;

/** The number that was given for a flag, a whole one unless `fractional`; undefined where none was. */
export function numberFlag(flags: Flags, name: string, range: Pick<OptionSpec, 'min' | 'max' | 'fractional'>) {
  const text = textFlag(flags, name);
  if (text === undefined) return undefined;
  const value = text.trim() === '' ? Number.NaN : Number(text);
  const { min = 0, max = Number.POSITIVE_INFINITY, fractional } = range;
  if (value >= min && value <= max && (fractional || Number.isInteger(value))) return value;
  throw inputError(`--${name} is "${text}".`, { next: `Give it ${allowedText({ type: 'number', ...range })}.` });
}

/** The refusal of a word that is none of a few, with the one that was probably meant. */
export const noneOf = (kind: string, word: string, known: readonly string[]): Error =>
  inputError(`Unknown ${kind} "${word}".`, { next: `${didYouMean(word, known)}Name one of ${known.join(', ')}.` });

/** A flag of one command, beside those that all commands take. */
export interface FlagSpec {
  /** Without dashes. */
  name: string;
  /** What stands for its value in the help; absent: it takes none. */
  value?: string;
  /** May be given several times. */
  repeat?: boolean;
  /** Allowed words, where there are few. */
  choices?: readonly string[] | undefined;
  doc: string;
}

/** A flag by its name and what stands for its value, such as `limit <number>`. */
export function flag(usage: string, doc: string, more: Pick<FlagSpec, 'repeat' | 'choices'> = {}): FlagSpec {
  const [name = '', value] = usage.split(/[ <>]+/);
  return { name, ...(value && { value }), doc, ...more };
}

export const modelFlag = flag('model <name>', 'Model to ask: name, alias, provider:model or auto');

export const continueFlag = flag('continue <id>', 'Continue a thread: its ID, or last');

export interface CommandContext {
  /** What follows its name, without flags. */
  args: readonly string[];
  flags: Flags;
  config: AppConfig;
  environment: ProcessEnvironment;
  env: Readonly<Record<string, string | undefined>>;
  /** How this program is started again by somebody else: absolute paths of Node and of the program. */
  launch: { node: string; program: string };
  /** All commands there are, for one that speaks of them. */
  commands: readonly CommandDefinition[];
  out: Output;
  /** What was piped into the program; undefined where nothing was. */
  readInput(): Promise<string | undefined>;
}

/** The groups of the help, in its order. */
export const commandGroups = ['Ask', 'Threads', 'Search', 'Models', 'Setup', 'Server'] as const;

export const misusedExit = 2;

/** What a command ends with after an error of this code: whether what was given or named, or the configuration, has to be corrected. */
export const exitCodeOf = (code: string): number =>
  /^(INVALID_INPUT_FORMAT|MISSING_PARAMETER|CONFIG|THREAD_EXPIRED|\w+_NOT_FOUND)$/.test(code) ? misusedExit : 1;

/** The exit code; 0 where none is told. */
export type ExitCode = Promise<number | undefined> | Promise<void>;

export interface CommandDefinition {
  name: string;
  group: (typeof commandGroups)[number];
  /** One line for `--help`. */
  summary: string;
  /** Its arguments as commander writes them, such as `[directory]`; absent: it takes none. */
  usage?: string;
  /** What its first argument may be, where that is a word of few. */
  words?: readonly string[];
  flags?: readonly FlagSpec[];
  /** Command lines with what they do. */
  examples: readonly (readonly [line: string, does: string])[];
  run(context: CommandContext): ExitCode;
}

/** A command line as it was understood. */
export interface Invocation extends Pick<CommandContext, 'args' | 'flags' | 'commands'> {
  definition: CommandDefinition;
  /** Flags that set options. */
  settings: Flags;
}

/** Typed identity; a command is one file that exports one of these. */
export const defineCommand = (definition: CommandDefinition): CommandDefinition => definition;
