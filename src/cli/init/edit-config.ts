import { type Node, type ParseError, parse, parseTree, printParseErrorCode } from 'jsonc-parser';
import { configError } from '../../core/errors.ts';
import { isRecord, type Json, type JsonObject } from '../../core/json.ts';
import type { HostDefinition } from './hosts.ts';

const mark = '\uFEFF';

const parseOptions = { allowTrailingComma: true };

type EntryPath = readonly [key: string, name: string];

/** The text of a JSON file with this value at `key.name`; undefined takes it out. Every other byte stays as it is. */
export function editJson(text: string, path: EntryPath, value: JsonObject | undefined): string {
  const start = text.startsWith(mark) ? mark : '';
  const content = text.slice(start.length);
  const base = content.trim() === '' ? '{\n}\n' : content;
  const root = rootOf(base);
  const servers = memberOf(root, path[0]);
  if (servers?.value && servers.value.type !== 'object') throw unusable(`"${path[0]}" is not an object`);
  const entry = servers?.value && memberOf(servers.value, path[1]);
  if (value === undefined) {
    return entry && servers?.value ? start + withoutMember(base, servers.value, entry.property) : text;
  }
  if (entry?.value)
    return start + splice(base, entry.value, jsonText(value, base, indentAt(base, entry.property.offset)));
  const container = servers?.value ?? root;
  const [name, added] = servers ? [path[1], value] : [path[0], { [path[1]]: value }];
  return start + withMember(base, container, name, added);
}

/** The value at `key.name`, where there is one. */
export function readJson(text: string, [key, name]: EntryPath): unknown {
  const content = text.startsWith(mark) ? text.slice(1) : text;
  if (content.trim() === '') return undefined;
  rootOf(content);
  const document: unknown = parse(content, [], parseOptions);
  const servers = isRecord(document) ? document[key] : undefined;
  return isRecord(servers) && Object.hasOwn(servers, name) ? servers[name] : undefined;
}

function rootOf(content: string): Node {
  const errors: ParseError[] = [];
  const root = parseTree(content, errors, parseOptions);
  const [first] = errors;
  if (first) {
    const line = content.slice(0, first.offset).split('\n').length;
    throw unusable(`line ${line} is not JSON (${printParseErrorCode(first.error)})`);
  }
  if (root?.type !== 'object') throw unusable('it is not an object');
  return root;
}

function unusable(why: string) {
  return configError(`The configuration of the host can't be edited: ${why}.`, {
    next: 'Nothing was changed. Correct the file and repeat the command.',
  });
}

function memberOf(object: Node, name: string): { property: Node; value: Node | undefined } | undefined {
  // Of two members with one name, readers take the last.
  const property = object.children?.findLast(({ children }) => children?.[0]?.value === name);
  return property && { property, value: property.children?.[1] };
}

function withMember(text: string, object: Node, name: string, value: JsonObject): string {
  const eol = eolOf(text);
  const outer = indentAt(text, object.offset);
  const last = object.children?.at(-1);
  const own = last && text.slice(object.offset, last.offset).includes('\n') ? indentAt(text, last.offset) : undefined;
  const indent = own ?? outer + unitOf(text);
  const member = `${eol}${indent}${JSON.stringify(name)}: ${jsonText(value, text, indent)}`;
  if (last) return insert(text, endOf(last), `,${member}`);
  const rest = text.slice(object.offset + 1, endOf(object) - 1);
  return insert(text, object.offset + 1, rest.includes('\n') ? member : `${member}${eol}${outer}`);
}

/** Takes a member out with the comma and the space that came with it. Comments around it stay. */
function withoutMember(text: string, object: Node, property: Node): string {
  const members = object.children ?? [];
  const at = members.indexOf(property);
  const [previous, next] = [members[at - 1], members[at + 1]];
  const end = endOf(property);
  if (previous) {
    const from = endOf(previous);
    if (isPlain(text.slice(from, property.offset))) return text.slice(0, from) + text.slice(end);
  } else if (next) {
    if (isPlain(text.slice(end, next.offset))) return text.slice(0, property.offset) + text.slice(next.offset);
  } else {
    const before = text.slice(object.offset + 1, property.offset);
    const after = text.slice(end, endOf(object) - 1);
    if (isPlain(before) && isPlain(after)) return splice(text, object, '{}');
  }
  return withoutSpan(text, property.offset, end, previous && endOf(previous));
}

