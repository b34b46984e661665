import type { AppEvent } from '../../core/events.ts';
import type { RecentEvent, WatchedCall } from '../../core/ports.ts';
import { dollars } from '../../domain/money.ts';
import { span } from './chart.ts';
import { type Child, html, type Markup } from './html.ts';
import type { Page, Visit } from './page.ts';
import { factsOf, outcomePill, runningClock, took } from './pages/call-facts.ts';
import { amount, clockTime, duration, facts, line, pill, plural } from './pages/words.ts';

const shownPaths = 12;

/** One call from its beginning to its end. */
export function callPage(visit: Visit, call: WatchedCall): Page {
  const isRunning = call.endedAt === undefined;
  return {
    title: `${line(call.tool, 60)} call`,
    place: '/',
    body: html`<p class="small"><a href="/">← Live calls</a></p>
<div class="row apart"><h1>${line(call.tool, 60)}</h1>${isRunning && html`<span class="connection" data-connection="off" role="status">not live</span>`}</div>
<div${isRunning && html` data-live="/calls/${call.reqId}/live"`}>${callPart(visit, call)}</div>`,
  };
}

export function callPart({ now }: Visit, call: WatchedCall): Markup {
  const sum = factsOf(call, now);
  return html`${facts([
    ['Outcome', outcomePill(sum)],
    ['Began (UTC)', clockTime(call.startedAt)],
    ['Took', call.endedAt === undefined ? runningClock(sum.tookMs) : took(sum)],
    call.client === undefined ? undefined : ['Client', line(call.client, 80)],
    ['Attempts', amount(sum.attempts)],
    ['Tokens', amount(sum.tokens)],
    ['Cost', dollars(sum.costUsd)],
    ['Request', html`<code>${call.reqId}</code>`],
  ])}
<section aria-labelledby="timeline"><h2 id="timeline">Timeline</h2>
<ol class="steps card">${call.events.map(each => step(each, call, sum.tookMs))}</ol>
${call.omitted > 0 && html`<p class="soft">${plural(call.omitted, 'event')} of this call ${call.omitted === 1 ? 'was' : 'were'} left out here; breadcrumbs.jsonl has them.</p>`}</section>`;
}

function step({ at, event }: RecentEvent, call: WatchedCall, wholeMs: number): Markup {
  const sinceMs = at - call.startedAt;
  return html`<li><span class="at">+ ${duration(sinceMs)}</span><div>${told(event)}${event.type === 'model.attempt' && event.outcome !== 'skipped' && span(sinceMs - event.elapsedMs, sinceMs, Math.max(wholeMs, sinceMs), event.outcome === 'ok' ? 'a' : event.outcome === 'cancelled' ? 'plain-bar' : 'bad-bar')}</div></li>\n`;
}

function told(event: AppEvent): Child {
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
      return html`<p>Chose ${line(event.chosen.slice(0, 4).join(', ') || 'nobody', 200)}</p><p class="soft small">Asked for ${line(event.requested, 80)}; read as ${line(event.class, 40)}${event.reasons.length > 0 && `: ${line(event.reasons.join('; '), 300)}`}${event.webSearch && '; with web search'}</p>`;
    case 'breaker.change':
      return html`<p>${pill(event.to === 'closed' ? 'good' : 'warn', line(event.to.replace('_', ' '), 40))} breaker of ${line(event.provider, 60)}${event.model !== undefined && `:${line(event.model, 80)}`} (${event.scope.replace('_', ' ')}), after ${plural(event.consecutive, 'failure')} in a row</p>`;
    case 'files.read':
      return files(event);
    case 'files.written':
      return html`<p>${event.code === undefined ? 'Wrote' : 'Did not write'} <code>${line(event.path)}</code></p>`;
    case 'thread.compacted':
      return html`<p>Summed up the thread's first ${plural(event.upToSeq, 'turn')}</p>`;
    case 'warning':
      return html`<p>${pill('warn', 'warning')} <span class="bidi">${line(event.message, 600)}</span></p>`;
    default:
      // What later versions tell is not kept from the reader.
      return html`<p>${line(JSON.stringify(event), 300)}</p>`;
  }
}

function attempt(event: Extract<AppEvent, { type: 'model.attempt' }>): Markup {
  const { attempt: number, provider, model, outcome, usage, costUsd, elapsedMs, status } = event;
  const mood = outcome === 'ok' ? 'good' : outcome === 'cancelled' ? 'warn' : outcome === 'skipped' ? 'plain' : 'bad';
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
  return html`<p>Attempt ${number}: <strong>${line(`${provider}:${model}`, 120)}</strong> ${pill(mood, outcome)}</p><p class="soft small">${numbers.filter(Boolean).join(' · ')}</p>`;
}

function files({ embedded, skipped }: Extract<AppEvent, { type: 'files.read' }>): Markup {
  const list = (paths: readonly string[]) =>
    html`<ul>${paths.slice(0, shownPaths).map(path => html`<li><code>${line(path)}</code></li>`)}${paths.length > shownPaths && html`<li>and ${amount(paths.length - shownPaths)} more</li>`}</ul>`;
  return html`<p>Read ${plural(embedded.length, 'file')}${skipped.length > 0 && `, left out ${amount(skipped.length)}`}</p>
${embedded.length > 0 && html`<div class="small soft">${list(embedded)}</div>`}${skipped.length > 0 && html`<div class="small soft">Left out: ${list(skipped.map(({ path, code }) => `${path} (${code})`))}</div>`}`;
}
