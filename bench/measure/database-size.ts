import { closeSync, openSync, readSync, statSync } from 'node:fs';

const pageBytes = 4096;
const frameHeaderBytes = 24;
/** Where SQLite's index of the write-ahead log counts its transactions, its valid frames, and the pages of the database. */
const indexFields = { commits: 8, frames: 16, pages: 20 } as const;

export interface DatabaseSize {
  /** Of the database as a reader sees it, log included. */
  bytes: number;
  frames: number;
  /** Transactions since the index was made. */
  commits: number;
}

/** Read from the index of the log, so that measuring takes no lock and opens no connection. Zero before the file is there. */
export function databaseSize(file: string): DatabaseSize {
  const index = `${file}-shm`;
  if (!statSync(index, { throwIfNoEntry: false })) return { bytes: 0, frames: 0, commits: 0 };
  const header = Buffer.alloc(24);
  const handle = openSync(index, 'r');
  try {
    readSync(handle, header, 0, header.length, 0);
  } finally {
    closeSync(handle);
  }
  return {
    bytes: field(header, indexFields.pages) * pageBytes,
    frames: field(header, indexFields.frames),
    commits: field(header, indexFields.commits),
  };
}

/** In the machine's own byte order. */
function field(header: Buffer, offset: number): number {
  return new DataView(header.buffer, header.byteOffset).getUint32(offset, littleEndian);
}

const littleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** What was written into the log; a little less than that where the log began anew in between. */
export function walBytesBetween(before: DatabaseSize, after: DatabaseSize): number {
  const frames = after.frames >= before.frames ? after.frames - before.frames : after.frames;
  return frames * (pageBytes + frameHeaderBytes);
}
