import type { AppEvent } from '../../core/events.ts';
import type { RecentEvent, WatchedCall } from '../../core/ports.ts';
import type { StoredTurn } from '../../core/thread.ts';
import { dollars, spendTotal } from '../../core/usage.ts';
import { span } from './chart.ts';
import type { RunReply } from './data.ts';
import type { Child, Markup, Tone } from './html.ts';
import { ago, amount, clockTime, duration, empty, facts, html, line, pill, plural, table } from './html.ts';
import { form, noProvider, type Page, type Visit } from './page.ts';
import { stateWords } from './providers-page.ts';
import { lastPart } from './thread-page.ts';
import { codeBlock, cutTo, renderMarkdown } from './turn-parts.ts';

export const outcomes = ['running', 'done', 'fell back', 'needs approval', 'failed', 'cancelled'] as const;

/** How a call stands; `why`: what failed, or who answered instead. */
interface Standing {
  tone: Tone;
  outcome: (typeof outcomes)[number];
  why?: string;
}

/** What the events of a call come to; `stage` is in its own words, `models` in the order in which they were asked first. */
export function callFacts({ startedAt, endedAt, events }: WatchedCall, now: number) {
  const tried = events.flatMap(({ event }) => (event.type === 'model.attempt' ? [event] : []));
  const attempts = tried.filter(({ outcome }) => outcome !== 'skipped');
  const stages = events.flatMap(({ event }) => (event.type === 'call.stage' ? [event.stage] : []));
  const end = events.flatMap(({ event }) => (event.type === 'call.end' ? [event] : [])).at(-1);
  return {
    stage: stages.at(-1) ?? 'begins',
    ...standingOf(end, tried),
    models: [...new Set(attempts.map(({ provider, model }) => `${provider}:${model}`))],
    attempts: attempts.length,
    tokens: attempts.reduce((sum, { usage }) => sum + (usage ? usage.input + usage.output : 0), 0),
    costUsd: attempts.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0),
    tookMs: end?.elapsedMs ?? (endedAt ?? now) - startedAt,
  };
}

type Attempt = Extract<AppEvent, { type: 'model.attempt' }>;

/** What a reader has to do something about is told apart from what is done. */
function standingOf(end: Extract<AppEvent, { type: 'call.end' }> | undefined, attempts: readonly Attempt[]): Standing {
  if (!end) return { tone: 'busy', outcome: 'running' };
  const { code, status } = end;
  const last = attempts.at(-1);
  if (code === 'CANCELLED') return { tone: 'warn', outcome: 'cancelled' };
  if (code !== undefined || status === 'failed') {
    const { class: why = '', provider } = last && last.outcome !== 'ok' ? last : { class: code ?? '', provider: '' };
    const words = [why.toLowerCase().replaceAll('_', ' '), provider].filter(Boolean).join(', ');
    return { tone: 'bad', outcome: 'failed', why: line(words, 80) };
  }
  if (status === 'approval_required') return { tone: 'warn', outcome: 'needs approval' };
  const fallback = attempts.findLast(({ outcome, next = 'none' }) => outcome !== 'ok' && !/^(none|retry)$/.test(next));
  return fallback
    ? { tone: 'warn', outcome: 'fell back', why: line(`to ${fallback.next}`, 80) }
    : { tone: 'good', outcome: 'done' };
}

const outcomePill = ({ tone, outcome, why }: Standing): Markup => pill(tone, why ? `${outcome} (${why})` : outcome);

/** A clock that goes on in the browser. */
function runningClock(ms: number): Markup {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const text = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  return html`<span data-elapsed="${Math.max(0, Math.round(ms))}">${text}</span>`;
}

const shownPaths = 12;

export async function callPage(visit: Visit, call: WatchedCall): Promise<Page> {
  const isRunning = call.endedAt === undefined && !call.stored;
  return {
    title: `${line(call.tool, 60)} call`,
    place: call.stored ? '/calls' : '/',
    body: html`<p class="small">${call.stored ? html`<a href="/calls">← Calls</a>` : html`<a href="/">← Live calls</a>`}</p>
<div class="row apart"><h1>${line(call.tool, 60)}</h1>${isRunning && html`<span class="connection" data-connection="off" role="status">disconnected</span>`}</div>
<div${isRunning && html` data-live="/calls/${call.reqId}/live"`}>${await callPart(visit, call)}</div>`,
  };
}

