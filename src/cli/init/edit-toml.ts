import { configError } from '../../core/errors.ts';
import { isRecord, type Json, type JsonObject } from '../../core/json.ts';
import { type TomlLine, tomlLines } from './toml-lines.ts';

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
