import { lstat, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve, sep } from 'node:path';
import { inputError, securityError } from '../../../core/errors.ts';
import { printablePath, safeCut } from '../../../core/text.ts';
import { isSkip } from '../../../files/skip.ts';
import { readBytes } from '../../../workspace/read-file.ts';
import type { FileChange } from '../../../workspace/write-changes.ts';
import { type ProgramOutput, runProgram } from '../../modes/agent/local-tools/run-program.ts';
import type { HandParts } from './hand-parts.ts';
import { refused, targetNamed } from './hand-parts.ts';

const applyMs = 30_000;
const outputBytes = 100_000;
const mostFiles = 200;
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
export async function gitApply(parts: HandParts, patch: string, signal: AbortSignal): Promise<FileChange[]> {
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

async function pathsIn(git: (args: readonly string[]) => Promise<ProgramOutput>): Promise<string[]> {
  const { exitCode, output } = await git(['--numstat', '-z']);
  if (exitCode !== 0) throw unfit(`it is no unified diff: ${safeCut(output.trim(), 500)}`);
  const names = new Set(output.split('\0').flatMap(entry => entry.split('\t').slice(2).join('\t') || []));
  if (names.size === 0) throw unfit('it changes no file');
  if (names.size > mostFiles) throw unfit(`it changes more than ${mostFiles} files`);
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
async function copyOf(parts: HandParts, folder: string, name: string, signal: AbortSignal): Promise<Copy> {
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
  { clock, programEnv }: HandParts,
  folder: string,
  args: readonly string[],
  input: string,
  signal: AbortSignal,
): Promise<ProgramOutput> {
  const env = {
    PATH: programEnv.PATH ?? '',
    HOME: folder,
    // No repository, and nobody's settings.
    GIT_CEILING_DIRECTORIES: dirname(folder),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    LC_ALL: 'C',
  };
  const argv = ['git', 'apply', '--whitespace=nowarn', ...args, '-'] as const;
  return runProgram({ clock, argv, cwd: folder, env, input, timeMs: applyMs, mostBytes: outputBytes, signal });
}

function unfit(why: string): Error {
  return inputError(`The patch can't be applied: ${why}.`, {
    next: 'Read the files as they are now, and write a unified diff against them, with paths from the project on.',
  });
}

function outside(name: string): Error {
  return securityError(`${printablePath(name)} is outside of the project.`, { next: 'Name files of the project.' });
}
