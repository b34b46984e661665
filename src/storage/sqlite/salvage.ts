import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { ExchangeId, JobId, ThreadId } from '../../core/ids.ts';
import { blobsOfTurns, type ExchangeStatus } from '../../core/thread.ts';
import {
  type HeadState,
  keyOf,
  type Origin,
  openRecord,
  type RecordOf,
  type StoredRecord,
  sealBlob,
  splitHead,
} from '../records.ts';
import { sqliteSpend } from './spend.ts';
import { type SqliteRows, sqliteJobs, sqliteRows, threadNumber } from './tables.ts';

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

type PageSource = ReturnType<typeof pageSource>;

function pageSource(handle: number, file: string) {
  const bytes = fstatSync(handle).size;
  const size = pageSizeOf(handle);
  const wal = existsSync(`${file}-wal`) ? readFileSync(`${file}-wal`) : Buffer.alloc(0);
  const newer = committedFrames(wal, size);
  return {
    size,
    count: Math.max(Math.ceil(bytes / size), ...newer.keys()),
    read(number: number): Buffer | undefined {
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
  const pageSize = header.readUInt16BE(16);
  const size = pageSize === 1 ? 65_536 : pageSize;
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

/** Life of a thread whose own record of it is lost. */
const lifeWithoutHeadMs = 720 * 3_600_000;

/** A page that was freed may still hold an older state of a row; the one furthest on is the true one. */
const statusRank: Record<ExchangeStatus, number> = { pending: 0, interrupted: 1, failed: 2, done: 3 };

/** What is left of one thread. */
interface Remains {
  origin?: Origin;
  head?: HeadState;
  seqs: Set<number>;
  /** The newest time in its turns. */
  lastTime: number;
  exchanges: Map<string, RecordOf<'exchange'>>;
  compactions: Map<string, RecordOf<'compaction'>>;
  workflows: Map<string, RecordOf<'workflow'>>;
}

interface Found {
  threads: Map<ThreadId, Remains>;
  tombstones: Map<ThreadId, RecordOf<'tombstone'>>;
  jobs: Map<JobId, RecordOf<'job'>>;
  spend: Map<string, RecordOf<'spend'>>;
}

/**
 * Copies every thread that can be proved intact from a damaged file into a new database. A thread that lost a turn keeps
 * the turns before it. Answers what was saved and what was not, as sentences.
 */
export function sqliteSalvage(file: string, fresh: DatabaseSync, now: number): string {
  const found = collect(file);
  fresh.exec('BEGIN IMMEDIATE');
  const rows = sqliteRows(fresh);
  const kept = new Map<ThreadId, Kept>();
  let lost = 0;
  for (const [id, remains] of found.threads) {
    if (found.tombstones.has(id)) continue;
    const thread = keep(rows, remains, now);
    if (thread) kept.set(id, thread);
    else lost++;
  }
  copyTurns(file, rows, kept);
  for (const thread of kept.values()) finish(rows, thread);
  for (const tombstone of found.tombstones.values()) rows.tombstone(tombstone);
  const { createJob } = sqliteJobs(fresh);
  for (const { job } of found.jobs.values()) {
    if (job.thread === undefined || !found.tombstones.has(job.thread)) createJob(job);
  }
  const { putSpend } = sqliteSpend(fresh);
  for (const { row } of found.spend.values()) putSpend(row);
  fresh.exec('DELETE FROM blobs WHERE sha NOT IN (SELECT sha FROM blob_refs)');
  fresh.exec('COMMIT');
  return report([...kept.values()], lost);
}

function collect(file: string): Found {
  const found: Found = { threads: new Map(), tombstones: new Map(), jobs: new Map(), spend: new Map() };
  for (const record of recordsOf(file)) {
    if (record.kind === 'tombstone') found.tombstones.set(record.id, record);
    else if (record.kind === 'job') addJob(found, record);
    else if (record.kind === 'spend') addSpend(found, record);
    else addRemains(found, record);
  }
  return found;
}

function* recordsOf(file: string): Generator<StoredRecord> {
  for (const columns of sqlitePages(file)) {
    const [body, seal] = columns.slice(-2);
    const record = body !== undefined && seal !== undefined ? openRecord(body, seal) : undefined;
    if (record) yield record;
  }
}

/** A job ends once: of two states of it, the one that is not running is the later. */
function addJob({ jobs }: Found, record: RecordOf<'job'>): void {
  const other = jobs.get(record.job.id);
  if (!other || other.job.status === 'running') jobs.set(record.job.id, record);
}

/** Sums only grow: of two states of a row, the one with more calls is the later. */
function addSpend({ spend }: Found, record: RecordOf<'spend'>): void {
  const key = keyOf(record.row);
  if (record.row.calls > (spend.get(key)?.row.calls ?? 0)) spend.set(key, record);
}

function addRemains({ threads }: Found, record: Exclude<StoredRecord, { kind: 'tombstone' | 'job' | 'spend' }>): void {
  const id = record.kind === 'origin' ? record.origin.id : record.kind === 'head' ? record.head.id : record.thread;
  const remains = threads.get(id) ?? nothing();
  threads.set(id, remains);
  switch (record.kind) {
    case 'origin':
      remains.origin = record.origin;
      break;
    case 'head':
      if (!remains.head || isLater(record.head, remains.head)) remains.head = record.head;
      break;
    case 'turn':
      remains.seqs.add(record.turn.seq);
      remains.lastTime = Math.max(remains.lastTime, record.turn.timestamp);
      break;
    case 'exchange':
      if (statusRank[record.status] >= statusRank[remains.exchanges.get(record.id)?.status ?? 'pending']) {
        remains.exchanges.set(record.id, record);
      }
      break;
    case 'compaction':
      remains.compactions.set(JSON.stringify(record.compaction), record);
      break;
    case 'workflow':
      if (record.seq >= (remains.workflows.get(record.tool)?.seq ?? 0)) remains.workflows.set(record.tool, record);
      break;
  }
}

function nothing(): Remains {
  return { seqs: new Set(), lastTime: 0, exchanges: new Map(), compactions: new Map(), workflows: new Map() };
}

function isLater(head: HeadState, than: HeadState): boolean {
  return head.seq > than.seq || (head.seq === than.seq && head.updatedAt > than.updatedAt);
}

/** A thread that has a place in the new file and waits for its turns. */
interface Kept {
  n: number;
  /** Ends with the last turn before the first one that is lost. */
  head: HeadState;
  remains: Remains;
  whole: boolean;
  pending: Set<number>;
  blobs: Set<string>;
  /** How exchanges ended, judged by their turns: for those whose own record is lost. */
  guesses: Map<ExchangeId, ExchangeStatus>;
}

/** Undefined when too little is left: nobody knows whose thread it was, or nothing of it is there. */
function keep(rows: SqliteRows, remains: Remains, now: number): Kept | undefined {
  const { seqs, lastTime } = remains;
  const origin = remains.origin ?? (remains.head && originOf(remains.head));
  if (!origin) return undefined;
  let seq = origin.startSeq;
  while (seqs.has(seq + 1)) seq++;
  if (!remains.head && seq === origin.startSeq) return undefined;
  const { initialContext: _context, ...known } = origin;
  const unknown = { totals: { tokens: 0, costUsd: 0 }, updatedAt: lastTime, expiresAt: now + lifeWithoutHeadMs };
  const head = { ...(remains.head ?? { ...known, ...unknown, title: origin.toolName }), seq };
  const n = threadNumber(head.id);
  rows.append(n, { kind: 'origin', origin });
  const whole = remains.origin !== undefined && remains.head !== undefined && seq >= remains.head.seq;
  const pending = new Set([...seqs].filter(each => each > origin.startSeq && each <= seq));
  return { n, head, remains, whole, pending, blobs: new Set(), guesses: new Map() };
}

function originOf({ startSeq, ...head }: HeadState): Origin {
  return { ...splitHead({ ...head, initialContext: {} })[0], startSeq };
}

function copyTurns(file: string, rows: SqliteRows, kept: ReadonlyMap<ThreadId, Kept>): void {
  for (const [key, body, seal] of sqlitePages(file)) {
    if (body === undefined || seal === undefined) continue;
    if (key !== undefined && sealBlob(key, body) === seal) {
      rows.blob(key, body);
      continue;
    }
    const record = openRecord(body, seal);
    if (record?.kind !== 'turn') continue;
    const thread = kept.get(record.thread);
    if (!thread?.pending.delete(record.turn.seq)) continue;
    rows.append(thread.n, record);
    for (const sha of blobsOfTurns([record.turn])) thread.blobs.add(sha);
    const { exchange, role } = record.turn;
    if (role === 'assistant') thread.guesses.set(exchange, 'done');
    else if (!thread.guesses.has(exchange)) thread.guesses.set(exchange, 'interrupted');
  }
}

function finish(rows: SqliteRows, { n, head, remains, whole, blobs, guesses }: Kept): void {
  for (const [id, guess] of guesses) {
    rows.append(n, remains.exchanges.get(id) ?? { kind: 'exchange', thread: head.id, id, status: guess });
  }
  for (const sha of blobs) rows.reference(n, sha);
  for (const record of remains.compactions.values()) {
    if (record.compaction.upToSeq <= head.seq) rows.append(n, record);
  }
  rows.head(n, head);
  // The steps of a workflow rest on turns; where some are lost, it begins again.
  if (!whole) return;
  for (const { tool, seq: at, state } of remains.workflows.values()) rows.workflow(n, head.id, tool, at, state);
}

function report(kept: readonly Kept[], lost: number): string {
  const cut = kept.filter(thread => !thread.whole);
  const parts = [`${kept.length - cut.length} threads were kept whole.`];
  if (cut.length > 0) {
    const names = cut.slice(0, 5).map(({ head }) => `${head.id} up to turn ${head.seq}`);
    parts.push(`${cut.length} were kept in part: ${names.join(', ')}${cut.length > 5 ? ', …' : ''}.`);
  }
  if (lost > 0) parts.push(`${lost} could not be kept.`);
  return parts.join(' ');
}
