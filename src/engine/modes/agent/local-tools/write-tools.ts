import { lstat, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { z } from 'zod';
import { inputError, isAppError, securityError } from '../../../../core/errors.ts';
import { printablePath, safeCut } from '../../../../core/text.ts';
import { isSkip } from '../../../../workspace/paths.ts';
import { programNamed } from '../../../../workspace/programs.ts';
import { reasonToProtect } from '../../../../workspace/protected-files.ts';
import { readBytes } from '../../../../workspace/read-file.ts';
import {
  type MaskedFile,
  maskFile,
  placeholdersIn,
  type WrittenSecret,
} from '../../../../workspace/restore-secrets.ts';
import { type ChangedPlace, type FileChange, writeChanges } from '../../../../workspace/write-changes.ts';
import type { AgentTool, CallNote } from './agent-tool.ts';
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

/** What a call would write, and what whoever approves it has to know of that. */
interface Prepared {
  changes: FileChange[];
  /** Real paths of protected files among them, each with its reason. */
  guarded: Map<string, string>;
  /** Secrets that are put back, by the file's name. */
  secrets: { name: string; secret: WrittenSecret }[];
}

/**
 * What a unified diff makes of the project's files, as git itself applies it to copies of them, which are masked as the model
 * saw them. Nothing of the project is changed. Throws where it does not apply cleanly, or touches what may not be written.
 *
 * `src/workspace/git/check-patch.ts` is another thing: it mends what a model wrote, since nobody is there to write it again, needs a
 * repository, and deletes nothing. Here the model hears what git says and tries again, and a project needs no repository.
 */
async function preparePatch(parts: LocalToolServices, patch: string, signal: AbortSignal): Promise<Prepared> {
  let text = patch.endsWith('\n') ? patch : `${patch}\n`;
  for (const [pattern, why] of unwanted) if (pattern.test(text)) throw unfit(why);
  const folder = await mkdtemp(join(tmpdir(), 'polylogue-patch-'));
  const git = (args: readonly string[]) => runGitApply(parts, folder, args, text, signal);
  try {
    const names = await pathsIn(git);
    // Without a placeholder it may also be made from what the model itself wrote, or saw in another place.
    const seesMasked = placeholdersIn(text).size > 0;
    const copies: Copy[] = [];
    for (const name of names) copies.push(await copyOf(parts, folder, name, { seesMasked, signal }));
    for (const { masked } of copies) text = masked.canonical(text);
    const checked = await git(['--check']);
    if (checked.exitCode !== 0) throw unfit(`git apply --check says: ${safeCut(checked.output.trim(), 1_500)}`);
    const applied = await git([]);
    if (applied.exitCode !== 0) throw unfit(`git apply says: ${safeCut(applied.output.trim(), 1_500)}`);
    const made = [];
    for (const copy of copies) made.push(await changeOf(copy));
    return await prepared(parts, made, ({ kept }) => !kept);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function prepareFile(
  parts: LocalToolServices,
  { path: named, content }: { path: string; content: string },
  signal: AbortSignal,
): Promise<Prepared> {
  const path = await targetNamed(parts, pathIn(parts, named));
  const opened = await parts.sandbox.open(path);
  const before = isSkip(opened) ? null : await readBytes(opened, path, { maxBytes: parts.maxFileBytes, signal });
  const isKnown = before === null || Buffer.isBuffer(before);
  const masked = await maskedAs(parts, path, isKnown ? plainOf(before).plain : '');
  const { text, secrets } = await masked.restore(masked.canonical(content));
  const change = { path, text, ...(isKnown && { before }) };
  return prepared(parts, [{ change, secrets }], () => true);
}

async function prepared(
  { sandbox, root }: LocalToolServices,
  made: readonly { change: FileChange; secrets: readonly WrittenSecret[] }[],
  isTold: (secret: WrittenSecret) => boolean,
): Promise<Prepared> {
  const guarded = new Map<string, string>();
  for (const { path, before, text: after } of made.map(({ change }) => change)) {
    const reason = await reasonToProtect(sandbox, path, { before: before?.toString('utf8'), after });
    if (reason !== undefined) guarded.set(path, `${printablePath(relative(root, path))} (${reason})`);
  }
  const secrets = made.flatMap(({ change, secrets: own }) =>
    own.filter(isTold).map(secret => ({ name: printablePath(relative(root, change.path)), secret })),
  );
  return { changes: made.map(({ change }) => change), guarded, secrets };
}

function noteOf({ guarded, secrets }: Prepared): CallNote {
  const always =
    guarded.size === 0
      ? undefined
      : `It changes what makes other programs run or obey something without being started for it: ${[...guarded.values()].join(', ')}. That needs an approval of its own, also under AGENT_APPROVE=all.`;
  const places = secrets.map(({ name, secret: { kind, line } }) => `${name}:${line} (${kind})`);
  const told = `Secrets are written back where they stood, in ${safeCut(places.join(', '), 1_000)}.`;
  return {
    lines: [...(always === undefined ? [] : [always]), ...(places.length > 0 ? [told] : [])],
    ...(always && { always }),
  };
}

/** A file as the model of the run saw it. */
function maskedAs(
  { mask, scope, earlierScopes = [] }: LocalToolServices,
  path: string,
  text: string,
): Promise<MaskedFile> {
  return maskFile({ mask, scopes: [scope, ...earlierScopes] }, path, text);
}

/** Line ends and byte-order marks are not shown to models, so that what they write has none either. */
function plainOf(before: Buffer | null): { plain: string; crlf: boolean; marked: boolean } {
  const whole = before?.toString('utf8') ?? '';
  const marked = whole.startsWith(mark);
  const ends = whole.split('\n').length - 1;
  const crlf = ends > 0 && whole.split('\r\n').length - 1 === ends;
  const text = marked ? whole.slice(1) : whole;
  return { plain: crlf ? text.replaceAll('\r\n', '\n') : text, crlf, marked };
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
  masked: MaskedFile;
  /** How the original ends its lines and begins. */
  crlf: boolean;
  marked: boolean;
}

async function copyOf(
  parts: LocalToolServices,
  folder: string,
  name: string,
  { seesMasked, signal }: { seesMasked: boolean; signal: AbortSignal },
): Promise<Copy> {
  const copied = resolve(folder, name);
  if (!copied.startsWith(folder + sep)) throw outside(name);
  const path = await targetNamed(parts, resolve(parts.root, name));
  const opened = await parts.sandbox.open(path);
  if (isSkip(opened) && opened.code !== 'not_found') throw refused(opened);
  const before = isSkip(opened) ? null : await readBytes(opened, path, { maxBytes: parts.maxFileBytes, signal });
  if (before !== null && !Buffer.isBuffer(before)) throw refused(before);
  const { plain, ...form } = plainOf(before);
  if (before && !Buffer.from(before.toString('utf8')).equals(before)) {
    throw unfit(`${printablePath(name)} is no text in UTF-8`);
  }
  const masked = await maskedAs(parts, path, plain);
  if (before) {
    await mkdir(dirname(copied), { recursive: true });
    await writeFile(copied, seesMasked ? masked.text : plain);
  }
  return { path, copied, before, masked, ...form };
}

async function changeOf({ path, copied, before, masked, crlf, marked }: Copy) {
  // Not there any more: the patch deletes it.
  const stats = await lstat(copied).catch(() => undefined);
  if (!stats) return { change: { path, before, text: undefined }, secrets: [] };
  // A link could lead anywhere.
  if (!stats.isFile()) throw unfit('only plain files are taken, no links or modules');
  const { text, secrets } = await masked.restore(await readFile(copied, 'utf8'));
  const ended = crlf ? text.replaceAll('\n', '\r\n') : text;
  return { change: { path, before, text: marked ? mark + ended : ended }, secrets };
}

async function runGitApply(
  { clock, childEnv, sandbox }: LocalToolServices,
  folder: string,
  args: readonly string[],
  input: string,
  signal: AbortSignal,
): Promise<ProcessOutput> {
  const { file, path } = await programNamed('git', { env: childEnv, projects: sandbox.roots });
  const env = {
    PATH: path,
    HOME: folder,
    // No repository, and nobody's settings.
    GIT_CEILING_DIRECTORIES: dirname(folder),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    LC_ALL: 'C',
  };
  const argv = [file, 'apply', '--whitespace=nowarn', ...args, '-'] as const;
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
  const judged = createJudged();
  return [
    defineLocalTool({
      name: 'write_file',
      description: 'Writes a whole text file; one that is there is replaced, and kept in a backup.',
      effect: 'write',
      fields: { path: z.string().min(1), content: z.string().max(maxTextLength) },
      show: ({ path, content }) => `${path}\n${content}`,
      verify: async (args, { signal, callId }) => judged.keep(callId, await prepareFile(parts, args, signal)),
      run: async (args, { signal, callId }) => {
        const known = judged.take(callId);
        return write(parts, known ?? (await prepareFile(parts, args, signal)), known, callId, signal);
      },
    }),
    defineLocalTool({
      name: 'apply_patch',
      description:
        'Applies a unified diff (--- a/src/x.ts, +++ b/src/x.ts, @@) with paths from the project on, wholly or not at all.',
      effect: 'write',
      fields: { patch: z.string().min(1).max(maxTextLength) },
      show: ({ patch }) => patch,
      verify: async ({ patch }, { signal, callId }) => judged.keep(callId, await preparePatch(parts, patch, signal)),
      run: async ({ patch }, { signal, callId }) =>
        write(parts, await preparePatch(parts, patch, signal), judged.take(callId), callId, signal),
    }),
  ];
}

const maxJudged = 50;

/** What calls would do that were judged: what somebody did there until one was approved is not overwritten. */
function createJudged() {
  const known = new Map<string, Prepared>();
  return {
    keep(callId: string, call: Prepared): CallNote {
      known.delete(callId);
      known.set(callId, call);
      const [oldest] = known.keys();
      if (known.size > maxJudged && oldest !== undefined) known.delete(oldest);
      return noteOf(call);
    },
    take(callId: string): Prepared | undefined {
      const found = known.get(callId);
      known.delete(callId);
      return found;
    },
  };
}

async function write(
  parts: LocalToolServices,
  { changes }: Prepared,
  judged: Prepared | undefined,
  callId: string,
  signal: AbortSignal,
): Promise<string> {
  const { sandbox, root, reqId, tool, emit } = parts;
  const unique = `${reqId}-${callId.replace(/[^\w-]/g, '_')}`;
  const backups = join(parts.backups, unique);
  const approved = new Set(judged?.guarded.keys());
  try {
    const places = await writeChanges({ sandbox, backups, unique, signal, approved }, changes);
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
