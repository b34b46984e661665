import {
  countMasked,
  type Embedded,
  type EmbedRequest,
  masked,
  recordOf,
  skipForRoom,
  take,
} from '../../calls/ask/file-embedding.ts';
import type { FoundFile } from '../../calls/ask/search-files.ts';
import type { FileRecord, LineRange } from '../../core/file.ts';
import { printablePath } from '../../core/text.ts';
import { covers } from '../../memory/seen-files.ts';

/** Places that had no room which are named. */
const mostTold = 5;

/** Sends what a search found, as long as there is room; what stands in the prompt already is not sent again. */
export async function placeSearched(request: EmbedRequest, out: Embedded, found: readonly FoundFile[]): Promise<void> {
  let told = 0;
  for (const { file, ranges } of found) {
    const wanted = ranges.filter(range => !isThere(request, out, file, range));
    if (wanted.length === 0) continue;
    const { base, text, found: secrets } = await masked(request, file);
    const blobs = new Map([[base, text]]);
    const records = new Map(wanted.map(range => [recordOf(file, 'range', base, range), range]));
    const placed = [...records.keys()].filter(record => take(request, out, record, blobs));
    // In the prompt, the ranges of a file stand in its order.
    out.records.splice(-placed.length || out.records.length, placed.length, ...placed.toSorted(byLine));
    if (placed.length > 0) countMasked(out, secrets);
    for (const record of placed) out.report.found.push(placeOf(file.path, records.get(record)));
    for (const [record, range] of records) {
      if (placed.includes(record) || told++ >= mostTold) continue;
      skipForRoom(out, placeOf(file.path, range), 'what use_search found here does not fit');
    }
  }
}

function isThere(request: EmbedRequest, out: Embedded, file: FoundFile['file'], range: LineRange): boolean {
  const standing = request.standing.get(file.path);
  // A file that changed is sent as a change, all of it.
  if (standing && (standing.sha256 !== file.sha256 || covers(standing, range))) return true;
  return out.records.some(
    ({ path, form, range: shown }) =>
      path === file.path &&
      (form === 'full' ||
        form === 'diff' ||
        (form === 'range' && shown !== undefined && shown.from <= range.from && shown.to >= range.to)),
  );
}

function byLine(a: FileRecord, b: FileRecord): number {
  return (a.range?.from ?? 0) - (b.range?.from ?? 0);
}

function placeOf(path: string, range: LineRange | undefined): string {
  return range ? `${printablePath(path)}:${range.from}-${range.to}` : printablePath(path);
}
