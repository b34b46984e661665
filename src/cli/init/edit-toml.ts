import { isDeepStrictEqual } from 'node:util';
import { configError } from '../../core/errors.ts';
import { isRecord, type Json, type JsonObject } from '../../core/json.ts';

/** A statement of a TOML text: one line, or as many as its value takes. */
export interface TomlLine {
  /** Offsets, the line end included. */
  start: number;
  end: number;
  header: boolean;
  /** Nothing but space or a comment. */
  blank: boolean;
  /** The table that it opens or stands in. */
  table: readonly string[];
  /** What it sets, within the table. */
  key?: readonly string[];
}

const bare = String.raw`[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'`;

const dotted = String.raw`(?:${bare})(?:[ \t]*\.[ \t]*(?:${bare}))*`;

const headerPattern = new RegExp(String.raw`^[ \t]*\[\[?[ \t]*(${dotted})[ \t]*\]\]?`);

const keyPattern = new RegExp(String.raw`^[ \t]*(${dotted})[ \t]*=`);

/** Cuts a TOML text into its statements, so that one can be replaced without touching the others. */
export function tomlLines(text: string): TomlLine[] {
  const lines: TomlLine[] = [];
  let table: readonly string[] = [];
  for (let start = 0; start < text.length; ) {
    const rest = text.slice(start, lineEnd(text, start));
    const header = headerPattern.exec(rest);
    const key = header ? undefined : keyPattern.exec(rest);
    const valueAt = key ? start + key[0].length : start;
    const end = key ? valueEnd(text, valueAt) : lineEnd(text, start);
    if (header) table = partsOf(header[1] ?? '');
    const blank = /^\s*(?:#.*\s*)?$/.test(rest);
    lines.push({ start, end, header: header !== null, blank, table, ...(key && { key: partsOf(key[1] ?? '') }) });
    start = end;
  }
  return lines;
}

function partsOf(text: string): string[] {
  return [...text.matchAll(new RegExp(bare, 'g'))].map(([part]) => {
    if (part.startsWith("'")) return part.slice(1, -1);
    if (!part.startsWith('"')) return part;
    try {
      return String(JSON.parse(part));
    } catch {
      // An escape that JSON does not know: then it is not a name that we look for.
      return part;
    }
  });
}

function lineEnd(text: string, from: number): number {
  const at = text.indexOf('\n', from);
  return at < 0 ? text.length : at + 1;
}

const quotes = ['"""', "'''", '"', "'"];

/** The end of the line on which a value ends: strings and lists may go over several. */
function valueEnd(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const quote = quotes.find(candidate => text.startsWith(candidate, at));
    if (quote) {
      at = stringEnd(text, at + quote.length, quote) - 1;
      continue;
    }
    const char = text[at];
    if (char === '#') at = lineEnd(text, at) - (text[lineEnd(text, at) - 1] === '\n' ? 2 : 1);
    else if (char === '[' || char === '{') depth++;
    else if (char === ']' || char === '}') depth--;
    else if (char === '\n' && depth <= 0) return at + 1;
  }
  return text.length;
}

function stringEnd(text: string, from: number, quote: string): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\' && quote.startsWith('"')) at++;
    else if (text.startsWith(quote, at)) return at + quote.length;
    else if (text[at] === '\n' && quote.length === 1) return at;
  }
  return text.length;
}

/** The text of a TOML file with this new table at `[key.name]`; undefined takes it out. Every other byte stays as it is. */
export function editToml(text: string, path: readonly [string, string], value: JsonObject | undefined): string {
  const lines = tomlLines(text);
  refuseOtherForms(lines, path);
  const found = blockOf(lines, path);
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  if (value === undefined)
    return found ? withoutGap(text.slice(0, found.start), editToml(text.slice(found.end), path, undefined)) : text;
  const gap = text === '' ? '' : text.endsWith('\n') ? eol : eol + eol;
  return `${text}${gap}${tomlTable(path, value, eol)}`;
}

/** Whether `[key.name]` stands in the text. */
export function hasTomlTable(text: string, path: readonly [string, string]): boolean {
  return blockOf(tomlLines(text), path) !== undefined;
}

function isBelow(header: readonly string[], [key, name]: readonly [string, string]): boolean {
  return header[0] === key && header[1] === name;
}

/** From our header to the last of our settings: comments after it belong to what follows. */
function blockOf(
  lines: readonly TomlLine[],
  path: readonly [string, string],
): { start: number; end: number } | undefined {
  const first = lines.findIndex(({ table, header }) => header && isBelow(table, path));
  if (first < 0) return undefined;
  let last = first;
  for (let at = first; at < lines.length; at++) {
    const line = lines[at];
    if (!line || (line.header && !isBelow(line.table, path))) break;
    if (!line.blank) last = at;
  }
  return { start: lines[first]?.start ?? 0, end: lines[last]?.end ?? 0 };
}