export async function callPart(visit: Visit, call: WatchedCall): Promise<Markup> {
  const sum = callFacts(call, visit.now);
  return html`${facts([
    ['Outcome', outcomePill(sum)],
    call.about && ['Project', projectOf(call.about)],
    ['Started', clockTime(call.startedAt)],
    ['Duration', call.endedAt === undefined ? runningClock(sum.tookMs) : duration(sum.tookMs)],
    call.client !== undefined && ['Client', line(call.client, 80)],
    ['Attempts', amount(sum.attempts)],
    ['Tokens', amount(sum.tokens)],
    ['Cost', dollars(sum.costUsd)],
    !call.stored && ['Request', html`<code>${call.reqId}</code>`],
  ])}
${await exchangePart(visit, call)}
<section aria-labelledby="timeline"><h2 id="timeline">Timeline</h2>
<ol class="steps card">${call.events.map(each => step(each, call, sum.tookMs))}</ol>
${call.omitted > 0 && html`<p class="soft">${plural(call.omitted, 'event')} of this call ${call.omitted === 1 ? 'was' : 'were'} left out here; breadcrumbs.jsonl has them.</p>`}</section>`;
}

const shownChars = 2_000;

/** What was asked and answered, as it is in the thread; before it is there, what is known of the question. */
async function exchangePart({ own, data }: Visit, { about, startedAt, endedAt = Infinity }: WatchedCall) {
  if (!about) return undefined;
  const { thread: id, seq: before = 0, text } = about;
  const thread = id === undefined ? undefined : await own.threads?.read(id).catch(() => undefined);
  const isOwn = ({ seq, timestamp }: StoredTurn) => seq > before && timestamp >= startedAt && timestamp <= endedAt;
  const turns = thread?.turns.filter(isOwn) ?? [];
  const part = (name: string, turn: StoredTurn | undefined, words: string) => {
    const cut = cutTo(words, shownChars, turn ? `/threads/${id}/turns/${turn.seq}` : '');
    const link =
      turn &&
      html` <a class="small" href="/threads/${id}?from=${turn.seq}#turn-${turn.seq}">turn ${turn.seq} of its thread</a>`;
    return html`<section class="card" aria-label="${name}"><h2>${name}${link}</h2>${renderMarkdown(data.segments, cut.text)}${turn && cut.note}</section>`;
  };
  const question = turns.find(({ role }) => role === 'user');
  const answer = turns.findLast(({ role }) => role === 'assistant');
  const asked = question?.content ?? text;
  return [asked !== '' && part('Question', question, asked), answer && part('Answer', answer, answer.content)];
}

/** The beginning of what a call asks, with its project and its thread. */
function aboutCell(about: CallRow['about'], chars = 100): Child {
  if (!about) return '–';
  const { text, thread } = about;
  return html`<span class="about bidi">${line(text, chars) || '–'}</span><span class="soft small">${projectOf(about)}${thread !== undefined && html` · <a href="/threads/${thread}">thread</a>`}</span>`;
}

/** One call in a list of them, of this process or from the store. */
export type CallRow = ReturnType<typeof rowOf>;

export function rowOf(call: WatchedCall, now: number) {
  const { tool, events, reqId, startedAt } = call;
  const { seq, thread, ...about } = call.about ?? { text: '', workspace: '' };
  // A call that fails before a model is asked leaves no new thread.
  const hasFailed = events.some(({ event }) => event.type === 'call.end' && event.code);
  const isStored = call.stored || seq || !hasFailed || events.some(({ event }) => event.type === 'model.attempt');
  const own = call.about && { ...about, ...(isStored && { thread }) };
  return {
    tool,
    startedAt,
    href: call.stored ? `/threads/${thread}/turns/${(seq ?? 0) + 1}/call` : `/calls/${reqId}`,
    about: own,
    facts: callFacts(call, now),
  };
}

const projectOf = ({ workspace }: NonNullable<WatchedCall['about']>): Markup =>
  html`<span class="bidi" title="${line(workspace)}">${line(lastPart(workspace), 60)}</span>`;

