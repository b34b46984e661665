import { isDeepStrictEqual } from 'node:util';
import { getNodeValue, type Node, type ParseError, parseTree, printParseErrorCode, stripComments } from 'jsonc-parser';
import { isRecord, type Json, type JsonObject, recordIn } from '../../core/json.ts';
import { editToml, eolOf, readToml, setToml, uneditable, withoutMark } from './edit-toml.ts';
import type { HostDefinition } from './hosts.ts';

type EntryPath = readonly [key: string, name: string];

/** The text of a JSON file with this value at `key.name`; undefined takes it out. Every other byte stays as it is. */
export function editJson(text: string, path: EntryPath, value: JsonObject | undefined): string {
  if (value !== undefined) return setJson(text, path, value, true);
  const [start, base] = contentOf(text);
  const servers = memberOf(rootOf(base), path[0])?.value;
  const entry = servers && memberOf(servers, path[1]);
  return entry ? start + withoutMember(base, servers, entry.property) : text;
}

/** The text with a value at a path. One that is there is replaced where `force` says so. */
function setJson(text: string, path: readonly string[], value: Json, force: boolean): string {
  const [start, base] = contentOf(text);
  let object = rootOf(base);
  for (const [at, name] of path.entries()) {
    const { property, value: found } = memberOf(object, name) ?? {};
    const inner = path.slice(at + 1);
    const nested = inner.reduceRight<Json>((within, key) => ({ [key]: within }), value);
    if (!property || !found) return start + withMember(base, object, name, nested);
    const isLast = inner.length === 0;
    // Hosts take what is null for absent.
    if (isLast ? force && !isDeepStrictEqual(getNodeValue(found), value) : found.type === 'null')
      return start + splice(base, found, jsonText(nested, base, indentAt(base, property.offset)));
    if (!isLast && found.type !== 'object') throw uneditable(`"${name}" is not an object`);
    object = found;
  }
  return text;
}

/** A byte order mark, and what follows it: with an empty object where that is nothing or null, comments apart. */
function contentOf(text: string): [start: string, content: string] {
  const [start, content] = withoutMark(text);
  const bare = stripComments(content, ' ');
  if (!/^(null)?$/.test(bare.trim())) return [start, content];
  const at = bare.trim() === '' ? content.length : bare.indexOf('null');
  const parts = [content.slice(0, at).trimEnd(), '{', '}', content.slice(at + 'null'.length).trim()];
  return [start, parts.map(part => (part === '' ? '' : part + eolOf(content))).join('')];
}

/** The value at `key.name`, where there is one. */
export function readJson(text: string, [key, name]: EntryPath): unknown {
  const servers = memberOf(rootOf(contentOf(text)[1]), key)?.value;
  const entry = servers?.type === 'object' ? memberOf(servers, name)?.value : undefined;
  return entry && getNodeValue(entry);
}

function rootOf(content: string): Node {
  const errors: ParseError[] = [];
  const root = parseTree(content, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first) {
    const line = content.slice(0, first.offset).split('\n').length;
    throw uneditable(`line ${line} is not JSON (${printParseErrorCode(first.error)})`);
  }
  if (root?.type !== 'object') throw uneditable('it is not an object');
  return root;
}

function memberOf(object: Node, name: string): { property: Node; value: Node | undefined } | undefined {
  // Of two members with one name, readers take the last.
  const property = object.children?.findLast(({ children }) => children?.[0]?.value === name);
  return property && { property, value: property.children?.[1] };
}

function withMember(text: string, object: Node, name: string, value: Json): string {
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
  const [start, end] = [property.offset, endOf(property)];
  const from = previous ? endOf(previous) : object.offset + 1;
  const to = next ? next.offset : endOf(object) - 1;
  const [isPlainBefore, isPlainAfter] = [isPlain(text.slice(from, start)), isPlain(text.slice(end, to))];
  if (previous && isPlainBefore) return text.slice(0, from) + text.slice(end);
  if (!previous && next && isPlainAfter) return text.slice(0, start) + text.slice(to);
  if (!previous && !next && isPlainBefore && isPlainAfter) return splice(text, object, '{}');
  return withoutSpan(text, start, end, previous && from);
}

