import { isAppError } from '../../core/errors.ts';
import type { LineRange, TextFile } from '../../core/file.ts';
import { isSkip } from '../../workspace/paths.ts';
import { clampRange, readFile } from '../../workspace/read-file.ts';
import { searchWaitMs } from '../../workspace/search-index/search-index.ts';
import type { RoutedCall } from '../call-record.ts';
import { joined } from './relevant-ranges.ts';
import type { CallServices } from './services.ts';

/** A file in which a search found something, and where, the best place first. */
export interface FoundFile {
  file: TextFile;
  ranges: LineRange[];
}

const maxHits = 24;

/** What the workspace's index knows about the question. A search that fails is no reason to fail. */
export async function searchFiles(services: CallServices, call: RoutedCall) {
  const { signal, progress, plan, request, thread } = call;
  const payer = { owner: request.principal.owner, thread: thread.id };
  try {
    const index = await services.indexes.of(request.principal.root);
    await index.refresh({
      signal,
      payer,
      waitMs: searchWaitMs,
      onProgress: (stage, done, total) => progress.stage(`${stage} ${done} of ${total}`),
    });
    const places = new Map<string, LineRange[]>();
    for (const { path, from, to } of await index.search(plan.contribution, maxHits, signal, payer)) {
      places.set(path, joined([...(places.get(path) ?? []), { from, to }]));
    }
    const found: FoundFile[] = [];
    for (const [path, wanted] of places) {
      const file = await readFile(services.sandbox, path, { maxBytes: services.maxFileBytes, signal });
      if (isSkip(file)) continue;
      const ranges = wanted.flatMap(range => {
        const there = clampRange(path, range, file.lines);
        return isSkip(there) ? [] : [there];
      });
      if (ranges.length > 0) found.push({ file, ranges });
    }
    const warning = index.warning();
    const none = found.length === 0 ? ['use_search found nothing about this in the project.'] : [];
    return { found, warnings: warning === undefined ? none : [...none, `use_search: ${warning}`] };
  } catch (error) {
    if (signal.aborted || !isAppError(error) || error.kind === 'bug') throw error;
    return { found: [], warnings: [`use_search found nothing: ${error.message}`] };
  }
}
