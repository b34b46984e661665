import { bugError } from '../../core/errors.ts';
import type { Sha256 } from '../../core/ids.ts';
import { blobsOfTurns, type Thread } from '../../core/thread.ts';
import { createSumChain } from './read-records.ts';
import { checkedRecord, type FileRecordLine, formatName, formatVersion } from './records.ts';

/** A text of the store; undefined when it is no longer there, or can't be served. */
export type ReadBlob = (hash: Sha256) => Promise<string | undefined>;

/** A thread with the turns it begins with, as `threads.find` gives it, and the texts it refers to. */
export interface Exported {
  thread: Thread;
  blob: ReadBlob;
}

/**
 * A thread as lines of JSON, each with its line end: the same bytes in whichever store, with texts read when their line is due. A fork
 * comes whole, with the turns it begins with, so that it is the same thread where its original is not known.
 */
export async function* exportJsonl({ thread, blob }: Exported): AsyncGenerator<string> {
  const chain = createSumChain();
  const line = (record: FileRecordLine) => {
    const checked = checkedRecord(record);
    if ('problem' in checked)
      throw bugError(`A stored ${record.kind} does not fit the format of files: ${checked.problem}`);
    return `${chain.seal(JSON.stringify(checked))}\n`;
  };
  yield `${chain.seal(JSON.stringify({ format: formatName, version: formatVersion }))}\n`;
  const { id, toolName, title, createdAt, updatedAt, totals, initialContext, turns } = thread;
  const startSeq = thread.seq - turns.length;
  yield line({ kind: 'head', head: { id, toolName, title, createdAt, updatedAt, totals, startSeq, initialContext } });
  // What its attempts took is the bookkeeping of who asked. Where it is read, nobody is answering it any more.
  for (const { attempts: _, ...turn } of turns)
    yield line({ kind: 'turn', turn: turn.status === 'pending' ? { ...turn, status: 'interrupted' } : turn });
  for (const compaction of thread.compactions) yield line({ kind: 'compaction', compaction });
  for (const tool of Object.keys(thread.workflows).toSorted()) {
    const state = thread.workflows[tool];
    if (state) yield line({ kind: 'workflow', tool, state });
  }
  let blobs = 0;
  for (const hash of blobsOfTurns(turns)) {
    const text = await blob(hash);
    if (text === undefined) continue;
    yield line({ kind: 'blob', sha256: hash, text });
    blobs++;
  }
  yield line({ kind: 'end', turns: turns.length, blobs });
}
