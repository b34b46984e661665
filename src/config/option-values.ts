import { isRecord } from '../core/json.ts';
import type { OptionSpec, OptionType } from '../core/option.ts';
import { nearName } from '../core/text.ts';

export type OptionTable = Readonly<Record<string, OptionSpec>>;

/** The product's own options stand under `app`, a provider's under its id. */
export interface OptionTables {
  readonly app: OptionTable;
  readonly [id: string]: OptionTable;
}

export type OptionValue = string | number | boolean | readonly string[];

type WordOf<Spec> = Spec extends { choices: readonly (infer Word extends string)[] } ? Word : string;

type ValueOf<Type extends OptionType, Word extends string> = Type extends 'number'
  ? number
  : Type extends 'boolean'
    ? boolean
    : Type extends 'list' | 'paths'
      ? readonly Word[]
      : Word;

/** What a table's options are worth: always a value where there is a default, undefined where nobody set one. */
export type OptionValues<Table extends OptionTable> = {
  readonly [Name in keyof Table]:
    | ValueOf<Table[Name]['type'], WordOf<Table[Name]>>
    | (Table[Name] extends { default: unknown } ? never : undefined);
};

export type TableValues<Tables extends OptionTables> = { readonly [Id in keyof Tables]: OptionValues<Tables[Id]> };

/** Whether each table has its values, as `parseValue` gives them to what is set; a test holds each default against its option. */
export const areValuesOf = <Tables extends OptionTables>(
  tables: Tables,
  values: unknown,
): values is TableValues<Tables> => isRecord(values) && Object.keys(tables).every(id => isRecord(values[id]));

export type ParsedValue = { ok: true; value: OptionValue } | { ok: false; problem: string; allowed: string };

/** How the place that a value comes from reads paths. */
export interface PathRules {
  /** Makes a path absolute and expands `~`. */
  resolve(path: string): string;
  /** Separates the paths of a list beside the comma. */
  delimiter: string;
}

/** Reads one value as text, or as the JSON type that fits. */
export function parseValue(spec: OptionSpec, raw: unknown, { resolve, delimiter }: PathRules): ParsedValue {
  const { type } = spec;
  if (type === 'boolean') return parseBoolean(spec, raw);
  if (type === 'number') return parseNumber(spec, raw);
  if (type === 'list') return parseList(spec, raw, /[,\n]/, String);
  if (type === 'paths') return parseList(spec, raw, delimiter === ';' ? /[,;\n]/ : /[,:\n]/, resolve);
  return parseWord(spec, raw, type === 'path' ? resolve : String);
}

/** What an option takes, as the end of a sentence. */
export function allowedText(spec: Omit<OptionSpec, 'env' | 'doc' | 'group'>): string {
  const { type, choices, fractional, min, max } = spec;
  if (choices) return `${type === 'list' || type === 'paths' ? 'a list of ' : ''}${choices.join(', ')}`;
  if (type !== 'number') return allowedTexts[type];
  const kind = `a ${fractional ? '' : 'whole '}number`;
  if (min !== undefined && max !== undefined) return `${kind} from ${min} to ${max}`;
  if (min !== undefined) return `${kind} of at least ${min}`;
  return max === undefined ? kind : `${kind} of at most ${max}`;
}

/** What an option is when nobody sets it, as texts say it. */
export const defaultText = ({ default: value }: OptionSpec): string | undefined =>
  value === undefined ? undefined : typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value);

const allowedTexts: Record<Exclude<OptionType, 'number'>, string> = {
  boolean: 'on or off',
  list: 'words separated by commas',
  paths: 'paths separated by commas',
  path: 'a path',
  url: 'an address that begins with http:// or https://',
  string: 'a text on one line',
};

function refused(spec: OptionSpec, raw: unknown, what: string): ParsedValue {
  return { ok: false, problem: `${shown(spec, raw)} ${what}`, allowed: allowedText(spec) };
}

/** A value as an error may show it: never a secret, nor what could be one that was put in the wrong place. */
function shown(spec: OptionSpec, raw: unknown): string {
  const harmless = /^[\w.,+ -]{1,20}$/;
  const text = typeof raw === 'string' || typeof raw === 'number' || typeof raw === 'boolean' ? String(raw) : undefined;
  const open = spec.secret !== true && spec.type !== 'url';
  return open && text !== undefined && harmless.test(text) ? `"${text}"` : 'its value';
}

function parseBoolean(spec: OptionSpec, raw: unknown): ParsedValue {
  const value = /^(true|on|yes|1)$/i.test(String(raw));
  if (value || /^(false|off|no|0)$/i.test(String(raw))) return { ok: true, value };
  return refused(spec, raw, 'is neither on nor off');
}

function parseNumber(spec: OptionSpec, raw: unknown): ParsedValue {
  const decimal = typeof raw === 'number' || (typeof raw === 'string' && /^[+-]?\d+(\.\d+)?$/.test(raw));
  const value = decimal ? Number(raw) : Number.NaN;
  if (!Number.isFinite(value)) return refused(spec, raw, 'is not a number');
  if (!spec.fractional && !Number.isSafeInteger(value)) return refused(spec, raw, 'is not a whole number');
  if (spec.min !== undefined && value < spec.min) return refused(spec, raw, 'is too small');
  if (spec.max !== undefined && value > spec.max) return refused(spec, raw, 'is too large');
  return { ok: true, value };
}

function parseWord(spec: OptionSpec, raw: unknown, finish: (word: string) => string): ParsedValue {
  if (typeof raw !== 'string' && typeof raw !== 'number') return refused(spec, raw, 'is not a text');
  const word = String(raw);
  if (/\p{Cc}/u.test(word)) return refused(spec, raw, 'contains a line break or another control character');
  if (spec.type === 'url' && !isWebAddress(word)) return refused(spec, raw, 'is not an address');
  const chosen = choice(spec, word);
  if (chosen !== undefined) return { ok: true, value: finish(chosen) };
  const near = nearName(word, spec.choices ?? []);
  return refused(spec, raw, `is not one of its choices${near ? ` (did you mean ${near}?)` : ''}`);
}

function parseList(spec: OptionSpec, raw: unknown, separator: RegExp, finish: (word: string) => string): ParsedValue {
  const list = Array.isArray(raw) ? raw : typeof raw === 'string' ? raw.split(separator) : undefined;
  if (list === undefined) return refused(spec, raw, 'is not a list');
  const words = new Set<string>();
  for (const entry of list) {
    const trimmed: unknown = typeof entry === 'string' ? entry.trim() : entry;
    if (trimmed === '') continue;
    const word = parseWord(spec, trimmed, finish);
    if (!word.ok) return word;
    words.add(String(word.value));
  }
  return { ok: true, value: [...words] };
}

function choice({ choices, synonyms = {} }: OptionSpec, given: string): string | undefined {
  if (!choices) return given;
  const lower = given.toLowerCase();
  const known = choices.find(word => word.toLowerCase() === lower);
  return known ?? (Object.hasOwn(synonyms, lower) ? synonyms[lower] : undefined);
}

const isWebAddress = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? '');
