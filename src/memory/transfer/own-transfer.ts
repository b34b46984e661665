import type { Clock } from '../../core/ports.ts';
import type { Prunable, Store } from '../../storage/store.ts';
import type { Export, ExportFormat, Transfer } from '../../threads/transfer/transfer.ts';
import type { Place } from '../lookup.ts';
import type { Imported, ImportOptions } from './importing.ts';

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

export function openTransfer({ transfer, store, clock }: OwnTransferParts, place: Place): OwnTransfer {
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
