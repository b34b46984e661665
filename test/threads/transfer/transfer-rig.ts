import { createHash } from 'node:crypto';
import type { ExportFormat } from '../../../src/core/thread.ts';
import { createMask } from '../../../src/observability/secret-masking.ts';
import { createMemoryStore } from '../../../src/storage/memory/memory.ts';
import type { Store } from '../../../src/storage/store.ts';
import type { ThreadScope } from '../../../src/threads/threads.ts';
import { createThreads } from '../../../src/threads/threads.ts';
import type { ImportOptions } from '../../../src/threads/transfer/import-jsonl.ts';
import { createTransfer } from '../../../src/threads/transfer/transfer.ts';
import { start } from '../../contracts/store-fixtures.ts';
import { manualClock } from '../../support/clock.ts';
import { seededRandom } from '../../support/random.ts';

export const here: ThreadScope = { owner: 'local', workspace: '/home/ann/project' };
export const there: ThreadScope = { owner: 'bea', workspace: '/srv/other' };

/** A place where threads live, with all that moves them about. */
export function transferRig(store: Store = createMemoryStore()) {
  const clock = manualClock(start);
  const random = seededRandom(7);
  const warnings: string[] = [];
  const emit = (event: { type: string }) => void warnings.push(JSON.stringify(event));
  const threads = createThreads({ store, clock, random, emit });
  const { mask } = createMask({ secret: 'pepper', keys: [] });
  const transfer = createTransfer({ threads, clock, random, mask, emit });
  const signal = new AbortController().signal;
  return {
    store,
    clock,
    threads,
    warnings,
    async exported(id: string, format: ExportFormat = 'jsonl', place = here): Promise<string> {
      const { pieces } = await transfer.export(id, place, format);
      let text = '';
      for await (const piece of pieces) text += piece;
      return text;
    },
    imported: (text: string | Uint8Array, options: Partial<ImportOptions> = {}) =>
      transfer.import({ open: () => inChunks(Buffer.from(text)), place: there, asNew: false, signal, ...options }),
  };
}

/** Small and odd, so that lines and characters are cut in their middle. */
export async function* inChunks(bytes: Uint8Array, size = 997): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** A file whose lines have right checksums, whatever they say. */
export function sealedFile(records: readonly (object | string)[]): string {
  let sum = '';
  return records
    .map(record => {
      const json = typeof record === 'string' ? record : JSON.stringify(record);
      sum = createHash('sha256').update(`${sum}\n${json}`).digest('hex').slice(0, 32);
      return `${json.slice(0, -1)},"sum":"${sum}"}\n`;
    })
    .join('');
}

/** The records of a file, without their checksums. */
export function recordsOf(file: string): Record<string, unknown>[] {
  return file
    .trimEnd()
    .split('\n')
    .map(line => {
      const { sum: _sum, ...record } = JSON.parse(line);
      return record;
    });
}
