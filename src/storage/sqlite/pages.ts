import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';

const pageSize = 4096;

const walHeader = 32;

const frameHeader = 24;

/** Twice the characters of the longest text that SQLite takes. */
const maxText = 2 ** 31;

/** How the text of every record begins. */
const recordBegin = '{"kind":"';

/** Columns before the text of a record take fewer bytes. */
const maxColumns = 500;

/** The serial type of a text of 64 bytes: the seal, which is the last column of every row worth reading. */
const sealType = Buffer.from([0x81, 0x0d]);

/** A text with its seal, and its key where it has one. Whether they belong together is for the reader to prove. */
export interface SealedRow {
  key: string;
  body: string;
  seal: string;
  /** From the newest state of a page, not from one that the log replaced. */
  isNewest: boolean;
}

/**
 * Reads the rows of a damaged file without SQLite, by the headers of the rows alone, whatever the schema, the header of the
 * file and those of the pages say. Pages of the `-wal` file, up to its last complete transaction, come before those of the
 * file, and newer ones before older ones. What was deleted may be among them.
 */
export function* sqlitePages(file: string): Generator<SealedRow> {
  const handle = openSync(file, 'r');
  try {
    const pages = pageSource(handle, file);
    for (const [page, isNewest] of pages.all()) yield* rowsWithin(page, isNewest, pages);
  } finally {
    closeSync(handle);
  }
}

type PageSource = ReturnType<typeof pageSource>;

function pageSource(handle: number, file: string) {
  const { frames } = latestRound(logOf(file));
  const newest = new Map(frames);
  const inFile = Math.ceil(fstatSync(handle).size / pageSize);

  // A page that was cut off at the end of the file reads as zeros from there.
  function stored(number: number): Buffer | undefined {
    const page = Buffer.alloc(pageSize);
    return readSync(handle, page, 0, pageSize, (number - 1) * pageSize) > 0 ? page : undefined;
  }

  return {
    read: (number: number) => newest.get(number) ?? stored(number),
    *all(): Generator<[page: Buffer, isNewest: boolean]> {
      for (const [number, page] of frames.toReversed()) yield [page, newest.get(number) === page];
      for (let number = 1; number <= inFile; number++) {
        const page = stored(number);
        if (page) yield [page, !newest.has(number)];
      }
    },
  };
}

const logOf = (file: string): Buffer => (existsSync(`${file}-wal`) ? readFileSync(`${file}-wal`) : Buffer.alloc(0));

interface Log {
  /** The pages by their numbers, oldest first, up to the last complete transaction. */
  frames: [number: number, page: Buffer][];
  /** How many frames stand up to the end of each transaction. */
  ends: number[];
}

/**
 * The latest round of the log: frames are written in order, so that what stands before the end of a transaction belongs to
 * the round. A header that is whole says which round that is: what is left of others is in the file since before it was written.
 */
function latestRound(wal: Buffer): Log {
  const [own, first] = [16, walHeader + 8].map(at => roundOf(wal, wal.subarray(at, at + 8)));
  const isOwn = isWholeHeader(wal) || !first || (own?.frames.length ?? 0) >= first.frames.length;
  return (isOwn ? own : first) ?? { frames: [], ends: [] };
}

/** By the checksum of SQLite's, whose words are in the byte order that the first of them says. */
function isWholeHeader(wal: Buffer): boolean {
  if (wal.length < walHeader) return false;
  const isBig = (wal.readUInt32BE(0) & 1) === 1;
  const word = (at: number) => (isBig ? wal.readUInt32BE(at) : wal.readUInt32LE(at));
  let [a, b] = [0, 0];
  for (let at = 0; at < 24; at += 8) {
    a = (a + word(at) + b) >>> 0;
    b = (b + word(at + 4) + a) >>> 0;
  }
  return a === wal.readUInt32BE(24) && b === wal.readUInt32BE(28);
}

