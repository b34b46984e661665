import { inputError, storageError, throwIfAborted } from '../../core/errors.ts';
import { hashOf, type Sha256, type ThreadId, threadId } from '../../core/ids.ts';
import { mapTexts } from '../../core/json.ts';
import type { Clock, Mask, Random } from '../../core/ports.ts';
import type { StoredTurn } from '../../core/thread.ts';
import type { ThreadChange } from '../../storage/store.ts';
import type { ThreadScope, Threads } from '../threads.ts';
import { mapCitations } from '../transcript.ts';
import { type OpenBytes, readRecords } from './read-records.ts';
import type { FileHead, FileRecordLine } from './records.ts';

const maxWaiting = 64;

const maxWeight = 8 * 1024 * 1024;

export interface ImportParts {
  threads: Threads;
  clock: Clock;
  random: Random;
  mask: Mask;
}

export interface ImportOptions {
  /** The file; it is read twice, so that nothing is written of one that is broken anywhere. */
  open: OpenBytes;
  place: ThreadScope;
  /** It gets an id of its own, beside a thread that has the file's. */
  asNew: boolean;
  signal: AbortSignal;
  /** Told of records as they are read, and again as they are written. */
  onProgress?: (stage: 'checking' | 'writing', records: number) => void;
}

/** A file that was read to its end and is whole; `masks` knows how its texts were renamed. */
type Survey = Awaited<ReturnType<typeof surveyed>>;

/** Until its last change a thread says that it is not whole, and lives no longer than this. */
const unfinishedMs = 3_600_000;

const unfinished = ' (import not finished)';

/** Turns of one exchange that are written in one change. */
const maxTurns = 32;

/** Reads the file again and writes its records, title and time last; what fails leaves nothing. Answers the masked secrets, by kind. */
async function writeRecords(parts: ImportParts, { open, place, signal, onProgress }: ImportOptions, survey: Survey) {
  const masks = createRecordMask(parts.mask, survey.id, survey.masks);
  const writer = createWriter(parts, place, survey.id);
  let last = '';
  try {
    for await (const { record, line, sum } of readRecords(open, signal)) {
      await writer.write(await masks.record(record));
      onProgress?.('writing', line);
      last = sum;
    }
    throwIfAborted(signal);
    if (last !== survey.sum)
      throw inputError('The file changed while it was read.', {
        next: 'Import it again when nobody writes to it; nothing was imported.',
      });
    await writer.finish();
  } catch (error) {
    await writer.undo();
    throw error;
  }
  return masks.found;
}

