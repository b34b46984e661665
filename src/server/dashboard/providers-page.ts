import { isThreadId } from '../../core/ids.ts';
import type { Health } from '../../core/model.ts';
import { dayOf, dollars, type SpendRow, spendTotal, sumTries, type Tries } from '../../core/usage.ts';
import { barChart } from './chart.ts';
import type { CacheView, ProviderView } from './data.ts';
import type { Child, Markup, Tone } from './html.ts';
import { ago, ahead, amount, clockTime, duration, empty, facts, html, line, pill, plural, table } from './html.ts';
import { form, noProvider, type Page, type Visit } from './page.ts';

const spendDays = 30;
const dayMs = 86_400_000;

type Tried = { id: string; text: string; tone: Tone };

export async function providersPage(visit: Visit, tried?: Tried): Promise<Page> {
  const { own, now } = visit;
  const from = dayOf(now - (spendDays - 1) * dayMs);
  const [providers, caches, spent] = await Promise.all([own.providers(), own.caches(), own.spend(from)]);
  const ready = providers.filter(({ configured }) => configured).sort((a, b) => trouble(b) - trouble(a));
  const others = providers.filter(({ configured }) => !configured);
  return {
    title: 'Providers',
    place: '/providers',
    body: html`<h1>Providers</h1><p class="lede">Configured providers, their health, and your spend in the last ${spendDays} days.</p>
${ready.length > 0 ? html`<div class="stack">${ready.map(provider => card(visit, provider, spent, tried))}</div>` : noProvider}
<section aria-labelledby="caches"><h2 id="caches">Vendor caches</h2>${caches.length > 0 ? cacheTable(caches, now) : empty('No vendor caches', 'When it saves money, Polylogue caches the start of a long thread at the vendor. Paid caches are listed here until they expire; automatic ones appear as “from cache” in transcripts.')}</section>
${others.length > 0 && html`<section aria-labelledby="unused"><h2 id="unused">Not set up</h2><ul class="columns plainlist">${others.map(unused)}</ul></section>`}`,
  };
}

const trouble = ({ health }: ProviderView): number => health.filter(({ state }) => state !== 'closed').length;

function card(visit: Visit, provider: ProviderView, spent: readonly SpendRow[], tried?: Tried): Markup {
  const { now, own } = visit;
  const { id, title, listedSecondsAgo, local, models, endpoints, can, health } = provider;
  const rows = spent.filter(row => row.provider === id);
  const { costUsd, calls, usage } = spendTotal(rows);
  const hours = rows.flatMap(({ day, tries = {} }) =>
    Object.entries(tries).map(([hour, sum]): Hour => ({ ...sum, hour: Date.parse(day) + Number(hour) * 3_600_000 })),
  );
  const abilities = Object.entries(can).flatMap(([name, has]) => (has ? [name] : []));
  return html`<article class="card" aria-labelledby="provider-${id}"><div class="row"><h2 id="provider-${id}" class="tight">${line(title, 80)}</h2>${overall(health)}${local && html`<span class="tag">local</span>`}<span class="soft small">${abilities.join(', ')}</span>${own.tryProvider && form(visit, '/providers', html`<input type="hidden" name="provider" value="${id}"><button aria-label="Try now: ${line(title, 80)}">Try now</button>`, 'aside')}</div>
${tried?.id === id && html`<p role="status">${pill(tried.tone, line(tried.text, 400))}</p>`}
${facts([
  [
    'Models',
    [amount(models), listedSecondsAgo !== undefined && [', listed ', ago(now - listedSecondsAgo * 1_000, now)]],
  ],
  ['Model calls', amount(calls)],
  ['Cost', dollars(costUsd)],
  ['Tokens', amount(usage.input + usage.output)],
  endpoints.length > 0 && ['Address', html`<code>${line(endpoints.join(', '), 120)}</code>`],
])}
${hours.length > 0 && html`<div class="columns low">${charts(hours, now)}</div>`}${health.length > 0 && html`<div class="health">${healthTable(title, health, now)}</div>`}</article>`;
}

/** `hour`: epoch milliseconds of its beginning. */
type Hour = Tries & { hour: number };

