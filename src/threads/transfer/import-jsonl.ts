import { inputError, storageError } from '../../core/errors.ts';
import { type Sha256, threadId } from '../../core/ids.ts';
import type { StoredTurn } from '../../core/thread.ts';
import type { Imported, ImportOptions, ImportParts, Survey } from '../../memory/transfer/importing.ts';
import { writeRecords } from '../../memory/transfer/write-records.ts';
import { createRecordMask, lostText } from './mask-records.ts';
import { readRecords } from './read-records.ts';

/** A clock on another machine may be ahead by so much. */
const aheadMs = 86_400_000;

/**
 * Reads an exported thread into the store: all of it, or nothing. Throws INVALID_INPUT_FORMAT for what is broken, newer than this
 * program, or there already.
 */
export async function importJsonl(parts: ImportParts, options: ImportOptions): Promise<Imported> {
  const survey = await surveyed(parts, options);
  const { id, turns, blobs, missing } = survey;
  return parts.exclusively(id, { signal: options.signal }, async () => {
    await makeWay(parts, survey);
    const masked = await writeRecords(parts, options, survey);
    const found = await parts.store.head(id, parts.clock.now());
    if (found.state !== 'live') throw storageError('conflict', `Thread ${id} was removed while it was imported.`);
    return { thread: found.value, turns, blobs, missing, masked };
  });
}

async function surveyed({ clock, random, mask }: ImportParts, options: ImportOptions): Promise<Survey> {
  const texts = new Set<Sha256>();
  const brought = new Set<string>();
  let survey: Survey | undefined;
  for await (const { record, line, sum } of readRecords(options.open, options.signal)) {
    options.onProgress?.('checking', line);
    if (record.kind === 'head') {
      const { head } = record;
      if (head.updatedAt > clock.now() + aheadMs) throw fromTheFuture();
      const id = options.asNew ? threadId(random.uuid()) : head.id;
      const masks = createRecordMask(mask, id, { renamed: new Map(), pictures: new Set() });
      survey = { id, head, turns: 0, blobs: 0, missing: 0, sum, masks };
    }
    if (!survey) continue;
    survey.sum = sum;
    if (record.kind === 'turn') {
      survey.turns++;
      note(record.turn, texts, survey.masks.pictures);
    } else if (record.kind === 'blob') {
      survey.blobs++;
      brought.add(record.sha256);
      await survey.masks.record(record);
    }
  }
  if (!survey)
    throw inputError('The file holds no thread.', { next: 'Name a file that was exported with format jsonl.' });
  // The store may hold such a text all the same: another owner's, whose hash is all that the file knows of it.
  for (const hash of [...texts, ...survey.masks.pictures])
    if (!brought.has(hash)) survey.masks.renamed.set(hash, lostText(hash));
  return { ...survey, missing: texts.size + survey.masks.pictures.size - survey.blobs };
}

/** Sorts what a turn refers to; a file's text stays one, whatever else claims it to be a picture. */
function note({ files, images }: StoredTurn, texts: Set<Sha256>, pictures: Set<Sha256>): void {
  for (const { base, shown } of files) for (const hash of [base, shown]) if (hash) texts.add(hash);
  for (const { blob } of images) pictures.add(blob);
  for (const hash of pictures) if (texts.has(hash)) pictures.delete(hash);
}

/** What expired or was removed may come back by its file; what is there is never written over. */
async function makeWay({ store, clock }: ImportParts, { id }: Survey): Promise<void> {
  const found = await store.head(id, clock.now());
  if (found.state === 'live') {
    throw inputError(`Thread ${id} is there already.`, {
      class: 'exists',
      next: 'Import it as a new thread beside it (as_new, or --as-new), or go on with the one that is there.',
      validationErrors: [{ field: 'as_new', error: 'the id is taken', allowed: ['true'] }],
    });
  }
  if (found.state === 'expired') await store.prune(clock.now());
}

function fromTheFuture(): Error {
  return inputError('The file says that its thread was last used in the future.', {
    next: "Set this machine's clock, or export the thread again where the clock is right.",
  });
}