function roundOf(wal: Buffer, salts: Buffer): Log {
  const frames: Log['frames'] = [];
  const ends: number[] = [];
  for (let at = walHeader; at + frameHeader + pageSize <= wal.length; at += frameHeader + pageSize) {
    frames.push([wal.readUInt32BE(at), wal.subarray(at + frameHeader, at + frameHeader + pageSize)]);
    if (wal.subarray(at + 8, at + 16).equals(salts) && wal.readUInt32BE(at + 4) !== 0) ends.push(frames.length);
  }
  return { frames: frames.slice(0, ends.at(-1) ?? 0), ends };
}

/**
 * Looks at the log of a file, and then tells whether it holds transactions that SQLite, which can read `read` frames of it,
 * leaves out. The last one may be what a power loss left of it, and those of an earlier round are in the file by then.
 */
export function logReader(file: string): { frames: number; leavesOut(read: number): boolean } {
  const wal = logOf(file);
  const { frames, ends } = latestRound(wal);
  return {
    frames: frames.length,
    leavesOut(read) {
      if ((ends.at(-2) ?? 0) <= read) return false;
      const handle = openSync(file, 'r');
      try {
        const page = Buffer.alloc(pageSize);
        const isInFile = ([number, own]: [number, Buffer]) =>
          readSync(handle, page, 0, pageSize, (number - 1) * pageSize) === pageSize && page.equals(own);
        const isMoved = [...new Map(frames)].every(isInFile);
        // Whoever began the log anew meanwhile had moved all of it into the file before.
        return !isMoved && logOf(file).subarray(0, walHeader).equals(wal.subarray(0, walHeader));
      } finally {
        closeSync(handle);
      }
    },
  };
}

function* rowsWithin(page: Buffer, isNewest: boolean, pages: PageSource): Generator<SealedRow> {
  for (let at = page.indexOf(sealType); at !== -1; at = page.indexOf(sealType, at + 1)) {
    const length = textLengthBefore(page, at);
    if (length === undefined) continue;
    const start = at + sealType.length;
    const record = page.subarray(0, start + maxColumns).indexOf(recordBegin, start);
    for (const begin of record === -1 ? [start + 64] : [record, start + 64]) {
      const text = textAt(page, begin, length + 64, pages);
      if (!text) continue;
      const body = text.toString('utf8', 0, length);
      yield { key: page.toString('latin1', begin - 64, begin), body, seal: text.toString('latin1', length), isNewest };
    }
  }
}

/**
 * The length of the text whose serial type ends before `at`. In UTF-8 the byte at `at` never follows one below 128, so that
 * no stored text can pass for the header of a row; a page that continues a text begins with four bytes of another kind.
 */
function textLengthBefore(page: Buffer, at: number): number | undefined {
  let type = page[at - 1] ?? 128;
  if (type >= 128 || at < 8) return undefined;
  for (let [byte, unit] = [at - 2, 128]; (page[byte] ?? 0) >= 128; byte--, unit *= 128)
    type += ((page[byte] ?? 0) - 128) * unit;
  return type >= 13 && type < maxText ? (type - 13) >> 1 : undefined;
}

/** A text that may go on in overflow pages: it has no zero byte, and the number of the next page begins with one. */
function textAt(page: Buffer, begin: number, length: number, pages: PageSource): Buffer | undefined {
  const local = page.subarray(begin, begin + length);
  const end = local.indexOf(0);
  if (end === -1) return local.length === length ? local : undefined;
  const pieces = [local.subarray(0, end)];
  let next = begin + end + 4 <= page.length ? page.readUInt32BE(begin + end) : 0;
  for (let left = length - end; left > 0; left -= page.length - 4) {
    const overflow = next > 0 ? pages.read(next) : undefined;
    if (!overflow) return undefined;
    pieces.push(overflow.subarray(4, 4 + left));
    next = overflow.readUInt32BE(0);
  }
  return Buffer.concat(pieces);
}
