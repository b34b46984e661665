import { lstat, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { z } from 'zod';
import { inputError, isAppError, securityError } from '../../../../core/errors.ts';
import { printablePath, safeCut } from '../../../../core/text.ts';
import { isSkip } from '../../../../workspace/paths.ts';
import { readBytes } from '../../../../workspace/read-file.ts';
import { findSecrets, placeholdersIn, restoreSecretsInPatch } from '../../../../workspace/restore-secrets.ts';
import { type ChangedPlace, type FileChange, writeChanges } from '../../../../workspace/write-changes.ts';
import type { AgentTool } from './agent-tool.ts';
import { defineLocalTool, type LocalToolServices, pathIn, refused, targetNamed } from './local-tool.ts';
import { type ProcessOutput, runProcess } from './run-process.ts';

const applyMs = 30_000;

const outputBytes = 100_000;

const maxFiles = 200;

const mark = '\uFEFF';

/** What stands in a header and is more than a change of text; lines of a hunk begin with a mark of their own. */
const unwanted: readonly (readonly [RegExp, string])[] = [
  [
    /^(rename|copy) (from|to|old|new) /m,
    'renames and copies are not taken; delete the file and add it under its new name',
  ],
  [/^GIT binary patch$/m, 'binary patches are not taken'],
  [/^(old|new|new file|deleted file) mode (?!100(644|755)$)/m, 'only plain files are taken, no links or modules'],
];

/**
 * What a unified diff makes of the project's files, as git itself applies it to copies of them. Nothing of the project is
 * changed. Throws where it does not apply cleanly, or touches what may not be written.
 *
 * `src/files/patch/` is another thing: it mends what a model wrote, since nobody is there to write it again, needs a repository,
 * and deletes nothing. Here the model hears what git says and tries again, and a project needs no repository.
 */
export async function gitApply(parts: LocalToolServices, patch: string, signal: AbortSignal): Promise<FileChange[]> {
  const text = patch.endsWith('\n') ? patch : `${patch}\n`;
  for (const [pattern, why] of unwanted) if (pattern.test(text)) throw unfit(why);
  const folder = await mkdtemp(join(tmpdir(), 'polylogue-patch-'));
  const git = (args: readonly string[]) => runGitApply(parts, folder, args, text, signal);
  try {
    const names = await pathsIn(git);
    const copies: Copy[] = [];
    for (const name of names) copies.push(await copyOf(parts, folder, name, signal));
    const checked = await git(['--check']);
    if (checked.exitCode !== 0) throw unfit(`git apply --check says: ${safeCut(checked.output.trim(), 1_500)}`);
    const applied = await git([]);
    if (applied.exitCode !== 0) throw unfit(`git apply says: ${safeCut(applied.output.trim(), 1_500)}`);
    return await Promise.all(copies.map(copy => changeOf(copy)));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function pathsIn(git: (args: readonly string[]) => Promise<ProcessOutput>): Promise<string[]> {
  const { exitCode, output } = await git(['--numstat', '-z']);
  if (exitCode !== 0) throw unfit(`it is no unified diff: ${safeCut(output.trim(), 500)}`);
  const names = new Set(output.split('\0').flatMap(entry => entry.split('\t').slice(2).join('\t') || []));
  if (names.size === 0) throw unfit('it changes no file');
  if (names.size > maxFiles) throw unfit(`it changes more than ${maxFiles} files`);
  return [...names];
}

interface Copy {
  /** Real path of the original, or where it is to be. */
  path: string;
  copied: string;
  /** Null: there is none yet. */
  before: Buffer | null;
  /** How the original ends its lines and begins. */
  crlf: boolean;
  marked: boolean;
}

/** Line ends and byte-order marks are not shown to models, so that their patches have none either. */
async function copyOf(parts: LocalToolServices, folder: string, name: string, signal: AbortSignal): Promise<Copy> {
  const copied = resolve(folder, name);
  if (!copied.startsWith(folder + sep)) throw outside(name);
  const path = await targetNamed(parts, resolve(parts.root, name));
  const opened = await parts.sandbox.open(path);
  if (isSkip(opened)) {
    if (opened.code !== 'not_found') throw refused(opened);
    return { path, copied, before: null, crlf: false, marked: false };
  }
  const before = await readBytes(opened, path, { maxBytes: parts.maxFileBytes, signal });
  if (!Buffer.isBuffer(before)) throw refused(before);
  const whole = before.toString('utf8');
  if (!Buffer.from(whole).equals(before)) throw unfit(`${printablePath(name)} is no text in UTF-8`);
  const marked = whole.startsWith(mark);
  const ends = whole.split('\n').length - 1;
  const crlf = ends > 0 && whole.split('\r\n').length - 1 === ends;
  const plain = marked ? whole.slice(1) : whole;
  await mkdir(dirname(copied), { recursive: true });
  await writeFile(copied, crlf ? plain.replaceAll('\r\n', '\n') : plain);
  return { path, copied, before, crlf, marked };
}

async function changeOf({ path, copied, before, crlf, marked }: Copy): Promise<FileChange> {
  // Not there any more: the patch deletes it.
  const stats = await lstat(copied).catch(() => undefined);
  if (!stats) return { path, before, text: undefined };
  // A link could lead anywhere.
  if (!stats.isFile()) throw unfit('only plain files are taken, no links or modules');
  const after = await readFile(copied, 'utf8');
  const ended = crlf ? after.replaceAll('\n', '\r\n') : after;
  return { path, before, text: marked ? mark + ended : ended };
}

function runGitApply(
  { clock, childEnv }: LocalToolServices,
  folder: string,
  args: readonly string[],
  input: string,
  signal: AbortSignal,
): Promise<ProcessOutput> {
  const env = {
    PATH: childEnv.PATH ?? '',
    HOME: folder,
    // No repository, and nobody's settings.
    GIT_CEILING_DIRECTORIES: dirname(folder),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    LC_ALL: 'C',
  };
  const argv = ['git', 'apply', '--whitespace=nowarn', ...args, '-'] as const;
  return runProcess({ clock, argv, cwd: folder, env, input, timeMs: applyMs, maxBytes: outputBytes, signal });
}

function unfit(why: string): Error {
  return inputError(`The patch can't be applied: ${why}.`, {
    next: 'Read the files as they are now, and write a unified diff against them, with paths from the project on.',
  });
}

function outside(name: string): Error {
  return securityError(`${printablePath(name)} is outside of the project.`, { next: 'Name files of the project.' });
}

const maxTextLength = 1_000_000;

/** Hands that change files. What was there before is kept. */
export function writeTools(parts: LocalToolServices): AgentTool[] {
  const judged = createJudged(parts);
  return [
    defineLocalTool({
      name: 'write_file',
      description: 'Writes a whole text file; one that is there is replaced, and kept in a backup.',
      effect: 'write',
      fields: { path: z.string().min(1), content: z.string().max(maxTextLength) },
      show: ({ path, content }) => `${path}\n${content}`,
      async verify({ path }, { signal, callId }) {
        await judged.look(callId, await targetNamed(parts, pathIn(parts, path)), signal);
        return undefined;
      },
      async run({ path, content }, { signal, callId }) {
        const target = await targetNamed(parts, pathIn(parts, path));
        const text = await clear(parts, content, [target], signal);
        return write(parts, [{ path: target, text, ...judged.before(callId, target) }], callId, signal);
      },
    }),
    defineLocalTool({
      name: 'apply_patch',
      description:
        'Applies a unified diff (--- a/src/x.ts, +++ b/src/x.ts, @@) with paths from the project on, wholly or not at all.',
      effect: 'write',
      fields: { patch: z.string().min(1).max(maxTextLength) },
      show: ({ patch }) => patch,
      async verify({ patch }, { signal }) {
        await changesOf(parts, patch, signal);
        return undefined;
      },
      run: async ({ patch }, { signal, callId }) => write(parts, await changesOf(parts, patch, signal), callId, signal),
    }),
  ];
}

const maxJudged = 50;

/** What stood at a place when a call was judged: what somebody did there until it was approved is not overwritten. */
function createJudged({ sandbox, maxFileBytes: maxBytes }: LocalToolServices) {
  const known = new Map<string, { path: string; before: Buffer | null }>();
  return {
    async look(callId: string, path: string, signal: AbortSignal): Promise<void> {
      known.delete(callId);
      const opened = await sandbox.open(path);
      const before = isSkip(opened) ? null : await readBytes(opened, path, { maxBytes, signal });
      if (before !== null && !Buffer.isBuffer(before)) return;
      known.set(callId, { path, before });
      const [oldest] = known.keys();
      if (known.size > maxJudged && oldest !== undefined) known.delete(oldest);
    },
    before(callId: string, path: string): Pick<FileChange, 'before'> {
      const found = known.get(callId);
      known.delete(callId);
      return found?.path === path ? { before: found.before } : {};
    },
  };
}

async function changesOf(parts: LocalToolServices, patch: string, signal: AbortSignal): Promise<FileChange[]> {
  const named = [...patch.matchAll(/^--- (?:a\/)?([^\t\n]+)/gm)].flatMap(([, name]) =>
    name === undefined ? [] : [name],
  );
  const paths = named.filter(name => name !== '/dev/null').map(name => pathIn(parts, name));
  return gitApply(parts, await clear(parts, patch, paths, signal), signal);
}

/** The model saw placeholders where secrets are; what it writes has the secrets again, or is refused. */
async function clear(
  parts: LocalToolServices,
  text: string,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  const { sandbox, mask, maxFileBytes: maxBytes, scope, earlierScopes = [] } = parts;
  const scopes = [scope, ...earlierScopes];
  const wanted = placeholdersIn(text);
  if (wanted.size === 0) return text;
  const originals = await findSecrets({ wanted, paths, scopes, sandbox, mask, maxBytes, signal });
  return restoreSecretsInPatch(text, originals).text;
}

async function write(
  parts: LocalToolServices,
  changes: readonly FileChange[],
  callId: string,
  signal: AbortSignal,
): Promise<string> {
  const { sandbox, root, reqId, tool, emit } = parts;
  const unique = `${reqId}-${callId.replace(/[^\w-]/g, '_')}`;
  const backups = join(parts.backups, unique);
  try {
    const places = await writeChanges({ sandbox, backups, unique, signal }, changes);
    for (const { path } of places) emit({ type: 'files.written', reqId, tool, path });
    return places.map(place => lineOf(root, place)).join('\n');
  } catch (error) {
    const code = isAppError(error) ? error.details.code : 'INTERNAL_SERVER_ERROR';
    for (const { path } of changes) emit({ type: 'files.written', reqId, tool, path, code });
    throw error;
  }
}

function lineOf(root: string, { path, did, backup }: ChangedPlace): string {
  const name = printablePath(relative(root, path));
  return `${did} ${name}${backup === undefined ? '' : `; before: ${backup}`}`;
}
