import { isAppError } from '../../core/errors.ts';
import type { Emit } from '../../core/ports.ts';
import type { ExportFormat } from '../../core/thread.ts';
import type { ThreadScope } from '../threads.ts';
import type { Exported, ReadBlob } from './export-jsonl.ts';
import type { ImportOptions, ImportParts } from './import-jsonl.ts';

/** `jsonl` can be imported again; the others are for reading. Loaded when a thread is exported, which few processes ever do. */
const writers: Readonly<Record<ExportFormat, () => Promise<(exported: Exported) => AsyncIterable<string>>>> = {
  jsonl: async () => (await import('./export-jsonl.ts')).exportJsonl,
  md: async () => (await import('./readable.ts')).exportMarkdown,
  html: async () => (await import('./readable.ts')).exportHtml,
};

export type Transfer = ReturnType<typeof createTransfer>;

/** Threads as files, and back; and the end of those that are over with. */
export function createTransfer(parts: ImportParts & { emit: Emit }) {
  const { threads, clock, emit } = parts;
  const { store } = threads;

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
    /** Throws like `Threads.find`. `pieces`: the file's text, in order; texts of the store are read as they are due. */
    async export(reference: string, place: ThreadScope, format: ExportFormat) {
      const thread = await threads.find(reference, place);
      return { thread, pieces: (await writers[format]())({ thread, blob }) };
    },
    async import(options: ImportOptions) {
      const { importJsonl } = await import('./import-jsonl.ts');
      return importJsonl(parts, options);
    },
    /** What went, or would (`dryRun`). `unusedFor`: milliseconds; threads of this owner that were not used for so long go too. */
    async prune({ owner, unusedFor, dryRun }: { owner: string; unusedFor?: number; dryRun: boolean }) {
      const now = clock.now();
      const unused = unusedFor === undefined ? undefined : { owner, since: now - unusedFor };
      const found = await store.prunable(now, unused);
      return dryRun ? found : { ...found, threads: await store.prune(now, unused) };
    },
  };
}
