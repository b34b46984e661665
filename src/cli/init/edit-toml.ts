import { isDeepStrictEqual } from 'node:util';
import { type AST, getStaticTOMLValue, ParseError, parseTOML } from 'toml-eslint-parser';
import { configError } from '../../core/errors.ts';
import { isRecord, type Json, type JsonObject, recordIn } from '../../core/json.ts';

const mark = '\uFEFF';

/** A byte order mark, and what follows it. */
export function withoutMark(text: string): [start: string, content: string] {
  const start = text.startsWith(mark) ? mark : '';
  return [start, text.slice(start.length)];
}

export const uneditable = (why: string): Error =>
  configError(`Cannot edit the host's configuration: ${why}.`, {
    next: 'Nothing was changed. Fix the file, then run init again.',
  });

type Path = readonly (string | number)[];

/** What a file sets at one path. Settings of an inline table follow the one that holds it. */
interface Setting {
  path: Path;
  node: AST.TOMLKeyValue;
  /** The path of the header above it. */
  table: Path;
  inline: boolean;
}

function layoutOf(text: string) {
  const tables: AST.TOMLTable[] = [];
  const settings: Setting[] = [];
  const add = (nodes: readonly AST.TOMLKeyValue[], table: Path, before: Path, inline: boolean) => {
    for (const node of nodes) {
      const path = [...before, ...getStaticTOMLValue(node.key)];
      settings.push({ path, node, table, inline });
      if (node.value.type === 'TOMLInlineTable') add(node.value.body, table, path, true);
    }
  };
  for (const node of parsed(text).body[0].body) {
    if (node.type === 'TOMLKeyValue') add([node], [], [], false);
    else {
      tables.push(node);
      add(node.body, node.resolvedKey, node.resolvedKey, false);
    }
  }
  return { tables, settings };
}

function parsed(text: string): AST.TOMLProgram {
  try {
    return parseTOML(text);
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    throw uneditable(`line ${error.lineNumber} is not TOML (${error.message})`);
  }
}

function lineEnd(text: string, from: number): number {
  const at = text.indexOf('\n', from);
  return at < 0 ? text.length : at + 1;
}

export const eolOf = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n');

/** The text of a TOML file with this table at `[key.name]`; undefined takes it out. Every other byte stays as it is. */
export function editToml(given: string, path: readonly [string, string], value: JsonObject | undefined): string {
  const [start, text] = withoutMark(given);
  const file = layoutOf(text);
  refuseOtherForms(file, path);
  // The table and those below it.
  const own = file.tables.filter(({ resolvedKey }) => beginsWith(resolvedKey, path));
  const rest = own.reduceRight(withoutTable, text);
  if (value === undefined) return start + rest;
  const eol = eolOf(text);
  const gap = rest === '' ? '' : rest.endsWith('\n') ? eol : eol + eol;
  const table = [`[${path.map(tomlKey).join('.')}]`, ...tomlRows(value), ''].join(eol);
  return `${start}${rest}${gap}${table}`;
}

/** The value at `key.name`, where there is one. */
export function readToml(given: string, path: readonly [key: string, name: string]): unknown {
  const [, text] = withoutMark(given);
  refuseOtherForms(layoutOf(text), path);
  return new Map(Object.entries(recordIn(getStaticTOMLValue(parsed(text))[path[0]]))).get(path[1]);
}

const beginsWith = (path: Path, beginning: Path): boolean =>
  isDeepStrictEqual(path.slice(0, beginning.length), beginning);

/** Takes a table out with the empty line before it; comments after it belong to what follows. */
function withoutTable(text: string, { range: [from, to] }: AST.TOMLTable): string {
  const before = text.slice(0, text.lastIndexOf('\n', from - 1) + 1);
  return before.replace(/(^|\n)\r?\n$/, '$1') + text.slice(lineEnd(text, to));
}

/** Inline and dotted forms of the same table are rare, and a second definition would make the file invalid. */
function refuseOtherForms({ settings }: ReturnType<typeof layoutOf>, path: readonly [string, string]): void {
  const [key, name] = path;
  const other = settings.find(
    ({ path: full, table }) => full[0] === key && (full.length === 1 || full[1] === name) && !beginsWith(table, path),
  );
  if (!other) return;
  throw configError(
    `The configuration of the host writes ${other.path.join('.')} in a form that Polylogue cannot edit.`,
    { next: `Nothing was changed. Turn it into a table [${key}.${name}], or take it out, and repeat the command.` },
  );
}

const tomlRows = (value: JsonObject): string[] =>
  Object.entries(value).flatMap(([name, entry]) =>
    entry === undefined ? [] : `${tomlKey(name)} = ${tomlValue(entry)}`,
  );

const tomlKey = (name: string): string => (/^[\w-]+$/.test(name) ? name : JSON.stringify(name));

function tomlValue(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`;
  if (isRecord(value)) return `{ ${tomlRows(value).join(', ')} }`;
  // JSON's escapes are a part of TOML's, but for DEL, which TOML wants escaped.
  return typeof value === 'string' ? JSON.stringify(value).replaceAll('\u007f', '\\u007F') : String(value);
}

/**
 * The text with a value at a path, of which the beginning is there. One that is there is replaced where `force` says so, and a
 * list of names gets the missing ones. A table of variables may be inline, of its own, or dotted.
 */
export function setToml(given: string, path: readonly string[], value: Json, force: boolean): string {
  const [start, text] = withoutMark(given);
  const eol = eolOf(text);
  const { tables, settings } = layoutOf(text);
  const [field = '', inTable] = [path.at(-1), path.slice(0, -1)];
  const written = `${tomlKey(field)} = ${tomlValue(value)}`;
  const at = (wanted: Path) => settings.find(setting => isDeepStrictEqual(setting.path, wanted));
  const put = (from: number, to: number, words: string) => start + text.slice(0, from) + words + text.slice(to);

  const found = at(path)?.node.value;
  if (found) {
    const there: unknown = getStaticTOMLValue(found);
    const wanted = force || !Array.isArray(there) || !Array.isArray(value) ? value : [...new Set([...there, ...value])];
    const isKept = isDeepStrictEqual(there, wanted) || (!force && !Array.isArray(wanted));
    return isKept ? given : put(found.range[0], found.range[1], tomlValue(wanted));
  }
  const parent = at(inTable)?.node.value;
  if (parent) {
    // A text where a table should be is for its user to mend.
    if (parent.type !== 'TOMLInlineTable') return given;
    const open = parent.range[0] + 1;
    return put(open, open, ` ${written}${parent.body.length > 0 ? ',' : ' '}`);
  }
  const header = tables.findLast(({ resolvedKey }) => isDeepStrictEqual(resolvedKey, inTable));
  const last = settings.findLast(
    ({ path: full, table, inline }) => !inline && table.length <= inTable.length && beginsWith(full, inTable),
  );
  const place = last?.node ?? header;
  if (place) {
    const end = lineEnd(text, place.range[1]);
    const dotted = inTable.slice(last?.table.length ?? inTable.length).map(name => `${tomlKey(name)}.`);
    const gap = text.slice(0, end).endsWith('\n') ? '' : eol;
    return put(end, end, `${gap}${dotted.join('')}${written}${eol}`);
  }
  if (inTable.length > 2) return setToml(given, inTable, { [field]: value }, false);
  const gap = text === '' || text.endsWith('\n') ? '' : eol;
  return `${given}${gap}[${inTable.map(tomlKey).join('.')}]${eol}${written}${eol}`;
}
