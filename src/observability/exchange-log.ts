import { createHash } from 'node:crypto';
import { mkdir, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { withTimeout } from '../core/concurrency.ts';
import { errorCode } from '../core/errors.ts';
import { recordIn } from '../core/json.ts';
import type { Clock, ExchangeNote } from '../core/ports.ts';
import { createWriteQueue } from './event-bus.ts';
import { createRotatingLog, fileStateOf, firstRecordTime, type LogRecord } from './file-logs.ts';
import type { SecretMask } from './secret-masking.ts';

/** Stands in a record where a long text or bytes stood. */
export interface PartReference {
  /** Name of the side file. */
  $part: string;
  bytes: number;
}

/** Below the limit by so much at once, so that not each new file is a reason to look at all of them. */
const roomMade = 0.9;

/** Files named after their content, in `folder`: together at most `maxBytes`, those that were needed last. */
export function createPartFiles(folder: string, maxBytes: number) {
  /** Of all of them, as far as this process knows. */
  let total: number | undefined;

  const shrink = async (): Promise<void> => {
    const found = await listed(folder);
    total = found.reduce((sum, { bytes }) => sum + bytes, 0);
    if (total <= maxBytes) return;
    for (const { name, bytes } of found.sort((a, b) => a.at - b.at)) {
      if (total <= maxBytes * roomMade) return;
      await rm(join(folder, name), { force: true });
      total -= bytes;
    }
  };

  return {
    /** Writes it once, however often it comes. `at`: the time of the record that refers to it, in epoch milliseconds. */
    async keep(part: string | Uint8Array, at: number): Promise<PartReference> {
      const bytes = Buffer.byteLength(part);
      const hash = createHash('sha256').update(part).digest('hex').slice(0, 40);
      const $part = `${hash}.${typeof part === 'string' ? 'txt' : 'bin'}`;
      // One that will not stay is not written.
      if (bytes > maxBytes * roomMade) return { $part, bytes };
      const isNew = await writeOnce(folder, $part, part);
      await touch(join(folder, $part), at);
      if (isNew) {
        total = total === undefined ? undefined : total + bytes;
        if (total === undefined || total > maxBytes) await shrink();
      }
      return { $part, bytes };
    },
    /** Whether it is still there; if so, it is kept as if it had been written at `at`. */
    isKept: ({ $part }: PartReference, at: number) => touch(join(folder, $part), at),
    /** Removes what no record since `at` refers to. */
    async dropBefore(at: number): Promise<void> {
      for (const found of await listed(folder)) {
        // File systems round times.
        if (found.at < at - 1) await rm(join(folder, found.name), { force: true });
      }
      total = undefined;
    },
  };
}

/** The time of the last record that needs a file says when it may go. Answers whether the file is there. */
async function touch(path: string, at: number): Promise<boolean> {
  try {
    await utimes(path, at / 1_000, at / 1_000);
    return true;
  } catch (error) {
    // Another process may have removed it.
    if (errorCode(error) === 'ENOENT') return false;
    throw error;
  }
}

async function writeOnce(folder: string, name: string, part: string | Uint8Array): Promise<boolean> {
  const path = join(folder, name);
  const put = () => writeFile(path, part, { flag: 'wx', mode: 0o600 });
  try {
    await put().catch(async error => {
      if (errorCode(error) !== 'ENOENT') throw error;
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await put();
    });
    return true;
  } catch (error) {
    // Half a file under the name of the whole would be taken for it.
    if (errorCode(error) !== 'EEXIST') {
      await rm(path, { force: true });
      throw error;
    }
    // So would one whose writer died over it.
    if (fileStateOf(path)?.size !== Buffer.byteLength(part)) await writeFile(path, part, { mode: 0o600 });
    return false;
  }
}

const isPartName = (name: string): boolean => /^[0-9a-f]{40}\.(?:txt|bin)$/.test(name);

/** `at`: epoch milliseconds. */
async function listed(folder: string): Promise<{ name: string; bytes: number; at: number }[]> {
  const found: Awaited<ReturnType<typeof listed>> = [];
  try {
    for (const name of await readdir(folder)) {
      if (!isPartName(name)) continue;
      const state = fileStateOf(join(folder, name));
      // Without one, another process just removed it.
      if (state) found.push({ name, bytes: state.size, at: state.mtimeMs });
    }
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
  return found;
}

/** The path of a side file; undefined for what is no name of one, whoever wrote it there. */
export const partPath = (folder: string, name: unknown): string | undefined =>
  typeof name === 'string' && isPartName(name) ? join(folder, name) : undefined;

export interface ExchangeLogParts {
  /** The directory of the logs. */
  folder: string;
  /** Bytes on disk, side files included. */
  maxBytes: number;
  clock: Clock;
  secrets: Pick<SecretMask, 'mask' | 'maskDeep' | 'maskLifting'>;
  /** Hears of a write that began to fail, once until one works again, and of notes that were left out. */
  onError(name: string, error: unknown): void;
}

/** Longer texts are searched for secrets one by one, with pauses. */
const maxBatchLength = 256;

/** Longer texts go into files of their own: a conversation comes again with every turn, and they are kept once. */
const maxInlineLength = 1_024;

/** Characters and bytes that wait to be written; what is beyond is left out. */
const maxWaiting = 64 * 1024 * 1024;

/** Texts whose side file is known, so that a long conversation is not searched for secrets with each turn anew. */
const maxKnown = 2_000;

const usualFileBytes = 20 * 1024 * 1024;

/** Where the log and its side files stand below the folder of logs. */
export const exchangeLogPaths = (folder: string) => ({
  log: join(folder, 'comms.jsonl'),
  parts: join(folder, 'comms'),
});

/** How the bytes are shared out: half to the log, half to the side files. */
function exchangeLogShares(maxBytes: number): { fileBytes: number; keep: number; partBytes: number } {
  const fileBytes = Math.max(1, Math.min(usualFileBytes, Math.floor(maxBytes / 10)));
  return { fileBytes, keep: Math.max(1, Math.floor(maxBytes / 2 / fileBytes) - 1), partBytes: maxBytes / 2 };
}

type Timed = ExchangeNote & { at: number };

/** `comms.jsonl`: what was said to models, tools and programs and what they said, with long texts and bytes in side files. */
export function createExchangeLog({ folder, maxBytes, clock, secrets, onError }: ExchangeLogParts) {
  const shares = exchangeLogShares(maxBytes);
  const parts = createPartFiles(exchangeLogPaths(folder).parts, shares.partBytes);
  const known = new Map<string, string | PartReference>();
  const rules = { folder, maxBytes: shares.fileBytes, keep: shares.keep };
  const log = createRotatingLog('comms', rules, async () => {
    const oldest = log.files().map(firstRecordTime);
    const at = oldest.filter(each => each !== undefined).at(-1);
    if (at !== undefined) await parts.dropBefore(at);
  });

  /** What stands for a text: itself without its secrets, or its side file. */
  const textPart = async (text: string, at: number): Promise<string | PartReference> => {
    const hash = createHash('sha256').update(text).digest('base64');
    const before = known.get(hash);
    if (typeof before === 'string' || (before && (await parts.isKept(before, at)))) return before;
    // Everything else has its turn between two texts.
    await new Promise(resolve => setImmediate(resolve));
    const masked = (await secrets.mask(text, 'log')).text;
    const shown = masked.length <= maxInlineLength ? masked : await parts.keep(masked, at);
    if (known.size >= maxKnown) known.clear();
    known.set(hash, shown);
    return shown;
  };

  const recordOf = async ({ at, payload, ...note }: Timed): Promise<LogRecord> => {
    const lifted: { part: string | Uint8Array; place: Place }[] = [];
    const masked = secrets.maskLifting(payload, maxBatchLength, part => {
      const place = new Place();
      lifted.push({ part, place });
      return place;
    });
    for (const { part, place } of lifted) {
      place.shown = await (typeof part === 'string' ? textPart(part, at) : parts.keep(part, at));
    }
    const fields = secrets.maskDeep({ ...note });
    return { at, fields: recordIn(fields), asIs: { payload: masked } };
  };

  const queue = createWriteQueue<Timed>({
    name: 'comms log',
    maxWaiting,
    sizeOf: ({ payload }) => sizeOf(payload, 0),
    onError,
    async write(batch) {
      for (const note of batch) await log.append([await recordOf(note)]);
    },
  });
  return {
    log: (note: ExchangeNote) => queue.push({ ...note, at: clock.now() }),
    /** Resolves when everything told so far was written, or given up; at the latest after `timeoutMs`. Never rejects. */
    flush: (timeoutMs = 2_000) => withTimeout(clock, timeoutMs, queue.idle()),
    /** Does that, and lets go of the file. */
    close: (timeoutMs = 2_000) => withTimeout(clock, timeoutMs, queue.idle().finally(log.close)),
  };
}

/** Stands in a record until it is known what is written there. */
class Place {
  shown: string | PartReference | undefined;

  toJSON() {
    return this.shown;
  }
}

const deepest = 12;

/** About how much memory a note holds, in characters and bytes. */
function sizeOf(value: unknown, depth: number): number {
  if (typeof value === 'string') return value.length;
  if (ArrayBuffer.isView(value)) return value.byteLength;
  if (typeof value !== 'object' || value === null || depth > deepest) return 8;
  return Object.values(value).reduce<number>((sum, each) => sum + sizeOf(each, depth + 1), 8);
}