/** Where a comment stands between: the member goes alone, with the comma after it, else with the one before it. */
function withoutSpan(text: string, from: number, to: number, previousEnd: number | undefined): string {
  const after = /^\s*,/.exec(text.slice(to))?.[0].length;
  if (after !== undefined) return text.slice(0, from) + text.slice(to + after);
  const before = previousEnd === undefined ? text.slice(0, from) : withoutFirstComma(text, previousEnd, from);
  return before + text.slice(to);
}

function withoutFirstComma(text: string, previousEnd: number, from: number): string {
  return text.slice(0, previousEnd) + text.slice(previousEnd, from).replace(/^(\s*),/, '$1');
}

function isPlain(between: string): boolean {
  return /^[\s,]*$/.test(between);
}

function endOf({ offset, length }: Node): number {
  return offset + length;
}

function splice(text: string, node: Node, replacement: string): string {
  return text.slice(0, node.offset) + replacement + text.slice(endOf(node));
}

function insert(text: string, at: number, addition: string): string {
  return text.slice(0, at) + addition + text.slice(at);
}

function jsonText(value: JsonObject, text: string, indent: string): string {
  return JSON.stringify(value, undefined, unitOf(text)).replaceAll('\n', `${eolOf(text)}${indent}`);
}

function eolOf(text: string): string {
  return text.includes('\r\n') ? '\r\n' : '\n';
}

/** One step of indentation, as the file has it. */
function unitOf(text: string): string {
  return /^([ \t]+)\S/m.exec(text)?.[1]?.slice(0, 8) ?? '  ';
}

/** The space at the beginning of the line. */
function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', offset - 1) + 1))?.[0] ?? '';
}

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

/** The text of a TOML file with this table at `[key.name]`; undefined takes it out. Every other byte stays as it is. */
export function editToml(text: string, path: readonly [string, string], value: JsonObject | undefined): string {
  const lines = tomlLines(text);
  refuseOtherForms(lines, path);
  const found = blockOf(lines, path);
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const block = value === undefined ? '' : tomlTable(path, value, eol);
  if (found) {
    // Tables of ours that stand further down would contradict the new one.
    const after = editToml(text.slice(found.end), path, undefined);
    return withoutGap(text.slice(0, found.start), block, after);
  }
  if (value === undefined) return text;
  const gap = text === '' ? '' : text.endsWith('\n') ? eol : eol + eol;
  return `${text}${gap}${block}`;
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
function withoutGap(before: string, block: string, after: string): string {
  if (block !== '') return before + block + after;
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

/** The text of a host's file with this entry under a name, whatever stood there before. */
export function withEntry(host: HostDefinition, text: string, name: string, entry: JsonObject): string {
  return host.format === 'toml' ? editToml(text, [host.key, name], entry) : editJson(text, [host.key, name], entry);
}

export function hasEntry(host: HostDefinition, text: string, name: string): boolean {
  return host.format === 'toml' ? hasTomlTable(text, [host.key, name]) : readJson(text, [host.key, name]) !== undefined;
}

/**
 * The text without the entry. Where one of the former texts is what the entry was once put into, it is that one, to the byte:
 * `''` says that there was no file.
 */
export function withoutEntry(host: HostDefinition, text: string, name: string, former: readonly string[]): string {
  const path = [host.key, name] as const;
  if (host.format === 'toml') {
    const rest = editToml(text, path, undefined);
    const isSame = (before: string) => !hasTomlTable(before, path) && before.trimEnd() === rest.trimEnd();
    return former.find(isSame) ?? rest;
  }
  const entry: JsonObject = JSON.parse(JSON.stringify(readJson(text, path) ?? {}));
  const isSame = (before: string) => {
    try {
      return readJson(before, path) === undefined && editJson(before, path, entry) === text;
    } catch {
      // A backup that is no JSON is not where this text comes from.
      return false;
    }
  };
  return former.find(isSame) ?? editJson(text, path, undefined);
}
