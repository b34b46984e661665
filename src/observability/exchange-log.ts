import { hash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { remember, withTimeout } from '../core/concurrency.ts';
import { errorCode } from '../core/errors.ts';
import { isRecord, numberIn, parsedJson, recordIn, textIn } from '../core/json.ts';
import type { Clock, ExchangeLine, ExchangeNote, ExchangeReader, ExchangeRecord } from '../core/ports.ts';
import { createWriteQueue } from './event-bus.ts';
import { createRotatingLog, fileStateOf, firstRecordTime, type LogRecord, rotatedFiles } from './file-logs.ts';
import type { SecretMask } from './secret-masking.ts';

/** Stands in a record where a long text or bytes stood. */
interface PartReference {
  $part: string;
  bytes: number;
}

/** Below the limit by so much at once, so that not each new file is a reason to look at all of them. */
const roomMade = 0.9;

/** Files named after their content, in `folder`: together at most `maxBytes`, those that were needed last. */
function createPartFiles(folder: string, maxBytes: number) {
  /** Of all of them; infinite while this process does not know. */
  let total = Number.POSITIVE_INFINITY;

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
      const $part = `${hash('sha256', part).slice(0, 40)}.${typeof part === 'string' ? 'txt' : 'bin'}`;
      // One that will not stay is not written.
      if (bytes > maxBytes * roomMade) return { $part, bytes };
      const isNew = await writeOnce(folder, $part, part);
      await touch(join(folder, $part), at);
      if (isNew) total += bytes;
      if (isNew && total > maxBytes) await shrink();
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
      total = Number.POSITIVE_INFINITY;
    },
  };
}

/** Undefined where the file is not there: another process may have removed it. */
const ifPresent = <Result>(work: Promise<Result>): Promise<Result | undefined> =>
  work.catch(error => {
    if (errorCode(error) !== 'ENOENT') throw error;
    return undefined;
  });

/** The time of the last record that needs a file says when it may go. Answers whether the file is there. */
const touch = async (path: string, at: number): Promise<boolean> =>
  (await ifPresent(utimes(path, at / 1_000, at / 1_000).then(() => true))) ?? false;

/** Answers whether it was not there. One of another size is half of one, whose writer died over it. */
async function writeOnce(folder: string, name: string, part: string | Uint8Array): Promise<boolean> {
  const path = join(folder, name);
  if (fileStateOf(path)?.size === Buffer.byteLength(part)) return false;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    await writeFile(path, part, { mode: 0o600 });
  } catch (error) {
    // Half a file under the name of the whole would be taken for it.
    await rm(path, { force: true });
    throw error;
  }
  return true;
}

const isPartName = (name: string): boolean => /^[0-9a-f]{40}\.(?:txt|bin)$/.test(name);

/** `at`: epoch milliseconds. */
async function listed(folder: string) {
  const names = (await ifPresent(readdir(folder))) ?? [];
  return names.filter(isPartName).flatMap(name => {
    const state = fileStateOf(join(folder, name));
    // Without one, another process just removed it.
    return state ? [{ name, bytes: state.size, at: state.mtimeMs }] : [];
  });
}