function step({ at, event }: RecentEvent, call: WatchedCall, wholeMs: number): Markup {
  const sinceMs = at - call.startedAt;
  return html`<li><span class="at">+ ${duration(sinceMs)}</span><div>${eventText(event)}${event.type === 'model.attempt' && event.outcome !== 'skipped' && span(sinceMs - event.elapsedMs, sinceMs, Math.max(wholeMs, sinceMs), event.outcome === 'ok' ? 'a' : event.outcome === 'cancelled' ? 'plain-bar' : 'bad-bar')}</div></li>\n`;
}

function eventText(event: AppEvent): Child {
  switch (event.type) {
    case 'call.start':
      return html`<p>Called${event.client !== undefined && ` by ${line(event.client, 80)}`}</p>`;
    case 'call.stage':
      return html`<p class="bidi">${line(event.stage)}</p>`;
    case 'call.end':
      return html`<p><strong>Ended: ${line(event.status, 60)}</strong>${event.code !== undefined && html` <span class="tag">${line(event.code, 60)}</span>`}</p>${event.reason !== undefined && html`<p class="soft bidi">${line(event.reason, 600)}</p>`}`;
    case 'model.attempt':
      return attempt(event);
    case 'route.plan':
      return html`<p>Chose ${line(event.chosen.slice(0, 4).join(', ') || 'nobody', 200)}</p><p class="soft small">Requested ${line(event.requested, 80)}; classified as ${line(event.class, 40)}${event.reasons.length > 0 && `: ${line(event.reasons.join('; '), 300)}`}${event.webSearch && '; with web search'}</p>`;
    case 'breaker.change':
      return html`<p>${pill(event.to === 'closed' ? 'good' : 'warn', line(stateWords[event.to] ?? event.to, 40))} ${line(event.provider, 60)}${event.model !== undefined && `:${line(event.model, 80)}`} (${event.scope.replace('_', ' ')})${event.consecutive > 0 && `, after ${plural(event.consecutive, 'failure')} in a row`}</p>`;
    case 'files.read':
      return files(event);
    case 'files.written':
      return html`<p>${event.code === undefined ? 'Wrote' : 'Did not write'} <code>${line(event.path)}</code></p>`;
    case 'agent.call':
      return html`<p>${pill(event.outcome === 'ok' ? 'good' : 'bad', event.outcome)} <code>${line(event.name, 80)}</code>${event.reason !== undefined && html` <span class="bidi">${line(event.reason)}</span>`}</p><p class="small soft"><code>${line(event.args, 500)}</code></p>`;
    case 'thread.compacted':
      return html`<p>Summarized the first ${plural(event.upToSeq, 'turn')} of the thread</p>`;
    case 'warning':
      return html`<p>${pill('warn', 'warning')} <span class="bidi">${line(event.message, 600)}</span></p>`;
    default:
      // What later versions tell is not kept from the reader.
      return html`<p>${line(JSON.stringify(event), 300)}</p>`;
  }
}

function attempt(event: Extract<AppEvent, { type: 'model.attempt' }>): Markup {
  const { attempt: number, provider, model, outcome, usage, costUsd, elapsedMs, status } = event;
  const tone = outcome === 'ok' ? 'good' : outcome === 'cancelled' ? 'warn' : outcome === 'skipped' ? 'plain' : 'bad';
  const numbers = [
    duration(elapsedMs),
    usage && `${amount(usage.input)} in, ${amount(usage.output)} out`,
    usage && usage.cacheRead > 0 && `${amount(usage.cacheRead)} from cache`,
    costUsd !== undefined && dollars(costUsd),
    event.class !== undefined && line(event.class, 60),
    status !== undefined && `HTTP ${status}`,
    event.next !== undefined && event.next !== 'none' && `then ${line(event.next, 80)}`,
    event.nextInMs !== undefined && event.nextInMs > 0 && `in ${duration(event.nextInMs)}`,
  ];
  return html`<p>Attempt ${number}: <strong>${line(`${provider}:${model}`, 120)}</strong> ${pill(tone, outcome)}</p><p class="soft small">${numbers.filter(Boolean).join(' · ')}</p>`;
}

