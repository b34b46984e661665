import { withTimeout } from '../../core/concurrency.ts';
import { inputError, isAppError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { exportForms, type StoredTurn, type Thread } from '../../core/thread.ts';
import { allCallsPage, exchangesOf } from './all-calls-page.ts';
import { callPage, callPart, livePage, livePart, runPage } from './calls-page.ts';
import type { ThreadsData } from './data.ts';
import type { Markup } from './html.ts';
import { fileAnswer, notFoundPage, type Page, problemPage, redirectTo, themes, type Visit } from './page.ts';
import { providersPage } from './providers-page.ts';
import { cookie } from './sign-in.ts';
import { spendCsv, spendPage } from './spend-page.ts';
import { comparePage, filePage, threadPage, threadsPage, turnPage } from './thread-page.ts';
import { verdictsPage } from './verdicts-page.ts';

export interface Asked {
  request: Request;
  visit: Visit;
  /** What stood in the brackets of the path. */
  parts: string[];
  /** What the form said; empty for GET. */
  fields: URLSearchParams;
  clock: Pick<Clock, 'after'>;
  /** Answers with a part of a page each time there is news. */
  follow(only: string | undefined, render: (visit: Visit) => Promise<{ part: Markup; isOver: boolean }>): Response;
}

/** What is answered: a page, anything else, or undefined where there is nothing. */
type Answer = Page | Response | undefined;

export interface Route {
  method: 'GET' | 'POST';
  path: RegExp;
  answer(asked: Asked): Promise<Answer> | Answer;
}

const uuid = '([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})';
const at = (path: string) =>
  new RegExp(`^${path.replaceAll('ID', uuid).replaceAll('-RUN', '(-[0-9a-f]{8})').replaceAll('N', '(\\d{1,9})')}$`);

const get = (path: string, answer: Route['answer']): Route => ({ method: 'GET', path: at(path), answer });
const post = (path: string, answer: Route['answer']): Route => ({ method: 'POST', path: at(path), answer });

const allThreads = (path: string, answer: Parameters<typeof ofThreads>[0]): Route => get(path, ofThreads(answer));
const oneThread = (path: string, answer: ThreadAnswer): Route => get(`/threads/ID${path}`, ofThread(answer));

export const routes: readonly Route[] = [
  get('/', ({ visit }) => livePage(visit)),
  get('/live', ({ follow }) => follow(undefined, async visit => ({ part: await livePart(visit), isOver: false }))),
  get('/calls', ({ visit }) => allCallsPage(visit)),
  get('/calls/ID', async ({ visit, parts: [id = ''] }) => {
    const call = visit.own.calls.find(id);
    return call && callPage(visit, call);
  }),
  get('/calls/ID/live', followCall),
  allThreads('/threads', ({ visit }, threads) => threadsPage(visit, threads)),
  oneThread('', ({ visit }, ...of) => threadPage(visit, ...of)),
  oneThread('/verdicts', ({ visit }, _, thread) => verdictsPage(visit, thread)),
  oneThread('/compare/ID', async ({ visit, parts }, threads, thread) =>
    comparePage(visit, thread, await threads.read(parts[1] ?? '')),
  ),
  oneThread('/turns/N', ({ visit, parts }, threads, thread) => {
    const turn = turnOf(thread, parts[1]);
    return turn && turnPage(visit, threads, thread, turn);
  }),
  oneThread('/turns/N/call', ({ visit, parts }, _, thread) => {
    const call = exchangesOf(thread).find(({ about }) => about?.seq === Number(parts[1]) - 1);
    return call && callPage(visit, call);
  }),
  oneThread('/turns/N/files/N', async ({ parts }, threads, thread) => {
    const file = turnOf(thread, parts[1])?.files[Number(parts[2])];
    return file && filePage(thread, Number(parts[1]), await threads.file(file));
  }),
  oneThread('/turns/N/images/N', async ({ parts }, threads, thread) => {
    const image = turnOf(thread, parts[1])?.images[Number(parts[2])];
    const bytes = image && (await threads.image(image));
    return bytes && fileAnswer(Uint8Array.from(bytes), image.mediaType);
  }),
  allThreads('/threads/ID/export', async ({ visit, parts: [id = ''] }, threads) => {
    const form = exportForms.find(name => name === (visit.url.searchParams.get('format') ?? 'md'));
    if (!form) return undefined;
    const body = ReadableStream.from(await threads.export(id, form)).pipeThrough(new TextEncoderStream());
    return fileAnswer(body, `${types[form]}; charset=utf-8`, `thread-${id.slice(0, 8)}.${form}`);
  }),
  post('/threads/ID/fork', ofThread(fork)),
  post('/threads/ID/delete', ofThread(remove)),
  get('/runs/ID-RUN', async ({ request, visit, parts }) => {
    const id = parts.join('');
    return visit.own.runs ? runPage(visit, id, await visit.own.runs.question(id, request.signal)) : noAgent;
  }),
  post('/runs/ID-RUN', answerRun),
  get('/providers', ({ visit }) => providersPage(visit)),
  post('/providers', tryProvider),
  get('/spend\\.csv', ({ visit }) => spendCsv(visit)),
  get('/spend', ({ visit }) => spendPage(visit)),
  post('/theme', ({ request, visit, fields }) => {
    const theme = themes.find(name => name === fields.get('theme')) ?? visit.theme;
    return redirectTo(localPath(fields.get('back')), cookie(request, 'polylogue_theme', theme, 31_536_000));
  }),
];

function followCall({ visit, parts: [id = ''], follow }: Asked): Answer {
  if (!visit.own.calls.find(id)) return undefined;
  let last: Markup | undefined;
  return follow(id, async now => {
    const call = now.own.calls.find(id);
    if (call) last = await callPart(now, call);
    // What is forgotten meanwhile stays as it was seen last.
    return { part: last ?? notFoundPage.body, isOver: call?.endedAt !== undefined || !call };
  });
}

function ofThreads(answer: (asked: Asked, threads: ThreadsData) => Promise<Answer>): Route['answer'] {
  return asked => {
    const { threads } = asked.visit.own;
    return threads ? answer(asked, threads) : noThreads;
  };
}

type ThreadAnswer = (asked: Asked, threads: ThreadsData, thread: Thread) => Promise<Answer> | Answer;

function ofThread(answer: ThreadAnswer): Route['answer'] {
  return ofThreads(async (asked, threads) => answer(asked, threads, await threads.read(asked.parts[0] ?? '')));
}

const types = { md: 'text/markdown', html: 'text/html', jsonl: 'application/jsonl' } as const;

async function fork({ fields }: Asked, threads: ThreadsData, thread: Thread): Promise<Answer> {
  if (!threads.change) return readingOnly;
  const turn = turnOf(thread, fields.get('turn'));
  if (!turn)
    throw inputError('There is no such turn to fork after.', {
      class: 'fork',
      next: 'Go back and choose one that is there.',
    });
  const child = await threads.change.fork(thread, turn);
  return redirectTo(`/threads/${child.id}`);
}

async function remove({ request, fields }: Asked, threads: ThreadsData, thread: Thread): Promise<Answer> {
  if (!threads.change) return readingOnly;
  if (fields.get('sure') !== 'yes') return unsure;
  await threads.change.remove(thread, request.signal);
  return redirectTo('/threads');
}

/** A run that goes on for longer is seen among the live calls. */
const patienceMs = 3_000;

async function answerRun({ visit, parts, fields, clock }: Asked): Promise<Answer> {
  const id = parts.join('');
  if (!visit.own.runs) return noAgent;
  const answered = visit.own.runs.answer(id, fields.get('key') ?? '', fields.get('decision') ?? 'refuse');
  const reply = await withTimeout(clock, patienceMs, answered);
  return reply ? runPage(visit, id, reply) : redirectTo('/');
}

async function tryProvider({ request, visit, fields }: Asked): Promise<Answer> {
  const { tryProvider: attempt } = visit.own;
  if (!attempt) return readingOnly;
  const id = fields.get('provider') ?? '';
  try {
    return await providersPage(visit, { id, tone: 'good', text: await attempt(id, request.signal) });
  } catch (error) {
    if (!isAppError(error) || error.kind === 'input') throw error;
    return providersPage(visit, { id, tone: 'bad', text: error.message });
  }
}

/** Where to go on: an address of this server, whatever was asked for. */
export function localPath(path: string | null): string {
  const here = 'http://here.invalid';
  const url = path?.startsWith('/') ? URL.parse(path, here) : null;
  return url?.origin === here ? `${url.pathname}${url.search}`.replace(/^\/+/, '/') : '/';
}

const turnOf = ({ turns }: Thread, seq: string | null | undefined): StoredTurn | undefined =>
  turns.find(turn => turn.seq === Number(seq));

const notAllowed = (why: string, needed: string): Page =>
  problemPage(403, 'Not allowed', `Your token ${why}.`, `Ask the operator for one that ${needed}.`);

const noThreads = notAllowed('does not let you use threads', 'allows the tool "threads"');

const noAgent = notAllowed(
  'does not let you use the agent, and so not answer for it',
  'allows the tool "agent" and is not read_only',
);

const readingOnly = notAllowed('lets you read and nothing else', 'is not read_only');

const unsure = problemPage(400, 'Not deleted', 'Select the confirmation box to delete the thread.');
