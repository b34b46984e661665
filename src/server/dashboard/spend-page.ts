import { isThreadId } from '../../core/ids.ts';
import type { SpendKey, SpendRow } from '../../core/usage.ts';
import { dayOf, dollars, kindWords, spendBy, spendByKind, spendTotal } from '../../core/usage.ts';
import { exchangesOf } from './all-calls-page.ts';
import { type CallRow, callTable, rowOf } from './calls-page.ts';
import { barChart, share } from './chart.ts';
import { amount, type Child, empty, facts, html, line, type Markup, plural, table } from './html.ts';
import { fileAnswer, type Page, type Visit } from './page.ts';

const dayMs = 86_400_000;
const periods = [7, 30, 90, 365] as const;
const usualPeriod = 30;
const groupings: readonly (SpendKey | 'project')[] = ['model', 'provider', 'tool', 'project', 'thread', 'day'];
const maxRows = 100;

export async function spendPage(visit: Visit): Promise<Page> {
  const { days, rows } = await periodOf(visit);
  const by = groupings.find(name => name === visit.url.searchParams.get('by')) ?? 'model';
  return {
    title: 'Spend',
    place: '/spend',
    body: html`<h1>Spend</h1><p class="lede">Cost of your calls in US dollars at list price. Days are in UTC.</p>
<div class="row apart"><div class="choice" role="group" aria-label="Period">${periods.map(period => choice(link(period, by), `${period} days`, period === days))}</div><a class="button" href="/spend.csv?days=${days}" download>Export as CSV</a></div>
${rows.length === 0 ? html`<section>${empty('No spend in this period', 'Every model call is recorded with its tokens and cost.')}</section>` : await found(visit, rows, days, by)}`,
  };
}

async function periodOf({ url, own, now }: Visit) {
  const days = periods.find(period => String(period) === url.searchParams.get('days')) ?? usualPeriod;
  const rows = await own.spend(dayOf(now - (days - 1) * dayMs));
  return { days, rows: rows.filter(({ calls }) => calls > 0) };
}

const gone = 'of threads that are gone, or without a thread';

/** Rows with the project of their thread in the place of the tool. */
async function inProjects({ own }: Visit, rows: readonly SpendRow[]): Promise<SpendRow[]> {
  const found = await own.threads?.projects([...new Set(rows.flatMap(({ thread }) => thread ?? []))]);
  return rows.map(row => ({ ...row, tool: found?.get(row.thread ?? '') ?? gone }));
}

export async function spendCsv(visit: Visit): Promise<Response> {
  const { days, rows } = await periodOf(visit);
  const projects = await inProjects(visit, rows);
  const lines = rows.map(({ day, provider, model, tool, thread = '', calls, unpriced, costUsd, usage }, index) => {
    const { input, cacheRead, output } = usage;
    const project = projects[index]?.tool ?? '';
    const cells = [day, provider, model, tool, project, thread, calls, unpriced, costUsd, input, cacheRead, output];
    return cells.map(csvCell).join(',');
  });
  const head =
    'day,provider,model,tool,project,thread,questions,unpriced,cost_usd,input_tokens,cache_read_tokens,output_tokens';
  const bytes = new TextEncoder().encode([head, ...lines, ''].join('\r\n'));
  return fileAnswer(bytes, 'text/csv; charset=utf-8', `polylogue-spend-${days}-days.csv`);
}