function files({ embedded, skipped }: Extract<AppEvent, { type: 'files.read' }>): Markup {
  const list = (paths: readonly string[]) =>
    html`<ul>${paths.slice(0, shownPaths).map(path => html`<li><code>${line(path)}</code></li>`)}${paths.length > shownPaths && html`<li>and ${amount(paths.length - shownPaths)} more</li>`}</ul>`;
  return html`<p>Read ${plural(embedded.length, 'file')}${skipped.length > 0 && `, left out ${amount(skipped.length)}`}</p>
${embedded.length > 0 && html`<div class="small soft">${list(embedded)}</div>`}${skipped.length > 0 && html`<div class="small soft">Left out: ${list(skipped.map(({ path, code }) => `${path} (${code})`))}</div>`}`;
}

const shownLatest = 30;

export const livePage = async (visit: Visit): Promise<Page> => ({
  title: 'Live',
  place: '/',
  body: html`<div class="row apart"><h1>Live calls</h1><span class="connection" data-connection="off" role="status">disconnected</span></div>
<p class="lede">Calls that your agents make, live.</p>
<div data-live="/live">${await livePart(visit)}</div>`,
});

/** The part that is drawn anew with each piece of news. */
export async function livePart(visit: Visit): Promise<Markup> {
  const calls = visit.own.calls.list();
  const running = calls.filter(({ endedAt }) => endedAt === undefined);
  const ended = calls.filter(({ endedAt }) => endedAt !== undefined).slice(0, shownLatest);
  const latest = ended.map(call => rowOf(call, visit.now));
  return html`${await tiles(visit, running.length)}${await waitingPart(visit)}
<section aria-labelledby="running"><h2 id="running">Running now</h2>${running.length > 0 ? html`<div class="stack">${running.map(call => card(call, visit.now))}</div>` : idle(calls.length === 0)}</section>
<section aria-labelledby="latest"><h2 id="latest">Latest</h2>${
    latest.length > 0
      ? html`${callTable('Latest calls', latest)}<p class="row"><a class="button" href="/calls">All calls</a></p>`
      : html`<p class="soft">No calls have finished since this server started.</p>`
  }</section>`;
}

async function tiles({ own }: Visit, running: number): Promise<Markup> {
  const [spent, providers] = await Promise.all([own.spend(), own.providers()]);
  const { costUsd, calls, unpriced, usage } = spendTotal(spent);
  const ready = providers.filter(({ configured }) => configured);
  const ailing = ready.filter(({ health }) => health.some(({ state }) => state !== 'closed'));
  const cached = usage.input > 0 ? Math.round((usage.cacheRead / usage.input) * 100) : 0;
  return html`<ul class="tiles">
${tile('Running', String(running), running === 1 ? 'call' : 'calls')}
${tile('Spent today', dollars(costUsd), `${plural(calls, 'model call')}${unpriced > 0 ? `, ${amount(unpriced)} unpriced` : ''}`)}
${tile('Tokens today', amount(usage.input + usage.output), `${cached}% of input from cache`)}
${tile('Providers', `${ready.length - ailing.length} of ${ready.length}`, ailing.length > 0 ? html`<a href="/providers">${plural(ailing.length, 'needs attention', 'need attention')}</a>` : ready.length > 0 ? 'all healthy' : html`<a href="/providers">none is set up</a>`)}
</ul>${ready.length === 0 && noProvider}`;
}

const tile = (name: string, value: string, note: Child): Markup =>
  html`<li class="tile"><p class="name">${name}</p><p class="value">${value}</p><p class="note">${note}</p></li>`;

const idle = (isFirst: boolean): Markup =>
  isFirst
    ? empty(
        'No calls yet',
        'Ask your agent for a second opinion: “use polylogue consensus: should this table move to a database?”',
        html`Or from a terminal: <code>polylogue ask "What is a monad?"</code>`,
      )
    : empty('No calls running', 'Calls appear here as soon as they start.');