/** Latency and errors of the last day by hour, and of the last week by day. */
function charts(hours: readonly Hour[], now: number): Child {
  const hourOf = (at: number) => `${new Date(at).toISOString().slice(11, 13)}:00 UTC`;
  const spans = [
    { title: 'last 24 h', count: 24, ms: 3_600_000, name: hourOf },
    { title: 'last 7 days', count: 7, ms: dayMs, name: dayOf },
  ];
  return spans.flatMap(({ title, count, ms, name }) => {
    const starts = Array.from({ length: count }, (_, index) => (Math.floor(now / ms) - count + 1 + index) * ms);
    const sums = starts.map(start => sumOf(hours.filter(({ hour }) => hour >= start && hour < start + ms)));
    const { attempts, failures, latency } = sumOf(hours.filter(({ hour }) => hour >= (starts[0] ?? 0)));
    const charts = [
      ['Latency', 'latency', 'a', duration, `${duration(latency)} on average`],
      ['Errors', 'failures', 'c', amount, `${amount(failures)} of ${plural(attempts, 'attempt')}`],
    ] as const;
    return charts.map(([what, key, colour, format, note]) => {
      const series = [{ name: title, colour, values: sums.map(sum => sum[key]) }];
      return barChart({ title: `${what}, ${title}`, note, labels: starts.map(name), series, format, isSmall: true });
    });
  });
}

function sumOf(hours: readonly Hour[]): { attempts: number; failures: number; latency: number } {
  const { attempts, failures, ms } = sumTries(hours);
  return { attempts, failures, latency: ms / Math.max(1, attempts - failures) };
}

function overall(health: readonly Health[]): Markup {
  if (health.length === 0) return pill('plain', 'not used recently');
  const bad = health.filter(({ state }) => state !== 'closed');
  if (bad.length === 0) return pill('good', 'healthy');
  const wide = bad.find(({ scope }) => scope === 'key' || scope === 'account');
  return pill(wide ? 'bad' : 'warn', (wide && stateWords[wide.state]) ?? 'degraded');
}

const scopes = { key: 'provider', account: 'account', model: 'model', key_model: 'model (this key)' } as const;

function healthTable(title: string, health: readonly Health[], now: number): Markup {
  const rows = health.map(each => [
    each.model === undefined
      ? scopes[each.scope]
      : html`${line(each.model, 80)}${each.scope === 'key_model' && ' (this key)'}`,
    pill(moods[each.state], stateWords[each.state] ?? each.state),
    each.latencyMs === undefined ? '–' : duration(each.latencyMs),
    each.calls === 0 ? '–' : `${each.failures} of ${each.calls}`,
    amount(each.consecutive),
    each.class === undefined ? '–' : line(each.class.replaceAll('_', ' '), 40),
    pause(each, now),
  ]);
  const heads = ['Scope', 'State', 'Latency', 'Errors, 30 s', 'Consecutive', 'Last error', 'State since'];
  return table(`Health of ${line(title, 60)}`, heads, rows);
}

const moods = { closed: 'good', half_open: 'warn', open: 'bad', quarantined: 'bad' } as const;

export const stateWords: Readonly<Record<string, string>> = {
  closed: 'active',
  open: 'paused',
  half_open: 'testing',
  quarantined: 'key rejected',
};

function pause({ since, state, why, retryAfterSeconds }: Health, now: number): Child {
  const until = state === 'quarantined' ? '; until the key is changed or found valid' : undefined;
  const next = now + (retryAfterSeconds ?? 0) * 1_000;
  const again = retryAfterSeconds === undefined ? until : ['; next try at ', clockTime(next), ', ', ahead(next, now)];
  return [ago(since, now), why === undefined ? undefined : [': ', line(why, 120)], again];
}

function cacheTable(caches: readonly CacheView[], now: number): Markup {
  const rows = caches.map(({ provider, model, thread, tokens, messages, files, created, expires }) => [
    isThreadId(thread) ? html`<a href="/threads/${thread}"><code>${thread.slice(0, 8)}</code></a>` : line(thread, 40),
    line(`${provider}:${model}`, 120),
    amount(tokens),
    `${plural(messages, 'message')}, ${plural(files.length, 'file')}`,
    ago(created, now),
    ahead(expires, now),
  ]);
  return table('Vendor caches', ['Thread', 'Model', 'Tokens', 'Contents', 'Created', 'Expires'], rows);
}

const unused = ({ title, setting }: ProviderView): Markup =>
  html`<li><strong>${line(title, 80)}</strong>${setting !== undefined && html`<br><span class="soft small">set <code>${line(setting, 80)}</code></span>`}</li>`;
