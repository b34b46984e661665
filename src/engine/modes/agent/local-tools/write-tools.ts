import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { join, relative } from 'node:path';
import { z } from 'zod';
import { remember } from '../../../../core/concurrency.ts';
import { inputError, isAppError } from '../../../../core/errors.ts';
import { decodeText, printablePath, safeCut } from '../../../../core/text.ts';
import { unifiedDiff } from '../../../../workspace/diff.ts';
import { formOf, parsePatch, patchedFile, UnfitPatch } from '../../../../workspace/git/patch.ts';
import { isSkip } from '../../../../workspace/paths.ts';
import { reasonToProtect } from '../../../../workspace/protected-files.ts';
import { readBytes } from '../../../../workspace/read-file.ts';
import { type MaskContext, maskFile, type WrittenSecret } from '../../../../workspace/restore-secrets.ts';
import { type ChangedPlace, type FileChange, writeChanges } from '../../../../workspace/write-changes.ts';
import { type AgentTool, type Approval, everyCall } from './agent-tool.ts';
import { defineLocalTool, type LocalToolServices, pathIn, refused, targetNamed } from './local-tool.ts';

/** What a call would write, and what whoever approves it has to know of that; `diff`: of a file that is there, its secrets masked. */
type Prepared = Awaited<ReturnType<typeof prepared>> & { diff?: string | undefined };

/**
 * What a unified diff makes of the project's files, which are masked as the model saw them. A project needs no repository for it.
 * Throws where it does not apply to all of them, or touches what may not be written.
 */
async function preparePatch(parts: LocalToolServices, { patch }: { patch: string }, signal: AbortSignal) {
  try {
    return await prepared(parts, await madeBy(parts, patch, signal));
  } catch (error) {
    if (!(error instanceof UnfitPatch)) throw error;
    throw inputError(`The patch cannot be applied: ${error.message}.`, {
      next: 'Read the files as they are now, and write a unified diff against them, with paths from the project on.',
    });
  }
}

async function madeBy(parts: LocalToolServices, patch: string, signal: AbortSignal): Promise<Made[]> {
  const made: Made[] = [];
  for (const file of parsePatch(patch, { deletes: true })) {
    const { oldPath, newPath, isDeleted } = file;
    const path = await targetNamed(parts, pathIn(parts, newPath));
    const name = printablePath(newPath);
    const before = await bytesOf(parts, path, signal);
    const text = before?.toString('utf8');
    if (before && !Buffer.from(text ?? '').equals(before)) throw new UnfitPatch(`${name} is no text in UTF-8`);
    if (oldPath === undefined && before) throw new UnfitPatch(`${name} is there already`);
    if (oldPath !== undefined && !before) throw new UnfitPatch(`${name} is not there`);
    if (made.some(({ change }) => change.path === path))
      throw new UnfitPatch(`it changes ${name} in two places of the patch`);
    const { after, secrets } = await patchedFile(maskedAs(parts), path, file, text);
    if (isDeleted && after !== '') throw new UnfitPatch(`${name} has more than the lines that it deletes`);
    made.push({ change: { path, before, text: isDeleted ? undefined : after }, secrets });
  }
  return made;
}

async function prepareFile(parts: LocalToolServices, file: { path: string; content: string }, signal: AbortSignal) {
  const { path: named, content } = file;
  const path = await targetNamed(parts, pathIn(parts, named));
  const before = await bytesOf(parts, path, signal);
  // The model saw it as text, and would change all of it.
  if (before && !isUtf8(before) && decodeText(before) !== undefined)
    throw inputError(`${printablePath(named)} is a text in another encoding than UTF-8, which would be lost.`, {
      next: 'Leave it as it is, and say in your answer what the user should change in it.',
    });
  const { plain, written } = formOf(before?.toString('utf8'));
  const masked = await maskFile(maskedAs(parts), path, plain);
  const { text: restored, secrets } = await masked.restore(masked.canonical(content));
  const text = written(restored);
  const diff = before ? unifiedDiff(named, masked.text, masked.canonical(content)) : undefined;
  return { ...(await prepared(parts, [{ change: { path, text, before }, secrets }])), diff: diff || undefined };
}

