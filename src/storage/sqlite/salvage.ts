import type { DatabaseSync } from 'node:sqlite';
import type { ExchangeId, JobId, ThreadId } from '../../core/ids.ts';
import type { ExchangeStatus } from '../../core/thread.ts';
import { keyOf } from '../../memory/stores/spend-sum.ts';
import { sqliteJobs } from '../../memory/stores/sqlite-jobs.ts';
import { sqlitePages } from '../../memory/stores/sqlite-pages.ts';
import { blobsOfTurns } from '../../memory/stores/thread-change.ts';
import { type HeadState, type Origin, openRecord, type RecordOf, type StoredRecord, sealBlob } from '../records.ts';
import { sqliteSpend } from './spend.ts';
import { type SqliteRows, sqliteRows } from './tables.ts';

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
  const origin = remains.origin ?? (remains.head && { ...identity(remains.head), initialContext: {} });
  if (!origin) return undefined;
  let seq = origin.startSeq;
  while (seqs.has(seq + 1)) seq++;
  if (!remains.head && seq === origin.startSeq) return undefined;
  const { initialContext: _context, ...known } = origin;
  const unknown = { totals: { tokens: 0, costUsd: 0 }, updatedAt: lastTime, expiresAt: now + lifeWithoutHeadMs };
  const head = { ...(remains.head ?? { ...known, ...unknown, title: origin.toolName }), seq };
  const n = rows.thread(origin, head);
  const whole = remains.origin !== undefined && remains.head !== undefined && seq >= remains.head.seq;
  const pending = new Set([...seqs].filter(each => each > origin.startSeq && each <= seq));
  return { n, head, remains, whole, pending, blobs: new Set(), guesses: new Map() };
}

function identity({
  id,
  parent,
  owner,
  workspace,
  toolName,
  createdAt,
  startSeq,
}: HeadState): Omit<Origin, 'initialContext'> {
  return { id, parent, owner, workspace, toolName, createdAt, startSeq };
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
    rows.turn(thread.n, record.thread, record.turn);
    for (const sha of blobsOfTurns([record.turn])) thread.blobs.add(sha);
    const { exchange, role } = record.turn;
    if (role === 'assistant') thread.guesses.set(exchange, 'done');
    else if (!thread.guesses.has(exchange)) thread.guesses.set(exchange, 'interrupted');
  }
}

function finish(rows: SqliteRows, { n, head, remains, whole, blobs, guesses }: Kept): void {
  for (const [id, guess] of guesses) rows.exchange(n, head, id, remains.exchanges.get(id)?.status ?? guess);
  for (const sha of blobs) rows.reference(n, sha);
  for (const record of remains.compactions.values()) {
    if (record.compaction.upToSeq <= head.seq) rows.compaction(n, record);
  }
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
