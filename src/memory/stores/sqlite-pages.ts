import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';

/** The last columns of a row, as far as they are text: the others are undefined. At most three. */
export type LastColumns = (string | undefined)[];

const ordinaryPageSize = 4096;
const walHeader = 32;
const frameHeader = 24;
const tableLeaf = 0x0d;
/** The serial type of a text of 64 bytes: the seal that ends every row worth reading. */
const sealType = 13 + 64 * 2;

/**
 * Reads the rows of a damaged file without SQLite: goes through all pages that hold rows of tables, whatever the schema,
 * the header and the inner pages say, and yields those that end in a checksum. Pages of the `-wal` file count before those
 * of the file, up to its last complete transaction. Whether a row is whole is for the caller to prove by its checksum.
 */
export function* sqlitePages(file: string): Generator<LastColumns> {
  const handle = openSync(file, 'r');
  try {
    const pages = pageSource(handle, file);
    for (let number = 1; number <= pages.count; number++) {
      const page = pages.read(number);
      if (page) yield* rowsOf(page, number === 1 ? 100 : 0, pages);
    }
  } finally {
    closeSync(handle);
  }
}

interface PageSource {
  size: number;
  count: number;
  read(number: number): Buffer | undefined;
}

function pageSource(handle: number, file: string): PageSource {
  const bytes = fstatSync(handle).size;
  const size = pageSizeOf(handle);
  const wal = existsSync(`${file}-wal`) ? readFileSync(`${file}-wal`) : Buffer.alloc(0);
  const newer = committedFrames(wal, size);
  return {
    size,
    count: Math.max(Math.ceil(bytes / size), ...newer.keys()),
    read(number) {
      const at = newer.get(number);
      if (at !== undefined) return wal.subarray(at, at + size);
      // A page that was cut off at the end of the file reads as zeros from there.
      const page = Buffer.alloc(size);
      return readSync(handle, page, 0, size, (number - 1) * size) > 0 ? page : undefined;
    },
  };
}

function pageSizeOf(handle: number): number {
  const header = Buffer.alloc(100);
  readSync(handle, header, 0, 100, 0);
  const told = header.readUInt16BE(16);
  const size = told === 1 ? 65_536 : told;
  const known = header.toString('latin1', 0, 15) === 'SQLite format 3' && size >= 512 && (size & (size - 1)) === 0;
  return known ? size : ordinaryPageSize;
}

/** Page number → where its newest committed content begins in the WAL file. */
function committedFrames(wal: Buffer, size: number): Map<number, number> {
  const committed = new Map<number, number>();
  if (wal.length < walHeader) return committed;
  const salts = wal.subarray(16, 24);
  const open = new Map<number, number>();
  for (let at = walHeader; at + frameHeader + size <= wal.length; at += frameHeader + size) {
    // Frames of an earlier round, which are no longer valid, carry other salts.
    if (!wal.subarray(at + 8, at + 16).equals(salts)) continue;
    open.set(wal.readUInt32BE(at), at + frameHeader);
    if (wal.readUInt32BE(at + 4) === 0) continue;
    for (const [page, start] of open) committed.set(page, start);
    open.clear();
  }
  return committed;
}

function* rowsOf(page: Buffer, start: number, pages: PageSource): Generator<LastColumns> {
  if (page[start] !== tableLeaf) return;
  const cells = page.readUInt16BE(start + 3);
  for (let cell = 0; cell < cells; cell++) {
    const pointer = start + 8 + cell * 2;
    if (pointer + 2 > page.length) return;
    const payload = payloadAt(page, page.readUInt16BE(pointer), pages);
    const columns = payload && lastColumns(payload);
    if (columns) yield columns;
  }
}

/** A number of 1 to 9 bytes and where it ends; undefined beyond the buffer. */
function varint(buffer: Buffer, start: number): [value: number, end: number] | undefined {
  let value = 0;
  for (let at = start; at < start + 8; at++) {
    const byte = buffer[at];
    if (byte === undefined) return undefined;
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) return [value, at + 1];
  }
  const last = buffer[start + 8];
  return last === undefined ? undefined : [value * 256 + last, start + 9];
}

/** A row's bytes, gathered from its page and the overflow pages that follow it. */
function payloadAt(page: Buffer, cell: number, pages: PageSource): Buffer | undefined {
  const length = varint(page, cell);
  const rowid = length && varint(page, length[1]);
  if (!length || !rowid || length[0] < 65 || length[0] > pages.count * pages.size) return undefined;
  const [total] = length;
  const local = localLength(total, pages.size);
  const end = rowid[1] + local;
  if (end > page.length || !endsInSeal(page.subarray(rowid[1], end))) return undefined;
  const pieces = [page.subarray(rowid[1], end)];
  let next = local < total && end + 4 <= page.length ? page.readUInt32BE(end) : 0;
  for (let left = total - local; left > 0; ) {
    const overflow = next > 0 && next <= pages.count ? pages.read(next) : undefined;
    if (!overflow) return undefined;
    const piece = overflow.subarray(4, 4 + Math.min(left, pages.size - 4));
    pieces.push(piece);
    left -= piece.length;
    next = overflow.readUInt32BE(0);
  }
  return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
}

/** How much of a row stands in its own page, by the rule of the file format. */
function localLength(total: number, size: number): number {
  if (total <= size - 35) return total;
  const least = Math.floor(((size - 12) * 32) / 255) - 23;
  const fitting = least + ((total - least) % (size - 4));
  return fitting <= size - 35 ? fitting : least;
}

/** The types of a row's columns, from its header. */
function typesOf(payload: Buffer): { types: number[]; end: number } | undefined {
  const header = varint(payload, 0);
  if (!header || header[0] > payload.length) return undefined;
  const types: number[] = [];
  for (let at = header[1]; at < header[0]; ) {
    const type = varint(payload, at);
    if (!type) return undefined;
    types.push(type[0]);
    at = type[1];
  }
  return { types, end: header[0] };
}

function endsInSeal(beginning: Buffer): boolean {
  return typesOf(beginning)?.types.at(-1) === sealType;
}

function lastColumns(payload: Buffer): LastColumns | undefined {
  const header = typesOf(payload);
  if (!header) return undefined;
  const columns: LastColumns = [];
  let at = header.end;
  for (const type of header.types) {
    const length = lengthOf(type);
    if (at + length > payload.length) return undefined;
    columns.push(type >= 13 && type % 2 === 1 ? payload.toString('utf8', at, at + length) : undefined);
    at += length;
  }
  return columns.slice(-3);
}

function lengthOf(type: number): number {
  if (type >= 12) return Math.floor((type - 12) / 2);
  return [0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0][type] ?? 0;
}
