import type { RecentEvent, WatchedCall } from '../../core/ports.ts';
import { type AttemptRecord, cursorBehind, pageBehind, type StoredTurn, type Thread } from '../../core/thread.ts';
import { type CallRow, callTable, outcomes, rowOf } from './calls-page.ts';
import type { ThreadsData } from './data.ts';
import { empty, filterForm, filterIn, html, type Markup, pager } from './html.ts';
import type { Page, Visit } from './page.ts';
import { lastPart } from './thread-page.ts';

const perPage = 30;

/** Threads of which one page shows the calls. */
const threadsPerPage = 10;

/** All calls of this process that are kept, a page at a time, then older ones as they are in threads. */
export async function allCallsPage(visit: Visit): Promise<Page> {
  const { url, own, now } = visit;
  const kept = own.calls.list().map(call => rowOf(call, now));
  const wanted = wantedOf(url);
  const page = Math.max(1, Math.floor(Number(url.searchParams.get('page'))) || 1);
  const isOlder = kept.length === 0 || url.searchParams.has('before');
  const found = kept.filter(row => wanted(row));
  const isLast = found.length <= page * perPage;
  const oldest = { before: String(now + 1) };
  const shown = isOlder
    ? own.threads && (await older(own.threads, visit, kept))
    : {
        rows: found.slice((page - 1) * perPage, page * perPage),
        next: isLast ? own.threads && oldest : { page: String(page + 1) },
      };
  const { rows = [], next } = shown ?? {};
  const heading = isOlder ? 'Older calls, from the threads' : 'Calls of this process';
  return {
    title: 'Calls',
    place: '/calls',
    body: html`<h1>Calls</h1><p class="lede">The newest 500 calls of this process with all their events, then those that threads hold.</p>
${form(url, kept)}
<section aria-labelledby="found"><h2 id="found">${heading}</h2>${rows.length > 0 ? callTable(heading, rows) : empty('No matching calls', next && 'Older calls may match.')}${pager(url, next)}</section>`,
  };
}

function form(url: URL, kept: readonly CallRow[]): Markup {
  const unique = (of: (row: CallRow) => readonly string[]) => [...new Set(kept.flatMap(of))].sort();
  return filterForm(url, 'Words of the question', [
    { name: 'tool', words: unique(({ tool }) => [tool]) },
    { name: 'model', words: unique(({ facts }) => facts.models) },
    { name: 'project', words: unique(({ about }) => (about ? [lastPart(about.workspace)] : [])) },
    { name: 'outcome', choices: outcomes },
  ]);
}

/** Whether a call is one that the address asks for; `text`: more than its question to look for words in. */
function wantedOf(url: URL): (row: CallRow, text?: string) => boolean {
  const [tool, model, project, outcome, q] = ['tool', 'model', 'project', 'outcome', 'q'].map(name =>
    filterIn(url, name).trim().toLowerCase(),
  );
  const words = (q ?? '').split(/\s+/);
  const has = (text: string, part = '') => text.toLowerCase().includes(part);
  return ({ tool: name, facts, about }, text = '') =>
    has(name, tool) &&
    has(facts.models.join(' '), model) &&
    has(about?.workspace ?? '', project) &&
    (outcome === '' || facts.outcome === outcome) &&
    words.every(word => has(`${about?.text ?? ''} ${facts.why ?? ''} ${text}`, word));
}

/** Pages without a match that are passed over in one request. */
const maxRounds = 20;

/** Exchanges of the threads behind a cursor, the newest first, but for those of calls that are kept and were shown before. */
async function older(threads: ThreadsData, { url, now }: Visit, kept: readonly CallRow[]) {
  const wanted = wantedOf(url);
  const text = filterIn(url, 'q').trim();
  const isKept = ({ startedAt: at, about }: CallRow) => {
    const ofThread = kept.filter(call => call.about?.thread === about?.thread);
    return ofThread.some(({ startedAt, facts }) => at >= startedAt && at <= startedAt + facts.tookMs);
  };
  let before = url.searchParams.get('before');
  for (let round = 1; ; round++) {
    const query = { limit: threadsPerPage, ...pageBehind(before ?? '') };
    const heads =
      text === '' ? await threads.list(query) : (await threads.search({ ...query, text })).map(({ thread }) => thread);
    // One that is deleted meanwhile is left out.
    const found = await Promise.all(heads.map(({ id }) => threads.read(id).catch(() => undefined)));
    const rows = found
      .flatMap(thread => (thread ? exchangesOf(thread) : []))
      .map(call => ({ row: rowOf(call, now), answer: call.answer }))
      .filter(({ row, answer }) => wanted(row, answer) && !isKept(row))
      .map(({ row }) => row)
      .sort((a, b) => b.startedAt - a.startedAt);
    const last = heads.length === threadsPerPage ? heads.at(-1) : undefined;
    if (!last) return { rows, next: undefined };
    before = cursorBehind(last);
    if (rows.length > 0 || round === maxRounds) return { rows, next: { before } };
  }
}

/** What a thread knows of its calls: one for each exchange, with the attempts that it took. */
export function exchangesOf({ id, owner, workspace, turns, parent }: Thread): (WatchedCall & { answer: string })[] {
  // What a fork begins with is its parent's.
  const ofThis = turns.filter(({ seq }) => seq > (parent?.seq ?? 0));
  return [...Map.groupBy(ofThis, ({ exchange }) => exchange).values()].flatMap(own => {
    const [first] = own;
    const last = own.at(-1);
    if (!first || !last) return [];
    const { toolName: tool, timestamp: startedAt, status, exchange } = first;
    const attempts = first.attempts ?? attemptIn(last);
    const about = { text: first.content, workspace, thread: id, seq: first.seq - 1 };
    const endedAt = Math.max(last.timestamp, ...attempts.map(({ at }) => at));
    const around = { reqId: exchange, tool };
    const events = attempts.map(({ at, ...facts }, index): RecentEvent => {
      return { at, event: { ...facts, ...around, type: 'model.attempt', attempt: index + 1 } };
    });
    // Why one failed is known of its attempts alone.
    const code = status === 'interrupted' ? 'CANCELLED' : undefined;
    const end = { ...around, code, type: 'call.end', status, elapsedMs: endedAt - startedAt } as const;
    if (status !== 'pending') events.push({ at: endedAt, event: end });
    const over = status !== 'pending' && { endedAt };
    return [{ ...around, stored: true, owner, startedAt, ...over, events, omitted: 0, about, answer: last.content }];
  });
}

/** What an answer says of itself that was stored without its attempts. */
function attemptIn(turn: StoredTurn): AttemptRecord[] {
  const { modelProvider: provider, modelName: model, timestamp: at } = turn;
  const { usage, costUsd, latencyMs: elapsedMs = 0 } = turn.modelMetadata ?? {};
  if (provider === undefined || model === undefined) return [];
  return [{ provider, model, outcome: 'ok', next: 'none', at, elapsedMs, usage, costUsd }];
}