/** What is in a file; null: there is none. */
async function bytesOf({ sandbox, maxFileBytes: maxBytes }: LocalToolServices, path: string, signal: AbortSignal) {
  const opened = await sandbox.open(path);
  if (isSkip(opened) && opened.code === 'not_found') return null;
  const bytes = isSkip(opened) ? opened : await readBytes(opened, path, { maxBytes, signal });
  if (!Buffer.isBuffer(bytes)) throw refused(bytes);
  return bytes;
}

const maskedAs = ({ mask, scope, earlierScopes = [] }: LocalToolServices): MaskContext => ({
  mask,
  scopes: [scope, ...earlierScopes],
});

interface Made {
  change: FileChange;
  secrets: readonly WrittenSecret[];
}

async function prepared({ sandbox, root }: LocalToolServices, made: readonly Made[]) {
  /** Real paths of protected files among them, each with its reason. */
  const guarded = new Map<string, string>();
  /** Where secrets are put back, in words. */
  const places: string[] = [];
  for (const { change, secrets } of made) {
    const { path, before, text: after } = change;
    const name = printablePath(relative(root, path));
    const reason = await reasonToProtect(sandbox, path, { before: before?.toString('utf8'), after });
    if (reason !== undefined) guarded.set(path, `${name} (${reason})`);
    places.push(...secrets.map(({ kind, line }) => `${name}:${line} (${kind})`));
  }
  return { changes: made.map(({ change }) => change), guarded, places };
}

function approvalOf(tool: string, { changes, guarded, places, diff: shown }: Prepared): Approval {
  const hash = createHash('sha256');
  for (const { path, before, text } of changes) hash.update(JSON.stringify([path, before?.toString('base64'), text]));
  const basis = hash.digest('hex');
  const told = `Secrets are written back where they stood, in ${safeCut(places.join(', '), 1_000)}.`;
  const notes = places.length > 0 ? [told] : [];
  if (guarded.size === 0) return { ...everyCall(tool), basis, notes, shown };
  const asked = `It changes what makes other programs run or obey something without being started for it: ${[...guarded.values()].join(', ')}. That needs a separate approval, also under AGENT_APPROVE=all.`;
  const instead = 'Leave these files as they are, and say in your answer what the user should change in them.';
  return { asked, instead, basis, shown, notes: [asked, ...notes] };
}

const maxTextLength = 1_000_000;

/** Hands that change files. What was there before is kept. */
export function writeTools(parts: LocalToolServices): AgentTool[] {
  // What calls would do that were judged: what somebody did there until one was approved is not overwritten.
  const judged = new Map<string, Prepared>();
  // Models give calls of two answers the same id, or one that is longer than a name may be.
  let count = 0;
  const writing = <Fields extends z.ZodRawShape>(
    name: string,
    prepare: (parts: LocalToolServices, args: z.output<z.ZodObject<Fields>>, signal: AbortSignal) => Promise<Prepared>,
    spec: { description: string; fields: Fields; show(args: z.output<z.ZodObject<Fields>>): string },
  ) =>
    defineLocalTool({
      ...{ name, ...spec, effect: 'write' },
      async approval(args, { signal, callId }) {
        const call = await prepare(parts, args, signal);
        remember(judged, callId, call, maxJudged);
        return approvalOf(name, call);
      },
      async run(args, { signal, callId }) {
        const known = judged.get(callId);
        judged.delete(callId);
        const call = known ?? { ...(await prepare(parts, args, signal)), guarded: new Map() };
        return write(parts, call, `${parts.reqId}-w${++count}`, signal);
      },
    });
  return [
    writing('write_file', prepareFile, {
      description: 'Writes a whole text file; one that is there is replaced, and kept in a backup.',
      fields: { path: z.string().min(1), content: z.string().max(maxTextLength) },
      show: ({ path, content }) => `${path}\n${content}`,
    }),
    writing('apply_patch', preparePatch, {
      description:
        'Applies a unified diff (--- a/src/x.ts, +++ b/src/x.ts, @@) with paths from the project on, wholly or not at all.',
      fields: { patch: z.string().min(1).max(maxTextLength) },
      show: ({ patch }) => patch,
    }),
  ];
}

const maxJudged = 50;

async function write(parts: LocalToolServices, { changes, guarded }: Prepared, unique: string, signal: AbortSignal) {
  const { sandbox, root, reqId, tool, emit } = parts;
  const backups = join(parts.backups, unique);
  const approved = new Set(guarded.keys());
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
