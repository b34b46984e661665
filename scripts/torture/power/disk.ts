import type { Random } from '../../../src/core/ports.ts';

/** One thing that a process did to the files of a directory, in the order in which it was done. */
export type DiskEvent =
  | { kind: 'create'; name: string; file: number }
  | { kind: 'write'; file: number; offset: number; bytes: Buffer }
  | { kind: 'truncate'; file: number; size: number }
  /** What was written to the file is on the disk; not its name. */
  | { kind: 'sync'; file: number }
  /** Names are on the disk. */
  | { kind: 'syncNames' }
  | { kind: 'unlink'; name: string }
  | { kind: 'rename'; name: string; to: string }
  /** What the process said; the disk has no part in it. */
  | { kind: 'said'; line: string };

/**
 * What is left of writes that were not synced. `dropped`: nothing. `reordered`: each sector has any of the states that it had
 * since the last sync. `torn`: and one is cut within; what was never synced may hold anything at its end.
 */
export const losses = ['dropped', 'reordered', 'torn'] as const;

export interface Loss {
  kind: (typeof losses)[number];
  /** Bytes that the disk writes at once. */
  sector: 512 | 4096;
}

type Change = Extract<DiskEvent, { kind: 'write' | 'truncate' }>;
type NameChange = Extract<DiskEvent, { kind: 'create' | 'unlink' | 'rename' }>;

interface DiskFile {
  synced: Buffer;
  pending: Change[];
}

/** A disk with a cache: it takes events, and tells what may be on it when the power fails at that moment. */
export class Disk {
  readonly #files = new Map<number, DiskFile>();
  readonly #syncedNames = new Map<string, number>();
  #pendingNames: NameChange[] = [];

  apply(event: DiskEvent): void {
    switch (event.kind) {
      case 'create':
      case 'unlink':
      case 'rename':
        this.#pendingNames.push(event);
        break;
      case 'syncNames':
        for (const change of this.#pendingNames) rename(this.#syncedNames, change);
        this.#pendingNames = [];
        break;
      case 'write':
      case 'truncate':
        this.#file(event.file).pending.push(event);
        break;
      case 'sync': {
        const file = this.#file(event.file);
        const content = new Content(file.synced, file.pending);
        for (const change of file.pending) content.change(change);
        file.synced = content.result();
        file.pending = [];
        break;
      }
    }
  }

  /** The files by name as the next start finds them. Names are lost from the end, as a journaling file system does it. */
  afterPowerLoss(loss: Loss, random: Random): Map<string, Buffer> {
    const names = new Map(this.#syncedNames);
    const kept = loss.kind === 'dropped' ? 0 : upTo(this.#pendingNames.length, random);
    for (const change of this.#pendingNames.slice(0, kept)) rename(names, change);
    return new Map([...names].map(([name, file]) => [name, survivor(this.#file(file), loss, random)]));
  }

  #file(number: number): DiskFile {
    const file = this.#files.get(number) ?? { synced: Buffer.alloc(0), pending: [] };
    this.#files.set(number, file);
    return file;
  }
}

function rename(names: Map<string, number>, change: NameChange): void {
  if (change.kind === 'create') names.set(change.name, change.file);
  else {
    const file = names.get(change.name);
    names.delete(change.name);
    if (change.kind === 'rename' && file !== undefined) names.set(change.to, file);
  }
}

/** A whole number from 0 to `most`, each as likely. */
function upTo(most: number, random: Random): number {
  return Math.floor(random.fraction() * (most + 1));
}

/** Bytes of a file that changes; what is added is zeros. */
class Content {
  #bytes: Buffer;
  #size: number;

  /** Begins with these bytes and has room for the changes. */
  constructor(bytes: Buffer, changes: readonly Change[]) {
    const ends = changes.map(change => (change.kind === 'write' ? change.offset + change.bytes.length : change.size));
    this.#bytes = Buffer.alloc(Math.max(bytes.length, ...ends));
    this.#size = bytes.copy(this.#bytes);
  }

  write(offset: number, bytes: Buffer): void {
    if (bytes.length === 0) return;
    bytes.copy(this.#bytes, offset);
    this.#size = Math.max(this.#size, offset + bytes.length);
  }

  truncate(size: number): void {
    if (size < this.#size) this.#bytes.fill(0, size, this.#size);
    this.#size = size;
  }

  change(change: Change): void {
    if (change.kind === 'write') this.write(change.offset, change.bytes);
    else this.truncate(change.size);
  }

  /** Where a file had not been before, a sector may hold what another file left there. */
  scribble(from: number, random: Random): void {
    if (from >= this.#size) return;
    const start = from + upTo(this.#size - from - 1, random);
    for (let at = start; at < Math.min(this.#size, start + 512); at++) this.#bytes[at] = upTo(255, random);
  }

  result(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }
}

function survivor({ synced, pending }: DiskFile, loss: Loss, random: Random): Buffer {
  if (loss.kind === 'dropped' || pending.length === 0) return synced;
  const content = new Content(synced, pending);
  // A journal keeps the order of sizes, as of names, and loses the last of them.
  let truncates = upTo(pending.filter(change => change.kind === 'truncate').length, random);
  const touching = writesBySector(pending, loss.sector);
  /** Sector → how many more of the writes to it are kept. */
  const kept = new Map([...touching].map(([sector, writes]) => [sector, upTo(writes, random)]));
  for (const change of pending) {
    if (change.kind === 'truncate') {
      if (truncates-- > 0) content.change(change);
      continue;
    }
    for (const { sector, offset, bytes } of piecesOf(change, loss.sector)) {
      const more = kept.get(sector) ?? 0;
      kept.set(sector, more - 1);
      if (more > 0) content.write(offset, bytes);
      // The first bytes of the next write are new, the rest is as it was.
      else if (more === 0 && loss.kind === 'torn') content.write(offset, bytes.subarray(0, upTo(bytes.length, random)));
    }
  }
  if (loss.kind === 'torn' && random.fraction() < 0.3) content.scribble(synced.length, random);
  return content.result();
}

interface Piece {
  sector: number;
  offset: number;
  bytes: Buffer;
}

/** A write as the disk does it: sector by sector. */
function* piecesOf({ offset, bytes }: Extract<Change, { kind: 'write' }>, size: number): Generator<Piece> {
  for (let at = 0; at < bytes.length; ) {
    const sector = Math.floor((offset + at) / size);
    const end = Math.min(bytes.length, (sector + 1) * size - offset);
    yield { sector, offset: offset + at, bytes: bytes.subarray(at, end) };
    at = end;
  }
}

function writesBySector(changes: readonly Change[], size: number): Map<number, number> {
  const counts = new Map<number, number>();
  for (const change of changes) {
    if (change.kind !== 'write') continue;
    for (const { sector } of piecesOf(change, size)) counts.set(sector, (counts.get(sector) ?? 0) + 1);
  }
  return counts;
}