/** Where a comment stands between: the member goes alone, with the comma after it, else with the one before it. */
function withoutSpan(text: string, from: number, to: number, previousEnd: number | undefined): string {
  const after = /^\s*,/.exec(text.slice(to))?.[0].length;
  if (after !== undefined) return text.slice(0, from) + text.slice(to + after);
  const end = previousEnd ?? from;
  return text.slice(0, end) + text.slice(end, from).replace(/^(\s*),/, '$1') + text.slice(to);
}

const isPlain = (between: string): boolean => /^[\s,]*$/.test(between);

const endOf = ({ offset, length }: Node): number => offset + length;

const splice = (text: string, node: Node, replacement: string): string =>
  text.slice(0, node.offset) + replacement + text.slice(endOf(node));

const insert = (text: string, at: number, addition: string): string => text.slice(0, at) + addition + text.slice(at);

const jsonText = (value: Json, text: string, indent: string): string =>
  JSON.stringify(value, undefined, unitOf(text)).replaceAll('\n', `${eolOf(text)}${indent}`);

/** One step of indentation, as the file has it. */
const unitOf = (text: string): string => /^([ \t]+)\S/m.exec(text)?.[1]?.slice(0, 8) ?? '  ';

/** The space at the beginning of the line. */
const indentAt = (text: string, offset: number): string =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', offset - 1) + 1))?.[0] ?? '';

const formats = {
  json: { read: readJson, edit: editJson, set: setJson },
  toml: { read: readToml, edit: editToml, set: setToml },
};

/** What an entry is there for. The rest of it is a first proposal, which the user may have changed. */
const owned = new Set(['type', 'source', 'command', 'args']);

/**
 * The text of a host's file with this entry under a name. Of one that is there, only what starts the server and these variables
 * are set; what is missing is added, and all else is the user's. One that leads to a URL is replaced.
 */
export function withEntry(
  host: HostDefinition,
  text: string,
  name: string,
  entry: JsonObject,
  variables: readonly string[],
): string {
  const path = [host.key, name] as const;
  const { edit, set } = formats[host.format];
  if (!hasEntry(host, text, name) || namesUrl(host, text, name)) return edit(text, path, entry);
  let merged = text;
  for (const [field, value] of Object.entries(entry)) {
    if (!isRecord(value))
      merged = value === undefined ? merged : set(merged, [...path, field], value, owned.has(field));
    else
      for (const [each, item] of Object.entries(value))
        merged = set(merged, [...path, field, each], item ?? null, variables.includes(each));
  }
  return merged;
}

export const hasEntry = ({ format, key }: HostDefinition, text: string, name: string): boolean =>
  formats[format].read(text, [key, name]) !== undefined;

/** Whether an entry leads to a server by its URL: next to a command, Codex refuses the whole file, and Gemini CLI ignores the command. */
export function namesUrl({ format, key }: HostDefinition, text: string, name: string): boolean {
  const entry = recordIn(formats[format].read(text, [key, name]));
  return ['url', 'httpUrl', 'serverUrl'].some(url => entry[url] !== undefined);
}

/**
 * The text without the entry. Where one of the former texts is what the entry was once put into, it is that one, to the byte:
 * `''` says that there was no file.
 */
export function withoutEntry(host: HostDefinition, text: string, name: string, former: readonly string[]): string {
  const path = [host.key, name] as const;
  const { read, edit } = formats[host.format];
  const rest = edit(text, path, undefined);
  const entry: JsonObject = JSON.parse(JSON.stringify(read(text, path) ?? {}));
  const isSame = (before: string) => {
    try {
      const isWithout = read(before, path) === undefined;
      return isWithout && (before.trimEnd() === rest.trimEnd() || edit(before, path, entry) === text);
    } catch {
      // A backup that cannot be read is not where this text comes from.
      return false;
    }
  };
  return former.find(isSame) ?? rest;
}
