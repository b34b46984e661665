import { join, relative } from 'node:path';
import { z } from 'zod';
import { isAppError } from '../../../../core/errors.ts';
import { printablePath } from '../../../../core/text.ts';
import { findOriginals, placeholdersIn } from '../../../../files/put-back/originals.ts';
import { putBackPatch } from '../../../../files/put-back/put-back-patch.ts';
import { isSkip } from '../../../../files/skip.ts';
import { readBytes } from '../../../../workspace/read-file.ts';
import { type ChangedPlace, type FileChange, writeChanges } from '../../../../workspace/write-changes.ts';
import { gitApply } from '../../../agent/hands/git-apply.ts';
import { type HandParts, pathIn, targetNamed } from '../../../agent/hands/hand-parts.ts';
import type { AgentTool } from '../agent.ts';
import { hand } from './local-tool.ts';

const longestText = 1_000_000;

/** Hands that change files. What was there before is kept. */
export function writingHands(parts: HandParts): AgentTool[] {
  const judged = createJudged(parts);
  return [
    hand({
      name: 'write_file',
      description: 'Writes a whole text file; one that is there is replaced, and kept in a backup.',
      effect: 'write',
      fields: { path: z.string().min(1), content: z.string().max(longestText) },
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
    hand({
      name: 'apply_patch',
      description:
        'Applies a unified diff (--- a/src/x.ts, +++ b/src/x.ts, @@) with paths from the project on, wholly or not at all.',
      effect: 'write',
      fields: { patch: z.string().min(1).max(longestText) },
      show: ({ patch }) => patch,
      async verify({ patch }, { signal }) {
        await changesOf(parts, patch, signal);
        return undefined;
      },
      run: async ({ patch }, { signal, callId }) => write(parts, await changesOf(parts, patch, signal), callId, signal),
    }),
  ];
}

const mostJudged = 50;

/** What stood at a place when a call was judged: what somebody did there until it was approved is not overwritten. */
function createJudged({ sandbox, maxFileBytes: maxBytes }: HandParts) {
  const known = new Map<string, { path: string; before: Buffer | null }>();
  return {
    async look(callId: string, path: string, signal: AbortSignal): Promise<void> {
      known.delete(callId);
      const opened = await sandbox.open(path);
      const before = isSkip(opened) ? null : await readBytes(opened, path, { maxBytes, signal });
      if (before !== null && !Buffer.isBuffer(before)) return;
      known.set(callId, { path, before });
      const [oldest] = known.keys();
      if (known.size > mostJudged && oldest !== undefined) known.delete(oldest);
    },
    before(callId: string, path: string): Pick<FileChange, 'before'> {
      const found = known.get(callId);
      known.delete(callId);
      return found?.path === path ? { before: found.before } : {};
    },
  };
}

async function changesOf(parts: HandParts, patch: string, signal: AbortSignal): Promise<FileChange[]> {
  const named = [...patch.matchAll(/^--- (?:a\/)?([^\t\n]+)/gm)].flatMap(([, name]) =>
    name === undefined ? [] : [name],
  );
  const paths = named.filter(name => name !== '/dev/null').map(name => pathIn(parts, name));
  return gitApply(parts, await clear(parts, patch, paths, signal), signal);
}

/** The model saw placeholders where secrets are; what it writes has the secrets again, or is refused. */
async function clear(parts: HandParts, text: string, paths: readonly string[], signal: AbortSignal): Promise<string> {
  const { sandbox, mask, maxFileBytes: maxBytes, scope, earlierScopes = [] } = parts;
  const scopes = [scope, ...earlierScopes];
  const wanted = placeholdersIn(text);
  if (wanted.size === 0) return text;
  const originals = await findOriginals({ wanted, paths, scopes, sandbox, mask, maxBytes, signal });
  return putBackPatch(text, originals).text;
}

async function write(
  parts: HandParts,
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
