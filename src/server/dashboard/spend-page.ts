import { isThreadId } from '../../core/ids.ts';
import {
  dayOf,
  dollars,
  kindWords,
  type SpendKey,
  type SpendRow,
  spendBy,
  spendByKind,
  spendTotal,
} from '../../core/usage.ts';
import { barChart, share } from './chart.ts';
import { amount, type Child, empty, facts, html, line, type Markup, plural, table } from './html.ts';
import type { Page, Visit } from './page.ts';

const dayMs = 86_400_000;
const periods = [7, 30, 90, 365] as const;
const usualPeriod = 30;
const groupings = ['model', 'provider', 'tool', 'thread', 'day'] as const satisfies readonly SpendKey[];
const maxRows = 100;

/** What the owner's calls cost, over time and by what. */
export async function spendPage({ url, own, now }: Visit): Promise<Page> {
  const days = periods.find(period => String(period) === url.searchParams.get('days')) ?? usualPeriod;
  const by = groupings.find(name => name === url.searchParams.get('by')) ?? 'model';
  const rows = await own.spend(dayOf(now - (days - 1) * dayMs));
  const link = (period: number, group: string) => `/spend?days=${period}&by=${group}`;
  return {
    title: 'Spend',
    place: '/spend',
    body: html`<h1>Spend</h1><p class="lede">What your calls cost, in US dollars at the vendors' list prices. Days are those of UTC.</p>
<div class="row apart"><div class="choice" role="group" aria-label="Period">${periods.map(period => choice(link(period, by), `${period} days`, period === days))}</div></div>
${rows.length === 0 ? html`<section>${empty('Nothing was spent in this time.', 'Each question to a model is written down here with its tokens and what it cost.')}</section>` : found(rows, { days, now, by, link })}`,
  };
}

const kindNames = {
  answers: 'Answers',
  web_search: 'Searches of the web',
  cache_storage: 'Caches at vendors',
  embedding: 'Vectors',
};

interface Shown {
  days: number;
  now: number;
  by: SpendKey;
  link(period: number, group: string): string;
}

function found(rows: readonly SpendRow[], { days, now, by, link }: Shown): Markup {
  const { costUsd, calls, unpriced, usage } = spendTotal(rows);
  return html`${facts([
    ['Cost', html`<strong>${mark(usage)}${dollars(costUsd)}</strong>`],
    ['Questions', amount(calls)],
    unpriced > 0 ? ['Without a known price', amount(unpriced)] : undefined,
    ['Input tokens', mark(usage) + amount(usage.input)],
    ['of them from caches', amount(usage.cacheRead)],
    ['Output tokens', mark(usage) + amount(usage.output)],
    usage.estimated ? ['~ includes an estimate', `for ${plural(usage.estimated, 'question')}`] : undefined,
    ...spendByKind(rows)
      .filter(({ kind }) => kind !== 'answers')
      .map((sum): [string, Child] => [kindNames[sum.kind], html`${dollars(sum.usd)} for ${kindWords(sum)}`]),
  ])}
<section aria-label="Over time"><div class="columns charts">${charts(rows, days, now)}</div></section>
<section aria-labelledby="sums"><div class="row apart"><h2 id="sums">Sums</h2><div class="choice" role="group" aria-label="By">${groupings.map(name => choice(link(days, name), `by ${name}`, name === by))}</div></div>
${sums(rows, by)}</section>`;
}

/** What vendors did not report is estimated, and marked as `polylogue usage` marks it. */
function mark({ estimated }: SpendRow['usage']): string {
  return estimated ? '~' : '';
}

function choice(href: string, name: string, is: boolean): Markup {
  return html`<a href="${href}"${is && html` aria-current="true"`}>${name}</a>`;
}

function charts(rows: readonly SpendRow[], days: number, now: number): Child {
  const byDay = new Map(spendBy(rows, 'day').map(sum => [sum.key, sum]));
  const labels = Array.from({ length: days }, (_, index) => dayOf(now - (days - 1 - index) * dayMs));
  const valuesOf = (of: (sum: ReturnType<typeof spendTotal>) => number) =>
    labels.map(day => {
      const sum = byDay.get(day);
      return sum ? Math.max(0, of(sum)) : 0;
    });
  const { costUsd, usage } = spendTotal(rows);
  return [
    barChart({
      title: 'Cost by day',
      note: `${dollars(costUsd)} in ${days} days, ${dollars(costUsd / days)} a day`,
      labels,
      series: [{ name: 'cost', colour: 'a', values: valuesOf(sum => sum.costUsd) }],
      format: dollars,
    }),
    barChart({
      title: 'Tokens by day',
      note: `${amount(usage.input + usage.output)} in ${days} days`,
      labels,
      series: [
        { name: 'input', colour: 'a', values: valuesOf(sum => sum.usage.input - sum.usage.cacheRead) },
        { name: 'input from caches', colour: 'b', values: valuesOf(sum => sum.usage.cacheRead) },
        { name: 'output', colour: 'c', values: valuesOf(sum => sum.usage.output) },
      ],
      format: amount,
    }),
  ];
}

function sums(rows: readonly SpendRow[], by: SpendKey): Markup {
  const all = spendBy(rows, by);
  const shown = by === 'day' ? all.toReversed().slice(0, maxRows) : all.slice(0, maxRows);
  const whole = spendTotal(rows).costUsd;
  const cells = shown.map(({ key, costUsd, calls, unpriced, usage }) => [
    by === 'thread' && isThreadId(key)
      ? html`<a href="/threads/${key}"><code>${key.slice(0, 8)}</code></a>`
      : line(key, 120),
    html`${mark(usage)}${dollars(costUsd)}${unpriced > 0 && html` <span class="soft small">+ ${amount(unpriced)} unpriced</span>`}`,
    whole > 0 ? share(costUsd / whole) : '–',
    amount(calls),
    mark(usage) + amount(usage.input),
    usage.input > 0 ? `${Math.round((usage.cacheRead / usage.input) * 100)} %` : '–',
    mark(usage) + amount(usage.output),
  ]);
  const name = by.charAt(0).toUpperCase() + by.slice(1);
  return html`${table(`Spend by ${by}`, [name, 'Cost', 'Share', 'Questions', 'Input', 'From caches', 'Output'], cells)}${all.length > maxRows && html`<p class="soft small">${plural(all.length - maxRows, 'further row')} ${by === 'day' ? 'before' : 'cost less'}.</p>`}`;
}