function createWriter({ threads: { store, lifetimeMs }, clock }: ImportParts, place: ThreadScope, id: ThreadId) {
  /** Changes that nobody waits for one by one: a store takes what came together in one go. */
  let waiting: Promise<number>[] = [];
  let total = 0;
  let head: FileHead | undefined;
  let seq = 0;
  let exchange: StoredTurn[] = [];

  async function settled(): Promise<void> {
    const all = waiting;
    waiting = [];
    total = 0;
    await Promise.all(all);
  }

  /** `weight`: characters that wait in memory with it. Throws what an earlier change failed with. */
  async function change(parts: Partial<ThreadChange>, weight: number, lifeMs = unfinishedMs): Promise<void> {
    const updatedAt = head?.updatedAt ?? clock.now();
    const commit = store.commit(id, { baseSeq: seq, updatedAt, expiresAt: expiry(updatedAt, lifeMs), ...parts });
    // What it failed with is thrown by `settled`, which may come later.
    commit.catch(() => {});
    waiting.push(commit);
    total += weight;
    if (waiting.length >= maxWaiting || total >= maxWeight) await settled();
  }

  /** The clock that wrote the file may be ahead. */
  const expiry = (updatedAt: number, lifeMs: number): number => Math.max(clock.now(), updatedAt) + lifeMs;

  async function begin(given: FileHead): Promise<void> {
    const { startSeq, title, ...facts } = given;
    const expiresAt = expiry(given.updatedAt, unfinishedMs);
    await store.create({ ...facts, ...place, id, title: title + unfinished, expiresAt, seq: startSeq }, 'revive');
    head = given;
    seq = startSeq;
  }

  async function flush(): Promise<void> {
    const [first] = exchange;
    if (!first) return;
    const turns = exchange.map(({ status: _status, ...turn }) => turn);
    const weight = turns.reduce((sum, turn) => sum + turn.content.length, 0);
    exchange = [];
    await change({ turns, exchange: { id: first.exchange, status: first.status } }, weight);
    seq += turns.length;
  }

  async function write(record: FileRecordLine): Promise<void> {
    const goesOn = record.kind === 'turn' && record.turn.exchange === exchange[0]?.exchange;
    if (!goesOn || exchange.length >= maxTurns) await flush();
    switch (record.kind) {
      case 'turn':
        return void exchange.push(record.turn);
      case 'head':
        return begin(record.head);
      case 'compaction':
        return change({ compaction: record.compaction }, record.compaction.summary.length);
      case 'workflow':
        return change({ workflow: { tool: record.tool, state: record.state } }, 0);
      case 'blob':
        return change({ blobs: [{ sha256: record.sha256, text: record.text }] }, record.text.length);
      case 'end':
        return settled();
    }
  }

  return {
    write,
    /** The thread is whole, and lives as long as others. */
    async finish(): Promise<void> {
      await change({ title: head?.title ?? '' }, 0, lifetimeMs);
      await settled();
    },
    /** Takes away what was written; never throws. */
    async undo(): Promise<void> {
      // What failed first is what the caller needs to hear; what is left over expires by itself within the hour.
      await settled().catch(() => {});
      if (head) await store.remove(id, clock.now()).catch(() => {});
    },
  };
}

/** A clock on another machine may be ahead by so much. */
const aheadMs = 86_400_000;

/**
 * Reads an exported thread into the store, all or nothing; throws INVALID_INPUT_FORMAT for what is broken, newer, or there already.
 * `missing`: texts that turns refer to and that are in no line; `masked`: secrets that were still in the file, kind → how many.
 */
export async function importJsonl(parts: ImportParts, options: ImportOptions) {
  const survey = await surveyed(parts, options);
  const { id, turns, blobs, missing } = survey;
  const { exclusively, store } = parts.threads;
  return exclusively(id, { signal: options.signal }, async () => {
    await makeWay(parts, survey);
    const masked = await writeRecords(parts, options, survey);
    const found = await store.head(id, parts.clock.now());
    if (found.state !== 'live') throw storageError('conflict', `Thread ${id} was removed while it was imported.`);
    return { thread: found.value, turns, blobs, missing, masked };
  });
}

async function surveyed({ clock, random, mask, threads: { store } }: ImportParts, options: ImportOptions) {
  const texts = new Set<Sha256>();
  const brought = new Set<string>();
  let begun: { id: ThreadId; masks: ReturnType<typeof createRecordMask> } | undefined;
  let turns = 0;
  let last = '';
  for await (const { record, line, sum } of readRecords(options.open, options.signal)) {
    options.onProgress?.('checking', line);
    last = sum;
    if (record.kind === 'head') {
      const { head } = record;
      if (head.updatedAt > clock.now() + aheadMs)
        throw inputError('The file says that its thread was last used in the future.', {
          next: "Set this machine's clock, or export the thread again where the clock is right.",
        });
      const taken = await store.head(head.id, clock.now());
      // That another owner has a thread of this id is not told.
      const isOthers = taken.state === 'live' && taken.value.owner !== options.place.owner;
      const id = options.asNew || isOthers ? threadId(random.uuid()) : head.id;
      begun = { id, masks: createRecordMask(mask, id) };
    }
    if (!begun) continue;
    if (record.kind === 'turn') {
      turns++;
      note(record.turn, texts, begun.masks.pictures);
    } else if (record.kind === 'blob') {
      brought.add(record.sha256);
      await begun.masks.record(record);
    }
  }
  if (!begun)
    throw inputError('The file holds no thread.', { next: 'Name a file that was exported with format jsonl.' });
  // The store may hold such a text all the same: another owner's, whose hash is all that the file knows of it.
  const lost = [...texts, ...begun.masks.pictures].filter(hash => !brought.has(hash));
  // In its place stands the hash of no text that anybody stores.
  for (const hash of lost) begun.masks.renamed.set(hash, hashOf(`lost ${hash}`));
  return { ...begun, turns, blobs: brought.size, missing: lost.length, sum: last };
}