/** A text that begins like a formula is kept from being one. */
function csvCell(value: string | number): string {
  const text = typeof value === 'string' && /^[\s=+\-@]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const shownDearest = 10;

/** Threads that are read for the dearest calls. */
const maxRead = 200;

/** The dearest calls of the period. A call costs no more than its thread, so that only the dearest threads are read. */
async function dearest({ own, now }: Visit, rows: readonly SpendRow[], days: number): Promise<CallRow[]> {
  const from = Date.parse(dayOf(now - (days - 1) * dayMs));
  const top = (calls: readonly CallRow[]) =>
    calls
      .filter(({ startedAt, facts }) => startedAt >= from && facts.costUsd > 0)
      .sort((a, b) => b.facts.costUsd - a.facts.costUsd)
      .slice(0, shownDearest);
  // Of those with a thread, the thread knows.
  const rowsOfCalls = own.calls.list().map(call => rowOf(call, now));
  let best = top(rowsOfCalls.filter(({ about }) => about?.thread === undefined));
  for (const { key, costUsd } of spendBy(rows, 'thread').slice(0, maxRead)) {
    if (best.length === shownDearest && (best.at(-1)?.facts.costUsd ?? 0) >= costUsd) break;
    const thread = isThreadId(key) ? await own.threads?.read(key).catch(() => undefined) : undefined;
    best = top([...best, ...(thread ? exchangesOf(thread).map(call => rowOf(call, now)) : [])]);
  }
  return best;
}

/** What this month costs if it goes on as it began; of less than a day nothing follows. */
async function forecast({ own, now }: Visit): Promise<[string, Child]> {
  const first = `${dayOf(now).slice(0, 8)}01`;
  const { costUsd } = spendTotal(await own.spend(first));
  const [year = 0, month = 1] = first.split('-').map(Number);
  const whole = Date.UTC(year, month) - Date.parse(first);
  const passed = now - Date.parse(first);
  const end = passed >= dayMs && `, about ${dollars((costUsd * whole) / passed)} at its end`;
  return ['This month', html`${dollars(costUsd)} so far${end}`];
}

const kindNames = {
  answers: 'Answers',
  web_search: 'Web searches',
  cache_storage: 'Vendor caches',
  embedding: 'Embeddings',
};

const link = (period: number, group: string) => `/spend?days=${period}&by=${group}`;

async function found(visit: Visit, rows: readonly SpendRow[], days: number, by: (typeof groupings)[number]) {
  const { costUsd, calls, unpriced, usage } = spendTotal(rows);
  const saved = await visit.own.saved(rows);
  const dear = await dearest(visit, rows, days);
  return html`${facts([
    ['Cost', html`<strong>${mark(usage)}${dollars(costUsd)}</strong>`],
    await forecast(visit),
    ['Caches', saved < 0 ? `cost ${dollars(-saved)} more than they saved` : `saved ${dollars(saved)}`],
    ['Model calls', amount(calls)],
    unpriced > 0 && ['Model calls without a price', amount(unpriced)],
    ['Input tokens', mark(usage) + amount(usage.input)],
    ['Cached input tokens', amount(usage.cacheRead)],
    ['Output tokens', mark(usage) + amount(usage.output)],
    usage.estimated ? ['~ includes an estimate', `for ${plural(usage.estimated, 'model call')}`] : undefined,
    ...spendByKind(rows)
      .filter(({ kind }) => kind !== 'answers')
      .map((sum): [string, Child] => [kindNames[sum.kind], html`${dollars(sum.usd)} for ${kindWords(sum)}`]),
  ])}
<section aria-label="Over time"><div class="columns charts">${charts(rows, days, visit.now)}</div></section>
<section aria-labelledby="sums"><div class="row apart"><h2 id="sums">Sums</h2><div class="choice" role="group" aria-label="By">${groupings.map(name => choice(link(days, name), `by ${name}`, name === by))}</div></div>
${by === 'project' ? sums(await inProjects(visit, rows), 'tool', by) : sums(rows, by)}</section>
${dear.length > 0 && html`<section aria-labelledby="dearest"><h2 id="dearest">The dearest calls</h2>${callTable('The dearest calls', dear)}</section>`}`;
}

/** What vendors did not report is estimated, and marked as `polylogue usage` marks it. */
const mark = ({ estimated }: SpendRow['usage']): string => (estimated ? '~' : '');

const choice = (href: string, name: string, is: boolean): Markup =>
  html`<a href="${href}"${is && html` aria-current="true"`}>${name}</a>`;

function charts(rows: readonly SpendRow[], days: number, now: number): Child {
  const byDay = new Map(spendBy(rows, 'day').map(sum => [sum.key, sum]));
  const labels = Array.from({ length: days }, (_, index) => dayOf(now - (days - 1 - index) * dayMs));
  const valuesOf = (of: (sum: ReturnType<typeof spendTotal>) => number) =>
    labels.map(day => Math.max(0, of(byDay.get(day) ?? spendTotal([]))));
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
        { name: 'cached input', colour: 'b', values: valuesOf(sum => sum.usage.cacheRead) },
        { name: 'output', colour: 'c', values: valuesOf(sum => sum.usage.output) },
      ],
      format: amount,
    }),
  ];
}

function sums(rows: readonly SpendRow[], by: SpendKey, called: string = by): Markup {
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
    usage.input > 0 ? `${Math.round((usage.cacheRead / usage.input) * 100)}%` : '–',
    mark(usage) + amount(usage.output),
  ]);
  const name = called.charAt(0).toUpperCase() + called.slice(1);
  return html`${table(`Spend by ${called}`, [name, 'Cost', 'Share', 'Model calls', 'Input', 'Cached', 'Output'], cells)}${all.length > maxRows && html`<p class="soft small">${plural(all.length - maxRows, 'further row')} ${by === 'day' ? 'before' : 'cost less'}.</p>`}`;
}