export interface ExchangeLogParts {
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
const exchangeLogPaths = (folder: string) => ({ log: join(folder, 'comms.jsonl'), parts: join(folder, 'comms') });

type Timed = ExchangeNote & { at: number };

/** `comms.jsonl`: what was said to models, tools and programs and what they said, with long texts and bytes in side files. */
export function createExchangeLog({ folder, maxBytes, clock, secrets, onError }: ExchangeLogParts) {
  // Half of the bytes are for the log, half for the side files.
  const parts = createPartFiles(exchangeLogPaths(folder).parts, maxBytes / 2);
  const fileBytes = Math.max(1, Math.min(usualFileBytes, Math.floor(maxBytes / 10)));
  const keep = Math.max(1, Math.floor(maxBytes / 2 / fileBytes) - 1);
  const known = new Map<string, string | PartReference>();
  const log = createRotatingLog('comms', { folder, maxBytes: fileBytes, keep }, async () => {
    const at = log
      .files()
      .map(firstRecordTime)
      .findLast(each => each !== undefined);
    if (at !== undefined) await parts.dropBefore(at);
  });

  /** What stands for a text: itself without its secrets, or its side file. */
  const textPart = async (text: string, at: number): Promise<string | PartReference> => {
    const digest = hash('sha256', text, 'base64');
    const before = known.get(digest);
    if (typeof before === 'string' || (before && (await parts.isKept(before, at)))) return before;
    // Everything else has its turn between two texts.
    await new Promise(resolve => setImmediate(resolve));
    const masked = (await secrets.mask(text, 'log')).text;
    const shown = masked.length <= maxInlineLength ? masked : await parts.keep(masked, at);
    remember(known, digest, shown, maxKnown);
    return shown;
  };

  const recordOf = async ({ at, payload, ...note }: Timed): Promise<LogRecord> => {
    const lifted: { part: string | Uint8Array; place: Place }[] = [];
    const masked = secrets.maskLifting(payload, maxBatchLength, part => {
      const place = new Place();
      lifted.push({ part, place });
      return place;
    });
    for (const { part, place } of lifted)
      place.shown = await (typeof part === 'string' ? textPart(part, at) : parts.keep(part, at));
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

const deepestCounted = 12;

/** About how much memory a note holds, in characters and bytes. */
function sizeOf(value: unknown, depth: number): number {
  if (typeof value === 'string') return value.length;
  if (ArrayBuffer.isView(value)) return value.byteLength;
  if (typeof value !== 'object' || value === null || depth > deepestCounted) return 8;
  return Object.values(value).reduce<number>((sum, each) => sum + sizeOf(each, depth + 1), 8);
}

/** More files than a log of the largest size has; the first that is missing ends it. */
const maxFiles = 1_000;

/** Reads what `createExchangeLog` wrote into a folder of logs, by whichever process. Lines that make no sense are left out. */
export function createExchangeReader(folder: string): ExchangeReader {
  const places = exchangeLogPaths(folder);
  const files = rotatedFiles(places.log, maxFiles);

  /** Each file's lines, the youngest file first. */
  async function* batches(): AsyncGenerator<ExchangeLine[]> {
    for (const [index, file] of files.entries()) {
      const text = await ifPresent(readFile(file, 'utf8'));
      // The youngest is missing for a moment while it is rotated.
      if (text === undefined && index > 0) return;
      yield (text ?? '').split('\n').flatMap(line => lineOf(line) ?? []);
    }
  }

  return {
    async list({ limit, ...filter }) {
      const found = new Map<string, ExchangeLine[]>();
      for await (const lines of batches()) {
        const isWanted = (line: ExchangeLine) =>
          filtered.every(name => filter[name] === undefined || line[name] === filter[name]);
        for (const line of lines.filter(isWanted).reverse())
          found.set(line.exchange, [line, ...(found.get(line.exchange) ?? [])]);
        // An exchange may have begun in the file before.
        const newest = [...found.values()].slice(0, limit);
        if (newest.length === limit && newest.every(([first]) => first?.direction === 'out')) break;
      }
      return [...found.values()].slice(0, limit).flatMap(exchangeOf);
    },
    async find(id) {
      const found: ExchangeLine[] = [];
      for await (const lines of batches()) {
        found.unshift(...lines.filter(line => line.exchange === id));
        if (found[0]?.kind === 'request') break;
      }
      const whole = await Promise.all(
        found.map(async line => ({ ...line, payload: recordIn(await filled(line.payload, places.parts, 0)) })),
      );
      return exchangeOf(whole)[0];
    },
    async clear() {
      for (const file of files) {
        if (!fileStateOf(file) && file !== places.log) break;
        await rm(file, { force: true });
      }
      await rm(places.parts, { recursive: true, force: true });
    },
  };
}

function lineOf(text: string): ExchangeLine | undefined {
  // Nothing where it is half a line: its writer died, or is at it.
  const line = parsedJson(text);
  if (!isRecord(line) || typeof line.exchange !== 'string') return undefined;
  return {
    at: Date.parse(textIn(line.ts)) || 0,
    reqId: textIn(line.req_id),
    exchange: line.exchange,
    direction: line.direction === 'in' ? 'in' : 'out',
    kind: textIn(line.kind),
    tool: textIn(line.tool),
    provider: textIn(line.provider),
    model: textIn(line.model),
    payload: recordIn(line.payload),
  };
}

const filtered = ['reqId', 'tool', 'provider', 'model'] as const;

/** None where there are no lines. */
function exchangeOf(lines: readonly ExchangeLine[]): ExchangeRecord[] {
  const [first] = lines;
  if (!first) return [];
  const { direction: _direction, kind: _kind, payload: _payload, ...what } = first;
  const last = lines.findLast(({ kind }) => kind === 'response' || kind === 'error');
  const outcome = last === undefined ? 'open' : last.kind === 'error' ? 'error' : 'ok';
  return [{ ...what, outcome, elapsedMs: last && numberIn(last.payload.elapsedMs), lines }];
}

const deepestFilled = 40;

/** With what its side files hold in the places where they stand for it. */
async function filled(value: unknown, folder: string, depth: number): Promise<unknown> {
  if (typeof value !== 'object' || value === null || depth > deepestFilled) return value;
  if (Array.isArray(value)) return Promise.all(value.map(each => filled(each, folder, depth + 1)));
  if (!isRecord(value)) return value;
  // What is no name of a side file leads nowhere, whoever wrote it there.
  if (isPartName(textIn(value.$part))) return partOf(join(folder, textIn(value.$part)), numberIn(value.bytes));
  const entries = Object.entries(value).map(
    async ([name, each]) => [name, await filled(each, folder, depth + 1)] as const,
  );
  return Object.fromEntries(await Promise.all(entries));
}

async function partOf(path: string, bytes: number): Promise<unknown> {
  const content = await ifPresent(readFile(path));
  if (!content) return { missing: `${bytes} bytes that are no longer kept` };
  return path.endsWith('.txt') ? content.toString('utf8') : new Uint8Array(content);
}