/** Sorts what a turn refers to; a file's text stays one, whatever else claims it to be a picture. */
function note({ files, images }: StoredTurn, texts: Set<Sha256>, pictures: Set<Sha256>): void {
  for (const hash of files.flatMap(({ base, shown }) => [base, shown])) {
    if (!hash) continue;
    texts.add(hash);
    pictures.delete(hash);
  }
  for (const { blob } of images) if (!texts.has(blob)) pictures.add(blob);
}

/** What expired or was removed may come back by its file; what is there is never written over. */
async function makeWay({ threads: { store }, clock }: ImportParts, { id }: Survey): Promise<void> {
  const found = await store.head(id, clock.now());
  if (found.state === 'live')
    throw inputError(`Thread ${id} is there already.`, {
      class: 'exists',
      next: 'Import it as a new thread (as_new, or --as-new), or continue the existing one.',
      validationErrors: [{ field: 'as_new', error: 'the id is taken', allowed: ['true'] }],
    });
  if (found.state === 'expired') await store.prune(clock.now());
}

/**
 * Masks what a file brings in, as everything is that comes into the store; what was masked before stays as it is. Turns come before
 * the texts they refer to: a second reading is given what the `first` one found out of them.
 */
function createRecordMask(mask: Mask, scope: string, first?: { renamed: Map<string, Sha256>; pictures: Set<Sha256> }) {
  /** Texts that are not what they were, or that the file does not bring: their hash before → their hash now. */
  const renamed = first?.renamed ?? new Map<string, Sha256>();
  /** Texts that are bytes in base64: there are no secrets in those, but what looks like some. */
  const pictures = first?.pictures ?? new Set<Sha256>();
  const found: Record<string, number> = {};

  async function text(value: string, by?: 'model'): Promise<string> {
    const masked = await mask(value, scope, by);
    for (const [kind, count] of Object.entries(masked.found)) found[kind] = (found[kind] ?? 0) + count;
    return masked.text;
  }

  async function turn(given: StoredTurn): Promise<StoredTurn> {
    const now = (sha: Sha256) => renamed.get(sha) ?? sha;
    return {
      ...given,
      content: await text(given.content, given.role === 'assistant' ? 'model' : undefined),
      citations: await mapCitations(given.citations, text),
      files: given.files.map(file => ({
        ...file,
        ...(file.base && { base: now(file.base) }),
        ...(file.shown && { shown: now(file.shown) }),
      })),
      images: given.images.map(image => ({ ...image, blob: now(image.blob) })),
    };
  }

  async function blob(given: Extract<FileRecordLine, { kind: 'blob' }>): Promise<FileRecordLine> {
    if (pictures.has(given.sha256)) return given;
    const masked = await text(given.text);
    if (masked === given.text) return given;
    const now = hashOf(masked);
    renamed.set(given.sha256, now);
    return { ...given, sha256: now, text: masked };
  }

  return {
    renamed,
    pictures,
    /** Kind of secret → how many were masked. */
    found,
    /** The record without secrets. Texts get another hash by that, which turns that refer to them learn from `renamed`. */
    async record(line: FileRecordLine): Promise<FileRecordLine> {
      switch (line.kind) {
        case 'head': {
          const title = await text(line.head.title);
          const initialContext = await mapTexts(line.head.initialContext, words => text(words));
          return { kind: 'head', head: { ...line.head, title, initialContext } };
        }
        case 'turn':
          return { kind: 'turn', turn: await turn(line.turn) };
        case 'compaction': {
          const summary = await text(line.compaction.summary, 'model');
          return { kind: 'compaction', compaction: { ...line.compaction, summary } };
        }
        case 'workflow':
          return { ...line, state: await mapTexts(line.state, words => text(words)) };
        case 'blob':
          return blob(line);
        case 'end':
          return line;
      }
    },
  };
}