function card(call: WatchedCall, now: number): Markup {
  const facts = callFacts(call, now);
  const asked = facts.attempts > 0 && `${plural(facts.attempts, 'attempt')}: ${facts.models.join(', ')}`;
  const parts = [call.client !== undefined && `by ${line(call.client, 60)}`, asked && line(asked, 200)].filter(Boolean);
  return html`<article class="card call"><div><h3><a href="/calls/${call.reqId}">${line(call.tool, 60)}</a> ${outcomePill(facts)}</h3>
<p class="stage bidi">${line(facts.stage, 200)}</p>${call.about && html`<p>${aboutCell(rowOf(call, now).about, 200)}</p>`}<p class="soft">${parts.join(' · ')}</p></div>
<p class="clock">${runningClock(facts.tookMs)}</p></article>`;
}

export function callTable(label: string, calls: readonly CallRow[]): Markup {
  const rows = calls.map(({ startedAt, href, tool, about, facts }) => [
    clockTime(startedAt),
    html`<a href="${href}">${line(tool, 60)}</a>`,
    aboutCell(about),
    outcomePill(facts),
    facts.tookMs > 0 ? duration(facts.tookMs) : '–',
    facts.models.length > 0 ? line(facts.models.join(', '), 90) : '–',
    facts.tokens > 0 ? amount(facts.tokens) : '–',
    facts.attempts > 0 ? dollars(facts.costUsd) : '–',
  ]);
  return table(label, ['Started', 'Tool', 'Question', 'Outcome', 'Duration', 'Models', 'Tokens', 'Cost'], rows);
}

async function waitingPart({ own, now }: Visit): Promise<Child> {
  const runs = (await own.runs?.list()) ?? [];
  if (runs.length === 0) return undefined;
  const cards = await Promise.all(
    runs.map(async ({ id, thread, call, exchange, since }) => {
      const found = await own.threads?.read(thread).catch(() => undefined);
      const text = found?.turns.find(turn => turn.exchange === exchange)?.content ?? '';
      const about = { text, workspace: found?.workspace ?? '', thread };
      return html`<article class="card call"><div><p class="tight">The agent wants to use <code>${line(call, 80)}</code>; asked ${ago(since, now)}.</p><p>${aboutCell(about, 200)}</p></div><a class="button" href="/runs/${id}">Look and decide</a></article>`;
    }),
  );
  return html`<section aria-labelledby="waiting"><h2 id="waiting">Waits for you</h2><div class="stack">${cards}</div></section>`;
}

/** The question of a run, with what it wants to do, and a button for each answer. */
export function runPage(visit: Visit, id: string, { question, text, isError, thread }: RunReply): Page {
  const link = thread !== undefined && html`<p><a href="/threads/${thread}">Its thread</a></p>`;
  return {
    title: 'An agent asks',
    place: '/',
    status: isError ? 409 : 200,
    body: html`<p class="small"><a href="/">← Live calls</a></p><h1>${question ? 'An agent asks' : isError ? 'Not answered' : 'The agent is done'}</h1>
${question ? asked(visit, id, question) : html`<div class="notice${isError && ' bad'}"><p class="bidi">${line(text, 2_000)}</p></div>`}${link}`,
  };
}

function asked(visit: Visit, id: string, { key, message, decisions }: NonNullable<RunReply['question']>): Markup {
  const [head = '', ...rest] = message.split('\n\n');
  // What an answer covers, where one covers more than this call, and the run's id stand last.
  const tail = rest.splice(decisions.length > 2 ? -2 : -1);
  const body = rest.join('\n\n');
  const language = /^(?:@@ |\+\+\+ )/m.test(body) ? 'diff' : '';
  const button = (decision: string, at: number) =>
    html`<button name="decision" value="${decision}"${at === 0 && html` class="main"`}${at === decisions.length - 1 && html` class="danger"`}>${line(decision, 80)}</button>`;
  return html`<p class="lede bidi">${line(head, 2_000)}</p>${codeBlock(body, language)}<p class="soft small bidi">${line(tail.join(' · '), 400)}</p>
${form(visit, `/runs/${id}`, html`<input type="hidden" name="key" value="${key}"><p class="row">${decisions.map(button)}</p>`)}
<p class="soft small">The answer counts once, for exactly what is shown here. Without one, the run ends in ten minutes.</p>`;
}
