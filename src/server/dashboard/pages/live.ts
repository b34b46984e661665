import type { WatchedCall } from '../../../core/ports.ts';
import { dayOf, spendTotal } from '../../../core/usage.ts';
import { dollars } from '../../../domain/money.ts';
import { type Child, html, type Markup } from '../html.ts';
import type { Page, Visit } from '../page.ts';
import { factsOf, outcomePill, runningClock, took } from './call-facts.ts';
import { amount, clockTime, empty, line, plural, table } from './words.ts';

const shownLatest = 30;

/** What goes on now, and what was lately. */
export async function livePage(visit: Visit): Promise<Page> {
  return {
    title: 'Live',
    place: '/',
    body: html`<div class="row apart"><h1>Live calls</h1><span class="connection" data-connection="off" role="status">not live</span></div>
<p class="lede">What your agents ask of Polylogue in this process, as it happens.</p>
<div data-live="/live">${await livePart(visit)}</div>`,
  };
}

/** The part that is drawn anew with each piece of news. */
export async function livePart(visit: Visit): Promise<Markup> {
  const calls = visit.own.calls.list();
  const running = calls.filter(({ endedAt }) => endedAt === undefined);
  const ended = calls.filter(({ endedAt }) => endedAt !== undefined).slice(0, shownLatest);
  return html`${await tiles(visit, running.length)}
<section aria-labelledby="running"><h2 id="running">Running now</h2>${running.length > 0 ? html`<div class="stack">${running.map(call => card(call, visit.now))}</div>` : idle(calls.length === 0)}</section>
<section aria-labelledby="latest"><h2 id="latest">Latest</h2>${ended.length > 0 ? latest(ended, visit.now) : html`<p class="soft">No call has ended since this process began.</p>`}</section>`;
}

async function tiles({ own, now }: Visit, running: number): Promise<Markup> {
  const [spent, providers] = await Promise.all([own.spend(dayOf(now)), own.providers()]);
  const { costUsd, calls, unpriced, usage } = spendTotal(spent);
  const ready = providers.filter(({ configured }) => configured);
  const ailing = ready.filter(({ health }) => health.some(({ state }) => state !== 'closed'));
  const cached = usage.input > 0 ? Math.round((usage.cacheRead / usage.input) * 100) : 0;
  return html`<ul class="tiles">
${tile('Running', String(running), running === 1 ? 'call' : 'calls')}
${tile('Spent today', dollars(costUsd), `${plural(calls, 'question')}${unpriced > 0 ? `, ${amount(unpriced)} unpriced` : ''}`)}
${tile('Tokens today', amount(usage.input + usage.output), `${cached} % of the input from caches`)}
${tile('Providers', `${ready.length - ailing.length} of ${ready.length}`, ailing.length > 0 ? html`<a href="/providers">${plural(ailing.length, 'needs a look', 'need a look')}</a>` : 'all well')}
</ul>`;
}

function tile(name: string, value: string, note: Child): Markup {
  return html`<li class="tile"><p class="name">${name}</p><p class="value">${value}</p><p class="note">${note}</p></li>`;
}

function idle(isFirst: boolean): Markup {
  return isFirst
    ? empty(
        'Nothing was asked yet.',
        'Ask your agent for a second opinion: “use polylogue consensus: should this table move to a database?”',
        html`Or from a terminal: <code>polylogue ask "What is a monad?"</code>`,
      )
    : empty('All quiet.', 'A call shows here from its first moment on, with what it is at.');
}

function card(call: WatchedCall, now: number): Markup {
  const facts = factsOf(call, now);
  const asked = facts.attempts > 0 && `${plural(facts.attempts, 'attempt')}: ${facts.models.join(', ')}`;
  const told = [call.client !== undefined && `by ${line(call.client, 60)}`, asked && line(asked, 200)].filter(Boolean);
  return html`<article class="card call"><div><h3><a href="/calls/${call.reqId}">${line(call.tool, 60)}</a> ${outcomePill(facts)}</h3>
<p class="stage bidi">${line(facts.stage, 200)}</p><p class="soft">${told.join(' · ')}</p></div>
<p class="clock">${runningClock(facts.tookMs)}</p></article>`;
}

function latest(calls: readonly WatchedCall[], now: number): Markup {
  const rows = calls.map(call => {
    const facts = factsOf(call, now);
    return [
      clockTime(call.startedAt),
      html`<a href="/calls/${call.reqId}">${line(call.tool, 60)}</a>`,
      outcomePill(facts),
      took(facts),
      facts.models.length > 0 ? line(facts.models.join(', '), 90) : '–',
      facts.tokens > 0 ? amount(facts.tokens) : '–',
      facts.attempts > 0 ? dollars(facts.costUsd) : '–',
    ];
  });
  return table('Latest calls', ['Began (UTC)', 'Tool', 'Outcome', 'Took', 'Models', 'Tokens', 'Cost'], rows);
}
