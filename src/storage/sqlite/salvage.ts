import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { type ExchangeId, exchangeId, isThreadId, type JobId, type ThreadId, threadId } from '../../core/ids.ts';
import { blobsOfTurns, damagedTool, type ExchangeStatus, type Turn } from '../../core/thread.ts';
import type { HeadState, Origin, RecordOf, StoredRecord } from '../records.ts';
import { keyOf, openRecord, sealBlob, splitHead, threadOf } from '../records.ts';
import { type SealedRow, sqlitePages } from './pages.ts';
import { sqliteSpend } from './spend.ts';
import { type SqliteRows, sqliteJobs, sqliteRows, threadNumber } from './tables.ts';

/** Life of a thread whose own record of it is lost, or as long as that of others: what expired may still stand in free pages. */
const lifeWithoutHeadMs = 720 * 3_600_000;

/** A page that was freed may still hold an older state of a row; the one furthest on is the true one. */
const statusRank: Record<ExchangeStatus, number> = { pending: 0, interrupted: 1, failed: 2, done: 3 };

const noTexts = { content: '', files: [], images: [], citations: [] };

/** What is left of one thread. */
interface Remains {
  origin?: Origin;
  head?: HeadState;
  /** Its intact turns, by their numbers, without their texts. */
  turns: Map<number, Turn>;
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

/** Copies all that is provably intact into a new database, with a note for each lost turn. Answers what was saved, as sentences. */
export function sqliteSalvage(file: string, fresh: DatabaseSync, aside: string): string {
  const found = collect(file);
  fresh.exec('BEGIN IMMEDIATE');
  const rows = sqliteRows(fresh);
  const kept = new Map<ThreadId, Kept>();
  let lost = 0;
  const lives = [...found.threads.values()].map(({ head }) => (head ? head.expiresAt - head.updatedAt : 0));
  const lifeMs = lives.reduce((longest, life) => Math.max(longest, life), lifeWithoutHeadMs);
  for (const [id, remains] of found.threads) {
    if (found.tombstones.has(id)) continue;
    const thread = keep(rows, remains.origin ?? originOf(id, remains, found), remains, lifeMs);
    if (thread) kept.set(id, thread);
    else lost++;
  }
  copyTurns(file, rows, kept);
  for (const thread of kept.values()) finish(rows, thread, aside);
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

/** Whether a file whose header says nothing, or something else, holds records of ours. */
export const isOurs = (file: string): boolean => existsSync(file) && recordsOf(file).next().done !== true;

/** What is read of older states of pages, too: it is never changed, or tells by itself which state is the later. */
const lasting = new Set<StoredRecord['kind']>(['origin', 'head', 'turn', 'exchange', 'compaction']);

function* recordsOf(file: string): Generator<StoredRecord> {
  for (const row of sqlitePages(file)) {
    const record = recordIn(row);
    if (record) yield record;
  }
}

function recordIn({ body, seal, isNewest }: SealedRow): StoredRecord | undefined {
  const record = openRecord(body, seal) ?? brokenTombstone(body);
  return isNewest || (record && lasting.has(record.kind)) ? record : undefined;
}

/** What was deleted stays so, also where the note of it is damaged elsewhere than in its id. */
function brokenTombstone(body: string): RecordOf<'tombstone'> | undefined {
  const [, id, at] = /^\{"kind":"tombstone","id":"([-0-9a-f]{36})".*"at":(\d{1,15})\}$/.exec(body) ?? [];
  if (id === undefined || !isThreadId(id)) return undefined;
  return { kind: 'tombstone', id, state: 'deleted', at: Number(at) };
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
  const id = threadId(threadOf(record));
  const nothing = { turns: new Map(), exchanges: new Map(), compactions: new Map(), workflows: new Map() };
  const remains: Remains = threads.get(id) ?? nothing;
  threads.set(id, remains);
  switch (record.kind) {
    case 'origin':
      remains.origin ??= record.origin;
      break;
    case 'head':
      if (!remains.head || isLater(record.head, remains.head)) remains.head = record.head;
      break;
    case 'turn':
      if (!remains.turns.has(record.turn.seq)) remains.turns.set(record.turn.seq, { ...record.turn, ...noTexts });
      break;
    case 'exchange':
      if (statusRank[record.status] >= statusRank[remains.exchanges.get(record.id)?.status ?? 'pending'])
        remains.exchanges.set(record.id, record);
      break;
    case 'compaction':
      remains.compactions.set(JSON.stringify(record.compaction), record);
      break;
    case 'workflow':
      if (record.seq >= (remains.workflows.get(record.tool)?.seq ?? 0)) remains.workflows.set(record.tool, record);
      break;
  }
}

const isLater = (head: HeadState, than: HeadState): boolean =>
  head.seq > than.seq || (head.seq === than.seq && head.updatedAt > than.updatedAt);

/** A thread that has a place in the new file and waits for its turns. */
interface Kept {
  n: number;
  head: HeadState;
  remains: Remains;
  /** Turns that are lost. */
  lost: number[];
  pending: Set<number>;
  blobs: Set<string>;
  /** How exchanges ended, judged by their turns: for those whose own record is lost. */
  guesses: Map<ExchangeId, ExchangeStatus>;
}

/** Undefined when too little is left: nobody knows whose thread it was. */
function keep(rows: SqliteRows, origin: Origin | undefined, remains: Remains, lifeMs: number): Kept | undefined {
  if (!origin) return undefined;
  const { turns } = remains;
  const { initialContext: _context, ...known } = origin;
  const newest = Math.max(origin.startSeq, ...turns.keys());
  const updatedAt = turns.get(newest)?.timestamp ?? origin.createdAt;
  const unknown = { totals: { tokens: 0, costUsd: 0 }, updatedAt, expiresAt: updatedAt + lifeMs };
  // Without the head nobody knows whether turns came after the newest one that is left.
  const seq = Math.max(newest, remains.head?.seq ?? newest + 1);
  const head = { ...(remains.head ?? { ...known, ...unknown, title: origin.toolName }), seq };
  const n = threadNumber(head.id);
  rows.append(n, { kind: 'origin', origin });
  const own = Array.from({ length: seq - origin.startSeq }, (_, index) => origin.startSeq + 1 + index);
  const lost = own.filter(each => !turns.has(each));
  const pending = new Set(own.filter(each => turns.has(each)));
  return { n, head, remains, lost, pending, blobs: new Set(), guesses: new Map() };
}

/** The beginning of a thread without its record: by its head, or in a file that is all of one owner by its first turn. */
function originOf(id: ThreadId, { head, turns }: Remains, { threads }: Found): Origin | undefined {
  if (head) {
    const { startSeq, ...rest } = head;
    return { ...splitHead({ ...rest, initialContext: {} })[0], startSeq };
  }
  const known = [...threads.values()].flatMap(each => each.head ?? each.origin ?? []);
  const [owner, another] = new Set(known.map(each => each.owner));
  const [workspace, second] = new Set(known.map(each => each.workspace));
  const [first] = turns.values();
  if (owner === undefined || workspace === undefined || another !== undefined || !first) return undefined;
  const { timestamp: createdAt, toolName } = first;
  return {
    id,
    owner,
    workspace: second === undefined ? workspace : '/',
    toolName,
    createdAt,
    initialContext: {},
    startSeq: 0,
  };
}

function copyTurns(file: string, rows: SqliteRows, kept: ReadonlyMap<ThreadId, Kept>): void {
  for (const row of sqlitePages(file)) {
    if (sealBlob(row.key, row.body) === row.seal) rows.blob(row.key, row.body);
    const record = recordIn(row);
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

function finish(rows: SqliteRows, kept: Kept, aside: string): void {
  const { n, head, remains, lost, blobs, guesses } = kept;
  for (const turn of substitutes(kept, aside)) {
    rows.append(n, { kind: 'turn', thread: head.id, turn });
    if (!guesses.has(turn.exchange)) guesses.set(turn.exchange, 'done');
  }
  for (const [id, guess] of guesses)
    rows.append(n, remains.exchanges.get(id) ?? { kind: 'exchange', thread: head.id, id, status: guess });
  for (const sha of blobs) rows.reference(n, sha);
  for (const record of remains.compactions.values()) {
    if (record.compaction.upToSeq <= head.seq) rows.append(n, record);
  }
  rows.head(n, head);
  // The steps of a workflow rest on turns; where some are lost, it begins again.
  if (!remains.origin || lost.length > 0) return;
  for (const { tool, seq: at, state } of remains.workflows.values()) rows.workflow(n, head.id, tool, at, state);
}

/** What stands where turns are lost: each belongs to the exchange of its neighbor, as question or as answer. */
function* substitutes({ head: { id, createdAt }, lost, remains: { head, turns } }: Kept, aside: string) {
  for (const seq of lost) {
    const [before, after] = [turns.get(seq - 1), turns.get(seq + 1)];
    const isAnswer = before?.role === 'user';
    const digits = hash('sha256', `${id} ${seq}`);
    const own = exchangeId(
      `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-8${digits.slice(17, 20)}-${digits.slice(20, 32)}`,
    );
    const exchange = isAnswer ? before.exchange : after?.role === 'assistant' ? after.exchange : own;
    const what = head ? `Turn ${seq} of this thread was` : `What followed turn ${seq - 1} of this thread may have been`;
    const turn: Turn = {
      ...noTexts,
      seq,
      role: isAnswer ? 'assistant' : 'user',
      content: `[${what} damaged on the disk and is lost. The damaged file is kept as ${aside}.]`,
      timestamp: before?.timestamp ?? after?.timestamp ?? createdAt,
      exchange,
      toolName: damagedTool,
      tokens: 50,
    };
    turns.set(seq, turn);
    yield turn;
  }
}

/** Threads that the report names. */
const named = 20;

function report(kept: readonly Kept[], gone: number): string {
  const parts = [`${kept.filter(({ lost }) => lost.length === 0).length} threads were kept whole.`];
  const cut = kept.filter(({ lost }) => lost.length > 0);
  if (cut.length > 0) {
    const names = cut.slice(0, named).map(({ head, lost }) => `${head.id} without turn ${lost.join(', ')}`);
    parts.push(`${cut.length} were kept in part: ${names.join('; ')}${cut.length > named ? '; …' : ''}.`);
  }
  if (gone > 0) parts.push(`${gone} could not be kept.`);
  return parts.join(' ');
}
