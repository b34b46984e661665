import { isAppError } from '../../core/errors.ts';
import type { Clock, Emit, Mask, Random } from '../../core/ports.ts';
import type { Thread } from '../../core/thread.ts';
import type { Prunable, Store } from '../../storage/store.ts';
import type { ThreadScope, Threads } from '../threads.ts';
import { exportHtml } from './export-html.ts';
import { type Exported, exportJsonl, type ReadBlob } from './export-jsonl.ts';
import { exportMarkdown } from './export-markdown.ts';
import { type Imported, type ImportOptions, importJsonl } from './import-jsonl.ts';

/** `jsonl` can be imported again; the others are for reading. */
const exportFormats = ['jsonl', 'md', 'html'] as const;

export type ExportFormat = (typeof exportFormats)[number];

export interface TransferParts {
  threads: Threads;
  clock: Clock;
  random: Random;
  mask: Mask;
  emit: Emit;
}

/** A thread on its way out. */
export interface Export {
  thread: Thread;
  /** The file's text, in order; texts of the store are read as they are due. */
  pieces: AsyncIterable<string>;
}

/** Threads as files, and back. */
export interface Transfer {
  /** Throws like `Threads.find` when there is no such thread. */
  export(reference: string, place: ThreadScope, format: ExportFormat): Promise<Export>;
  import(options: ImportOptions): Promise<Imported>;
}

const writers: Readonly<Record<ExportFormat, (exported: Exported) => AsyncIterable<string>>> = {
  jsonl: exportJsonl,
  md: exportMarkdown,
  html: exportHtml,
};

export function createTransfer(parts: TransferParts): Transfer {
  const { threads, emit } = parts;
  const { store, exclusively, lifetimeMs } = threads;

  const blob: ReadBlob = async hash => {
    try {
      return (await store.blobs([hash])).get(hash);
    } catch (error) {
      if (!isAppError(error) || error.details.class !== 'corrupt') throw error;
      // The rest of the thread is worth having without it.
      emit({ type: 'warning', where: 'export', message: error.message });
      return undefined;
    }
  };

  return {
    async export(reference, place, format) {
      const thread = await threads.find(reference, place);
      return { thread, pieces: writers[format]({ thread, blob }) };
    },
    import: options => importJsonl({ ...parts, store, exclusively, lifetimeMs }, options),
  };
}

export interface PruneOptions {
  /** Milliseconds: threads of this owner that were not used for so long go too. */
  unusedFor?: number;
  /** Only says what would go. */
  dryRun: boolean;
}

/** Threads as files, and what is over with, for one who need not say who he is. */
export interface OwnTransfer {
  export(reference: string, format: ExportFormat): Promise<Export>;
  import(options: Omit<ImportOptions, 'place'>): Promise<Imported>;
  /** What went, or would go. */
  prune(options: PruneOptions): Promise<Prunable>;
}

export interface OwnTransferParts {
  transfer: Transfer;
  store: Store;
  clock: Clock;
}

export function openTransfer({ transfer, store, clock }: OwnTransferParts, place: ThreadScope): OwnTransfer {
  return {
    export: (reference, format) => transfer.export(reference, place, format),
    import: options => transfer.import({ ...options, place }),
    async prune({ unusedFor, dryRun }) {
      const now = clock.now();
      const unused = unusedFor === undefined ? undefined : { owner: place.owner, since: now - unusedFor };
      const found = await store.prunable(now, unused);
      return dryRun ? found : { ...found, threads: await store.prune(now, unused) };
    },
  };
}