/** Takes the empty line before a block along when the block goes. */
function withoutGap(before: string, after: string): string {
  const joined = /(^|\n)\r?\n$/.exec(before);
  return joined
    ? before.slice(0, before.length - (joined[0].length - (joined[1]?.length ?? 0))) + after
    : before + after;
}

/** Inline and dotted forms of the same table are rare, and a second definition would make the file invalid. */
function refuseOtherForms(lines: readonly TomlLine[], path: readonly [string, string]): void {
  const [key, name] = path;
  for (const { table, header, blank, key: own } of lines) {
    if (header || blank || !own) continue;
    const full = [...table, ...own];
    const ours = full[0] === key && (full.length === 1 || full[1] === name) && !isBelow(table, path);
    if (!ours) continue;
    throw configError(`The configuration of the host writes ${full.join('.')} in a form that can't be edited here.`, {
      next: `Nothing was changed. Turn it into a table [${key}.${name}], or take it out, and repeat the command.`,
    });
  }
}

function tomlTable([key, name]: readonly [string, string], value: JsonObject, eol: string): string {
  const entries = Object.entries(value).filter(([, entry]) => entry !== undefined);
  const rows = entries.map(([field, entry]) => `${tomlKey(field)} = ${tomlValue(entry ?? null)}`);
  return [`[${tomlKey(key)}.${tomlKey(name)}]`, ...rows, ''].join(eol);
}

function tomlKey(name: string): string {
  return /^[\w-]+$/.test(name) ? name : JSON.stringify(name);
}

function tomlValue(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`;
  if (isRecord(value)) {
    const rows = Object.entries(value).map(([name, entry]) => `${tomlKey(name)} = ${tomlValue(entry ?? null)}`);
    return `{ ${rows.join(', ')} }`;
  }
  // JSON's escapes are a part of TOML's, but for DEL, which TOML wants escaped.
  return typeof value === 'string' ? JSON.stringify(value).replaceAll('\u007f', '\\u007F') : String(value);
}

const tomlPair = new RegExp(String.raw`(${dotted})[ \t]*=[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s,}]+)`, 'g');

/**
 * The text with a value at a path, of which the beginning is there. One that is there is replaced where `force` says so, and a
 * list of names gets the missing ones. A table of variables may be inline, of its own, or dotted.
 */
export function setToml(text: string, path: readonly string[], value: Json, force: boolean): string {
  const lines = tomlLines(text);
  const [field = '', inTable] = [path.at(-1), path.slice(0, -1)];
  const written = `${tomlKey(field)} = ${tomlValue(value)}`;
  const lineOf = (wanted: readonly string[]) =>
    lines.find(({ table, key }) => key && isDeepStrictEqual([...table, ...key], wanted));
  const put = ({ start, end }: Pick<TomlLine, 'start' | 'end'>, row: string) => {
    const before = text.slice(0, start);
    const eol = text.includes('\r\n') ? '\r\n' : '\n';
    return `${before}${before === '' || before.endsWith('\n') ? '' : eol}${row}${eol}${text.slice(end)}`;
  };
  const line = lineOf(path);
  if (line) {
    const row = text.slice(line.start, line.end);
    if (force) return row.trimStart().startsWith(written) ? text : put(line, written);
    const there = namesIn(row);
    const missing = Array.isArray(value) ? value.filter(name => !there.includes(String(name))) : [];
    return missing.length === 0 ? text : put(line, `${tomlKey(field)} = ${tomlValue([...there, ...missing])}`);
  }
  const parent = lineOf(inTable);
  if (parent) {
    const row = text.slice(parent.start, parent.end);
    const open = row.indexOf('{', row.indexOf('=')) + 1;
    // A text where a table should be is for its user to mend.
    if (open === 0) return text;
    const pairs = [...row.slice(open).matchAll(tomlPair)];
    const pair = pairs.find(([, key = '']) => isDeepStrictEqual(partsOf(key), [field]));
    const at = parent.start + open + (pair?.index ?? 0);
    if (pair) return force ? text.slice(0, at) + written + text.slice(at + pair[0].length) : text;
    return `${text.slice(0, at)} ${written}${pairs.length > 0 ? ',' : ' '}${text.slice(at)}`;
  }
  const last = lines.findLast(({ table, key, header }) => {
    const isOutside = table.length > inTable.length || (!header && !key);
    return !isOutside && isDeepStrictEqual([...table, ...(key ?? [])].slice(0, inTable.length), inTable);
  });
  if (last) {
    const prefix = inTable.slice(last.table.length).map(name => `${tomlKey(name)}.`);
    return put({ start: last.end, end: last.end }, prefix.join('') + written);
  }
  if (inTable.length > 2) return setToml(text, inTable, { [field]: value }, false);
  const end = { start: text.length, end: text.length };
  return put(end, `[${inTable.map(tomlKey).join('.')}]\n${written}`);
}

/** The strings of a list. */
function namesIn(row: string): string[] {
  return [...row.slice(row.indexOf('=')).matchAll(/"([^"]*)"|'([^']*)'/g)].map(([, a, b]) => a ?? b ?? '');
}
