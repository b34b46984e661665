import { lstat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { LoggedCall } from '../../calls/durable/call-log.ts';
import { inParallel } from '../../core/concurrency.ts';
import { isAppError } from '../../core/errors.ts';
import type { StoredTurn, Thread } from '../../core/thread.ts';
import type { Principal } from '../../core/tool-host.ts';
import { checkFile } from '../../files/refresh.ts';
import { standingFiles } from '../../memory/seen-files.ts';
import type { Threads } from '../../threads/threads.ts';
import type { Sandbox } from '../../workspace/sandbox.ts';
import { walkDirectory } from '../../workspace/walk.ts';
import type { Identity } from './identify.ts';

export interface StillSoOptions {
  threads: Threads;
  sandbox: Sandbox;
  maxFileBytes: number;
}

/** What came of an earlier call in its thread, where everything is still as it left it. */
export interface Trace {
  /** Absent: it works on no thread, or stored nothing yet. */
  thread?: Thread;
  /** The turns of its exchange: none, its question, or question and answer. */
  turns: readonly StoredTurn[];
}

const walkLimits = { maxDepth: 100, maxEntries: 50_000 };
const atOnce = 16;
/** File systems take the time from a clock that is a little behind. */
const clockLagMs = 15;

/**
 * Undefined when the world went on since the earlier call: the thread has other turns behind it, or a file that it looked at
 * was edited. `folders` are the ones whose content it may have looked at.
 */
export async function stillSo(
  options: StillSoOptions,
  call: LoggedCall,
  { folders, edits }: Pick<Identity, 'folders' | 'edits'>,
  principal: Principal,
): Promise<Trace | undefined> {
  for (const folder of folders) if (await changedBelow(options.sandbox, folder, call.startedAt)) return undefined;
  if (call.thread === undefined) return { turns: [] };
  const thread = await foundThread(options.threads, call.thread, principal);
  // Its first turn is stored before anybody is asked.
  if (!thread) return call.baseSeq === 0 && call.status !== 'done' ? { turns: [] } : undefined;
  const turns = thread.turns.filter(({ seq }) => seq > (call.baseSeq ?? 0));
  if (new Set(turns.map(({ exchange }) => exchange)).size > 1) return undefined;
  for (const file of edits ? [] : standingFiles({ turns: thread.turns }).values()) {
    if ((await checkFile(options.sandbox, file, { maxBytes: options.maxFileBytes })) !== 'unchanged') return undefined;
  }
  return { thread, turns };
}

async function foundThread(threads: Threads, id: string, { owner, root }: Principal): Promise<Thread | undefined> {
  try {
    return await threads.find(id, { owner, workspace: root });
  } catch (error) {
    if (isAppError(error) && error.kind === 'input') return undefined;
    throw error;
  }
}

/** Whether anything below a folder was written, made or removed since; of a repository, also what is staged or checked out. */
async function changedBelow(sandbox: Sandbox, folder: string, since: number): Promise<boolean> {
  const { files, skipped } = await walkDirectory(sandbox, folder, walkLimits);
  if (skipped.some(({ code }) => code === 'too_many_files')) return true;
  const inGit = ['index', 'HEAD', 'logs/HEAD'].map(name => join(folder, '.git', name));
  const places = new Set([folder, ...inGit, ...files, ...files.map(file => dirname(file))]);
  const changed = await inParallel([...places], atOnce, async path => {
    const found = await lstat(path).catch(() => undefined);
    return found !== undefined && Math.max(found.mtimeMs, found.ctimeMs) > since - clockLagMs;
  });
  return changed.includes(true);
}
