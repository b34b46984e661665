import { chmodSync, mkdirSync, readFileSync, realpathSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { configError } from '../core/errors.ts';
import { isRecord, parsedJson, recordIn, recordsIn, textsIn } from '../core/json.ts';
import type { OptionSpec } from '../core/option.ts';
import { nearName } from '../core/text.ts';
import type { readOwnEndpoints } from './endpoints.ts';
import { type Environment, type MachineEnvironment, onFile, pathsOf, requireHome } from './home.ts';
import { documentLayer, namesLayer } from './layers.ts';
import type { OptionTables } from './option-values.ts';
import { options } from './options.ts';

/**
 * Reads the text of a `.env` file: `NAME=value` lines, quotes, `#` comments, `export`. Values are not expanded. `cut` has the names
 * whose value ends at a `#` that was probably meant to belong to it, `idle` the numbers of the lines that set nothing.
 */
export function parseEnvFile(text: string) {
  const content = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const values: Record<string, string> = Object.assign(Object.create(null), parseEnv(content));
  // Other readers keep a `#` without a space before it; the built-in one starts a comment there.
  const lines = content.replace(/[\r\u2028\u2029]/g, '');
  const cut = [...lines.matchAll(cutValue)].map(([, name = '']) => name);
  // A value in quotes may have lines of its own.
  const plain = lines.replace(quotedValue, (found, name: string) => name + found.replace(/[^\n]/g, ''));
  const idle = plain.split('\n').flatMap((line, at) => (/^\s*($|#|[^\s=].*=)/.test(line) ? [] : [at + 1]));
  return { values, cut, idle };
}

const cutValue = /^[^\S\n]*(?:export[^\S\n]+)?([\w.-]+)[^\S\n]*=[^\S\n]*(?!["'`])[^\s#]+#\S/gm;
const quotedValue = /^([^\S\n]*[^\s#=][^=\n]*=)[^\S\n]*(["'`])[\s\S]*?\2.*$/gm;

/** The text of a file, undefined when there is none. Throws when it can't be read. */
export type ReadFile = (path: string) => string | undefined;

export interface SettingsRequest extends MachineEnvironment {
  tables: OptionTables;
  home: string;
  env: Environment;
  readFile: ReadFile;
  /** Reads `endpoints` of `config.json`: too large to be loaded where there are none. Absent: they are left out. */
  readEndpoints?: typeof readOwnEndpoints | undefined;
  warn(message: string): void;
}

export type Settings = ReturnType<typeof readSettings>;

/** The member of `config.json` that names servers of the operator's own. */
const endpointsKey = 'endpoints';

/** Reads `config.json` and `.env` in POLYLOGUE_HOME, and the `.env` of the working directory if the operator trusts it. */
export function readSettings(request: SettingsRequest) {
  const { home, cwd, warn } = request;
  const { [endpointsKey]: raw, ...document } = readDocument(request);
  // Entries take their keys from variables too.
  const known = new Set([...envNames(request.tables), ...textsIn(recordsIn(raw).map(entry => entry.api_key_env))]);
  const homeEnv = readHomeEnv(request, known);
  // The marks of runs that Polylogue started itself end in _RUN.
  for (const name of Object.keys(request.env))
    if (/^POLYLOGUE_(?!\w*_RUN$)/.test(name) && !known.has(name)) warn(unknown(name, 'environment', known));
  const override = options.forceEnvOverride.env.map(name => homeEnv[name]?.trim().toLowerCase());
  return {
    document: documentLayer(home, document, warn),
    homeEnv: namesLayer('home .env', home, homeEnv, warn),
    projectEnv: namesLayer('project .env', cwd, readProjectEnv(request), warn),
    /** Whether `config.json` names servers of the operator's own; without `readEndpoints` they are not read. */
    namesEndpoints: raw !== undefined,
    /** Names of all environment variables that are read. */
    variables: known,
    own: request.readEndpoints?.({
      raw,
      reserved: new Set(['auto', 'local', ...Object.keys(request.tables)]),
      variable: name => request.env[name] ?? (Object.hasOwn(homeEnv, name) ? homeEnv[name] : undefined),
      warn,
    }) ?? { endpoints: [], secrets: [] },
    /** Whether the `.env` in POLYLOGUE_HOME wins over the environment. */
    homeWins: override.some(word => word !== undefined && ['true', '1', 'yes', 'on'].includes(word)),
  };
}

function read(request: SettingsRequest, name: string, folder = request.home) {
  const path = pathsOf(request.platform).join(folder, name);
  const next = 'Make it a file that you may read, or remove it, and start again.';
  const text = onFile(`${path} cannot be read`, next, () => request.readFile(path));
  return text === undefined ? undefined : { path, text };
}

function readDocument(request: SettingsRequest): Record<string, unknown> {
  const file = read(request, 'config.json');
  if (!file) return {};
  const document = parsedJson(file.text);
  if (!isRecord(document))
    throw configError(`${file.path} is not a JSON object${faultIn(file.text)}.`, {
      next: 'Write it as {"defaultModel": "auto", ...}, in JSON without comments, and start again.',
    });
  warnOfUnknownKeys(request, document);
  return withoutHome(request, document, 'config.json');
}

/** Where JSON breaks, as far as the parser says it: the rest of its message quotes the text, which may hold keys. */
function faultIn(text: string): string {
  try {
    JSON.parse(text.replace(/^\uFEFF/, ''));
    return '';
  } catch (error) {
    return / \(line \d+ column \d+\)/.exec(String(error))?.[0] ?? '';
  }
}

function readHomeEnv(request: SettingsRequest, known: ReadonlySet<string>): Record<string, string> {
  const file = read(request, '.env');
  if (!file) return {};
  const { values, cut, idle } = parseEnvFile(file.text);
  for (const line of idle) request.warn(`Line ${line} of ${file.path} sets nothing; write NAME=value.`);
  for (const name of cut) request.warn(`${name} (home .env) is cut at its "#"; put the value in quotes to keep it.`);
  for (const name of Object.keys(values)) if (!known.has(name)) request.warn(unknown(name, 'home .env', known));
  return withoutHome(request, values, 'home .env');
}

function readProjectEnv(request: SettingsRequest): Record<string, string> {
  if (request.cwd === request.home || !isTrusted(request)) return {};
  const file = read(request, '.env', request.cwd);
  if (!file) return {};
  const { values } = parseEnvFile(file.text);
  const barred = allSpecs(request.tables).filter(spec => !mayComeFromProject(spec));
  for (const name of barred.flatMap(({ env }) => env)) {
    if (!Object.hasOwn(values, name)) continue;
    delete values[name];
    const place = `Set it in the environment or in the .env of ${request.home}.`;
    request.warn(`${name} was ignored: the .env of a project may not set it. ${place}`);
  }
  return values;
}

function isTrusted(request: SettingsRequest): boolean {
  const file = read(request, trustFile);
  if (!file) return false;
  const directories = parseTrusted(file.text);
  if (!directories) {
    request.warn(`${file.path} is damaged: no directory is trusted. Remove it and trust your directories again.`);
    return false;
  }
  return directories.includes(pathsOf(request.platform).resolve(request.cwd));
}

const placeName = /_(URL|URI|HOST|ENDPOINT|BASE|PATH|DIR|HOME|ROOTS?|COMMAND|PROXY)$/;

/** A cloned repository must not redirect keys or start programs, not even where a table forgot to say so. */
function mayComeFromProject(spec: OptionSpec): boolean {
  const isPlace = spec.type === 'url' || spec.type === 'path' || spec.type === 'paths';
  return !spec.operatorOnly && !isPlace && !spec.env.some(name => placeName.test(name));
}

/** A file in POLYLOGUE_HOME can't say where POLYLOGUE_HOME is. */
function withoutHome<Value>({ warn }: SettingsRequest, values: Readonly<Record<string, Value>>, place: string) {
  const rest = { ...values };
  for (const name of [...options.home.env, 'home']) {
    if (!Object.hasOwn(rest, name)) continue;
    delete rest[name];
    warn(`${name} (${place}) was ignored: the file lies in that directory. Set it in the environment or by --home.`);
  }
  return rest;
}

const allSpecs = (tables: OptionTables): OptionSpec[] => Object.values(tables).flatMap(table => Object.values(table));

const envNames = (tables: OptionTables): Set<string> => new Set(allSpecs(tables).flatMap(({ env }) => env));

function warnOfUnknownKeys({ tables, warn }: SettingsRequest, document: Readonly<Record<string, unknown>>): void {
  // The names that this file is usually written with come first: the first of two equally near ones is proposed.
  const known = new Set([...Object.keys(tables.app), ...envNames(tables)]);
  for (const [key, value] of Object.entries(document)) {
    const table = key !== 'app' && Object.hasOwn(tables, key) ? tables[key] : undefined;
    if (table && isRecord(value)) {
      const names = Object.keys(table).map(name => `${key}.${name}`);
      for (const name of Object.keys(value)) {
        if (!Object.hasOwn(table, name)) warn(unknown(`${key}.${name}`, 'config.json', names));
      }
    } else if (key !== endpointsKey && !known.has(key))
      warn(unknown(key, 'config.json', [...known, ...Object.keys(tables)]));
  }
}

/** What many names begin with says nothing of what was meant. */
const withoutPrefix = (name: string): string => name.replace(/^POLYLOGUE_/, '');

function unknown(name: string, place: string, known: Iterable<string>): string {
  const shown = JSON.stringify(name.slice(0, 80));
  const names = new Map([...known].map(each => [withoutPrefix(each), each]));
  const near = names.get(nearName(withoutPrefix(name), names.keys()) ?? '');
  return `${shown} (${place}) is not an option and was ignored${near ? `; did you mean ${near}?` : '.'}`;
}

const maxBytes = 1_048_576;

/** The text of a settings file; undefined when there is none. Anything but a small regular file is an error. */
export function readIfPresent(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) return undefined;
  if (!stats.isFile()) throw new Error('it is not a regular file');
  if (stats.size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`);
  const bytes = readFileSync(path);
  // Windows PowerShell writes UTF-16, with a mark before the first letter.
  const mark = bytes.toString('hex', 0, 2);
  return new TextDecoder(mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8').decode(bytes);
}

const trustFile = 'trusted.json';

/** The directories that a trust file lists; undefined when the text is no trust file. */
export function parseTrusted(text: string): string[] | undefined {
  const { directories } = recordIn(parsedJson(text));
  const texts = textsIn(directories);
  return Array.isArray(directories) && texts.length === directories.length ? texts : undefined;
}

/** Lets the `.env` of one directory (not of those below it) set options from now on. Answers its real path. */
export function trustDirectory(home: string, directory: string): string {
  if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory())
    throw configError(`${directory} is not a directory.`, { next: 'Name the directory whose .env may set options.' });
  const real = realpathSync(directory);
  const path = join(home, trustFile);
  const text = readIfPresent(path);
  const listed = text === undefined ? [] : parseTrusted(text);
  if (!listed)
    throw configError(`${path} is damaged.`, {
      next: 'Remove the file, or make it {"directories": [...]} again, and repeat the command.',
    });
  if (listed.includes(real)) return real;
  requireHome(home, 'Set POLYLOGUE_HOME to a directory that you may write.');
  mkdirSync(home, { recursive: true, mode: 0o700 });
  // A reader sees the old file or the new one, never half of one.
  const draft = `${path}.new`;
  writeFileSync(draft, `${JSON.stringify({ directories: [...listed, real] }, undefined, 2)}\n`, { mode: 0o600 });
  chmodSync(draft, 0o600);
  renameSync(draft, path);
  return real;
}
