import { inputError, throwIfAborted } from '../../core/errors.ts';
import type { ThreadId } from '../../core/ids.ts';
import type { Clock } from '../../core/ports.ts';
import type { StoredTurn } from '../../core/thread.ts';
import type { Store, ThreadChange } from '../../storage/store.ts';
import { createRecordMask } from '../../threads/transfer/mask-records.ts';
import { readRecords } from '../../threads/transfer/read-records.ts';
import type { FileHead, FileRecordLine } from '../../threads/transfer/records.ts';
import type { Place } from '../lookup.ts';
import { createCommits } from './commits.ts';
import type { Imported, ImportOptions, ImportParts, Survey } from './importing.ts';

/** Until its last change a thread says that it is not whole, and lives no longer than this. */
const unfinishedMs = 3_600_000;
const unfinished = ' (import not finished)';
/** Turns of one exchange that are written in one change. */
const mostTurns = 32;

/**
 * Reads the file again and writes its records; the thread gets its title and its time with the last change. When anything fails
 * on the way, what was written goes again. Answers how many secrets were masked, by kind.
 */
export async function writeRecords(
  { store, clock, mask, lifetimeMs }: ImportParts,
  { open, place, signal, onProgress }: ImportOptions,
  survey: Survey,
): Promise<Imported['masked']> {
  const masks = createRecordMask(mask, survey.id, survey.masks);
  const writer = createWriter({ store, clock, place, id: survey.id });
  let last = '';
  try {
    for await (const { record, line, sum } of readRecords(open, signal)) {
      await writer.write(await masks.record(record));
      onProgress?.('writing', line);
      last = sum;
    }
    throwIfAborted(signal);
    if (last !== survey.sum) throw changedMeanwhile();
    await writer.finish(lifetimeMs);
  } catch (error) {
    await writer.undo();
    throw error;
  }
  return masks.found;
}

interface WriterParts {
  store: Store;
  clock: Clock;
  place: Place;
  id: ThreadId;
}

interface Writer {
  write(record: FileRecordLine): Promise<void>;
  /** The thread is whole, and lives for `lifetimeMs`. */
  finish(lifetimeMs: number): Promise<void>;
  /** Takes away what was written; never throws. */
  undo(): Promise<void>;
}

function createWriter({ store, clock, place, id }: WriterParts): Writer {
  const commits = createCommits(store, id);
  let head: FileHead | undefined;
  let seq = 0;
  let exchange: StoredTurn[] = [];

  function change(parts: Partial<ThreadChange>, weight: number, lifetimeMs = unfinishedMs): Promise<void> {
    const updatedAt = head?.updatedAt ?? clock.now();
    return commits.add({ baseSeq: seq, updatedAt, expiresAt: expiry(updatedAt, lifetimeMs), ...parts }, weight);
  }

  /** The clock that wrote the file may be ahead. */
  function expiry(updatedAt: number, lifetimeMs: number): number {
    return Math.max(clock.now(), updatedAt) + lifetimeMs;
  }

  async function begin(given: FileHead): Promise<void> {
    const { startSeq, title, ...facts } = given;
    const expiresAt = expiry(given.updatedAt, unfinishedMs);
    await store.create({ ...facts, ...place, id, title: title + unfinished, expiresAt, seq: startSeq }, 'revive');
    head = given;
    seq = startSeq;
  }

  async function flush(): Promise<void> {
    const [first, ...others] = exchange;
    if (!first) return;
    const turns = [first, ...others].map(({ status: _status, ...turn }) => turn);
    const weight = turns.reduce((sum, turn) => sum + turn.content.length, 0);
    exchange = [];
    await change({ turns, exchange: { id: first.exchange, status: first.status } }, weight);
    seq += turns.length;
  }

  async function take(turn: StoredTurn): Promise<void> {
    const [first] = exchange;
    if (first && (first.exchange !== turn.exchange || exchange.length >= mostTurns)) await flush();
    exchange.push(turn);
  }

  async function write(record: FileRecordLine): Promise<void> {
    if (record.kind === 'turn') return take(record.turn);
    await flush();
    switch (record.kind) {
      case 'head':
        return begin(record.head);
      case 'compaction':
        return change({ compaction: record.compaction }, record.compaction.summary.length);
      case 'workflow':
        return change({ workflow: { tool: record.tool, state: record.state } }, 0);
      case 'blob':
        return change({ blobs: [{ sha256: record.sha256, text: record.text }] }, record.text.length);
      case 'end':
        return commits.settled();
    }
  }

  return {
    write,
    async finish(lifetimeMs) {
      await change({ title: head?.title ?? '' }, 0, lifetimeMs);
      await commits.settled();
    },
    async undo() {
      // What failed first is what the caller needs to hear; what is left over expires by itself within the hour.
      await commits.settled().catch(() => {});
      if (head) await store.remove(id, clock.now()).catch(() => {});
    },
  };
}

function changedMeanwhile(): Error {
  return inputError('The file changed while it was read.', {
    next: 'Import it again when nobody writes to it; nothing was imported.',
  });
}
