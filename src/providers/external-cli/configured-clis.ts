import { existsSync } from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';
import { z } from 'zod';
import type { CliDefinition } from './clis/cli.ts';
import { clis } from './clis/index.gen.ts';

/** A command as people write it in a configuration → its words. Quotes hold blanks together; nothing else means anything. */
export function splitCommand(command: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  for (const [piece, single, double, escaped] of command.matchAll(pieces)) {
    if (/^\s/.test(piece)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? '') + (single ?? double?.replace(/\\(["'\\\s])/g, '$1') ?? escaped ?? piece);
  }
  return word === undefined ? words : [...words, word];
}

/** What stands in single quotes, in double ones, an escaped character, or any other character. Quotes may stay open. */
const pieces = /'([^']*)'?|"((?:\\["'\\\s]|[^"])*)"?|\\(["'\\\s])|./gs;

/** A CLI as it is used: the built-in knowledge, with what the operator's files say over it. */
export interface ConfiguredCli extends CliDefinition {
  /** Looked for in PATH (with PATHEXT on Windows), unless it is an absolute path. */
  executable: string;
  /** What stands behind the executable before all else: `npx gemini` is `gemini` behind `npx`. */
  prefix: readonly string[];
  /** Arguments of the configuration. */
  extra: readonly string[];
  roles: readonly CliRole[];
  timeLimitMs: number;
  /** Where it works whatever the caller's project is. */
  directory?: string;
}

export interface CliRole {
  name: string;
  /** The file with its prompt; absent: the built-in prompt of that name. */
  promptFile?: string;
  args: readonly string[];
}

/** A file of the operator's, parsed as JSON. */
export interface CliFile {
  /** Absolute. */
  path: string;
  document: unknown;
}

const words = () => z.union([z.string().transform(splitCommand), z.array(z.string())]);

const fileSchema = () =>
  z.object({
    name: z
      .string()
      .regex(/^[a-z][a-z0-9_-]{0,39}$/i)
      .toLowerCase(),
    command: words().optional(),
    working_dir: z.string().nullish(),
    additional_args: words().optional(),
    env: z.record(z.string(), z.string()).optional(),
    timeout_seconds: z.number().positive().max(86_400).nullish(),
    roles: z
      .record(z.string(), z.object({ prompt_path: z.string().nullish(), role_args: words().optional() }))
      .optional(),
    // Ours, for CLIs that are not built in.
    like: z.string().optional(),
    title: z.string().optional(),
    prompt: z.enum(['stdin', 'argument']).optional(),
    output: z.enum(['text', 'gemini_json', 'codex_jsonl', 'claude_json', 'opencode_jsonl']).optional(),
    model_args: z.array(z.string()).optional(),
    resume_args: z.array(z.string()).optional(),
    read_args: z.array(z.string()).optional(),
    write_args: z.array(z.string()).optional(),
    pass_env: z.array(z.string().regex(/^\w+\*?$/)).optional(),
    login_pattern: z.string().optional(),
    login_hint: z.string().optional(),
    context_window: z.int().positive().optional(),
  });

type FileEntry = z.output<ReturnType<typeof fileSchema>>;

/** What only configuration adds. */
const plain: Pick<ConfiguredCli, 'prefix' | 'extra' | 'roles'> = {
  prefix: [],
  extra: [],
  roles: ['default', 'planner', 'codereviewer'].map(name => ({ name, args: [] })),
};

const usualWindow = 128_000;

/** Makes a path that a file names absolute; `up` leads from its folder to where relative ones begin. */
type Absolute = (path: string, up?: string) => string;

/** All CLIs there are. Files are laid over the built-in ones in their order; one that can't be used is left out with a warning. */
export function configuredClis(
  files: readonly CliFile[],
  timeLimitMs: number,
  absolutePath: (path: string, folder: string) => string,
) {
  const warnings: string[] = [];
  const builtIn = clis.map(cli => ({ ...cli, ...plain, executable: cli.name, timeLimitMs }));
  const found = new Map<string, ConfiguredCli>(builtIn.map(cli => [cli.name, cli]));
  for (const { path, document } of files) {
    const parsed = fileSchema().safeParse(document);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      warnings.push(`The CLI file ${path} was left out: ${issue?.path.join('.') || 'the file'}: ${issue?.message}.`);
      continue;
    }
    const { name, like = '' } = parsed.data;
    const absolute: Absolute = (file, up = '.') => absolutePath(file, resolve(dirname(path), up));
    const cli = laidOver(found.get(name) ?? found.get(like), parsed.data, absolute, timeLimitMs);
    if (typeof cli === 'string') warnings.push(`The CLI file ${path} was left out: ${cli}.`);
    else found.set(name, cli);
  }
  return { clis: [...found.values()], warnings };
}

function laidOver(before: ConfiguredCli | undefined, entry: FileEntry, absolute: Absolute, timeLimitMs: number) {
  const [executable, ...fixed] = entry.command ?? [];
  const start = before ?? { ...newCli(entry), timeLimitMs };
  if (executable === undefined && !before) return '"command" is missing';
  const place = executable ?? start.executable;
  if (!isAbsolute(place) && /[\\/]/.test(place)) return '"command" has a directory in it and is not absolute';
  let login = start.login;
  try {
    if (entry.login_pattern !== undefined) login = new RegExp(entry.login_pattern, 'i');
  } catch {
    return '"login_pattern" is no regular expression';
  }
  return {
    ...start,
    name: entry.name,
    title: entry.title ?? (before?.name === entry.name ? start.title : entry.name),
    executable: place,
    prefix: executable === undefined ? start.prefix : fixed,
    extra: entry.additional_args ?? start.extra,
    roles: rolesOf(entry, start.roles, absolute),
    env: [...start.env, ...(entry.pass_env ?? [])],
    set: { ...start.set, ...entry.env },
    login,
    loginHint: entry.login_hint ?? start.loginHint,
    window: entry.context_window ?? start.window,
    timeLimitMs: entry.timeout_seconds ? entry.timeout_seconds * 1_000 : start.timeLimitMs,
    ...(entry.working_dir && { directory: absolute(entry.working_dir) }),
  };
}

/** Next to the file of the CLI; PAL's prompts are two directories further up, at the root of its checkout. */
function promptAt(prompt: string, absolute: Absolute): string {
  const [near, above] = [absolute(prompt), absolute(prompt, '../..')];
  return existsSync(near) || !existsSync(above) ? near : above;
}

function rolesOf({ roles = {} }: FileEntry, before: readonly CliRole[], absolute: Absolute): CliRole[] {
  const own = Object.entries(roles).map(([name, { prompt_path: prompt, role_args: args = [] }]) => ({
    name,
    args,
    ...(prompt && { promptFile: promptAt(prompt, absolute) }),
  }));
  return [...own, ...before.filter(({ name }) => !Object.hasOwn(roles, name))];
}

/** A CLI that nothing is known of but what its file says. */
function newCli(entry: FileEntry): Omit<ConfiguredCli, 'timeLimitMs'> {
  const { name, output = 'text', model_args: model = [], resume_args: resume = [] } = entry;
  const reader = clis.find(({ parser }) => parser === output);
  const filled = (args: readonly string[], hole: string, value: string | undefined) =>
    value === undefined ? [] : args.map(arg => arg.replaceAll(hole, value));
  return {
    name,
    title: entry.title ?? name,
    executable: '',
    window: usualWindow,
    command: (call, extra) => [
      ...extra,
      ...((call.mayWrite ? entry.write_args : entry.read_args) ?? []),
      ...filled(model, '{model}', call.model),
      ...filled(resume, '{session}', call.session),
    ],
    widening: [],
    promptBy: entry.prompt === 'argument' ? 'last' : 'stdin',
    parser: output,
    ...(reader?.read && { read: reader.read }),
    env: [],
    login: /not logged in|please (?:log|sign) ?in|login required|authentication required|run \S+ (?:auth )?login/i,
    loginHint: `Run "${name}" once in a terminal and log in.`,
    ...plain,
  };
}
