import { appendFile, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isRecord } from '../../domain/json.ts';
import type { Observation, Sink } from '../sink.ts';

export interface BreadcrumbsParts {
  /** The directory of the logs; made at the first event. */
  folder: string;
  /** A file that reached this size is put aside before the next event. */
  maxBytes?: number;
  /** How many files that were put aside are kept; `breadcrumbs.jsonl.1` is the youngest. */
  keep?: number;
}

/** One JSON object a line: `ts`, `type` and the event's own fields. Several processes may write to one file. */
export function createBreadcrumbs({ folder, maxBytes = 20 * 1024 * 1024, keep = 5 }: BreadcrumbsParts): Sink {
  const file = join(folder, 'breadcrumbs.jsonl');
  return {
    name: 'breadcrumbs',
    async write(observations) {
      if ((await statOf(file)).size >= maxBytes) await rotate(file, maxBytes, keep);
      await append(file, observations.map(line).join(''));
    },
  };
}

/** Opens the file anew for each batch: another process may have put it aside in between. */
async function append(file: string, text: string): Promise<void> {
  try {
    await appendFile(file, text, { mode: 0o600 });
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await appendFile(file, text, { mode: 0o600 });
  }
}

function line({ at, event }: Observation): string {
  return `${JSON.stringify({ ts: new Date(at).toISOString(), ...Object.fromEntries(snakeCased(event)) })}\n`;
}

/** Fields as every log of the product names them: `reqId` → `req_id`. */
function snakeCased(record: object): [name: string, value: unknown][] {
  return Object.entries(record).map(([name, value]: [string, unknown]) => [
    name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`),
    isRecord(value) ? Object.fromEntries(snakeCased(value)) : value,
  ]);
}

interface Standing {
  size: number;
  mtimeMs: number;
}

async function statOf(path: string): Promise<Standing> {
  try {
    return await stat(path);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return { size: 0, mtimeMs: 0 };
    throw error;
  }
}

/** One process rotates at a time; whoever finds another one at it goes on with the file as it is. */
async function rotate(file: string, maxBytes: number, keep: number): Promise<void> {
  const lock = `${file}.lock`;
  if (!(await take(lock, file))) return;
  try {
    // The other process may just have finished.
    if ((await statOf(file)).size < maxBytes) return;
    for (let index = keep - 1; index >= 1; index--) await renameIfPresent(`${file}.${index}`, `${file}.${index + 1}`);
    if (keep > 0) await renameIfPresent(file, `${file}.1`);
    else await rm(file, { force: true });
  } finally {
    await rm(lock, { force: true });
  }
}

const staleLockMs = 60_000;

async function take(lock: string, file: string): Promise<boolean> {
  try {
    await (await open(lock, 'wx', 0o600)).close();
    return true;
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
    // The events that came in since tell how long the lock has been there: its holder died.
    if ((await statOf(file)).mtimeMs - (await statOf(lock)).mtimeMs > staleLockMs) await rm(lock, { force: true });
    return false;
  }
}

async function renameIfPresent(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
  }
}

function isCode(error: unknown, code: string): boolean {
  return isRecord(error) && error.code === code;
}
