import type { ComposeOptions } from '../../calls/ask/options.ts';
import type { FileRecord } from '../../core/file.ts';
import type { Thread } from '../../core/thread.ts';
import { findOriginals, type Originals } from '../../files/put-back/originals.ts';
import { scopesOf } from '../../memory/lookup.ts';

export interface ThreadFiles {
  thread: Thread;
  /** Files of a turn that is not in the thread yet. */
  files: readonly FileRecord[];
  signal: AbortSignal;
}

/** Files that are read again for this, the newest first. */
const mostFiles = 200;

/** What placeholders of a thread stand for, as far as the files that it was sent still hold that; nothing else is asked. */
export async function threadOriginals(
  { store, sandbox, mask, maxFileBytes }: ComposeOptions,
  { thread, files, signal }: ThreadFiles,
  wanted: ReadonlySet<string>,
): Promise<Originals> {
  if (wanted.size === 0) return new Map();
  const sent = [...thread.turns.flatMap(turn => turn.files), ...files].toReversed();
  // An outline shows text of its file as well, and has no base.
  const showing = sent.filter(({ base, shown }) => (base ?? shown) !== undefined);
  const paths = [...new Set(showing.map(({ path }) => path))].slice(0, mostFiles);
  const scopes = await scopesOf(store, thread);
  return findOriginals({ wanted, paths, scopes, sandbox, mask, maxBytes: maxFileBytes, signal });
}
