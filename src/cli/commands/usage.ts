import type { JsonObject } from '../../core/json.ts';
import * as ledger from '../../core/usage.ts';
import { defineCommand, flag, numberFlag, textFlag } from '../command/command.ts';
import { openProduct } from '../command/open-product.ts';
import type { Output } from '../command/output.ts';

const usualDays = 30;
const maxDays = 370;
const dayMs = 24 * 3_600_000;
const choices = [...ledger.spendKeys, 'kind'] as const;

export const usage = defineCommand({
  name: 'usage',
  group: 'Models',
  summary: 'Show calls, tokens and cost by day, model, tool or thread',
  flags: [
    flag('days <number>', `Days to include, up to today in UTC (default: ${usualDays})`),
    flag('owner <name>', 'Whose calls: an owner of a daemon (default: local)'),
    flag('by <word>', 'Group by (default: day); `kind` splits answers, searches, caches, embeddings', { choices }),
  ],
  examples: [
    ['polylogue usage', 'The last 30 days, by day, of the owner `local`; /metrics of a daemon has all owners'],
    ['polylogue usage --owner ann', 'The same of another owner of a daemon'],
    ['polylogue usage --days 1 --by model', 'Today, by model'],
    ['polylogue usage --by kind', 'Include searches, caches and embeddings'],
    ['polylogue usage --days 365 --by provider --json', 'A year, as JSON'],
  ],
  async run(context) {
    const { flags } = context;
    const days = numberFlag(flags, 'days', { min: 1, max: maxDays }) ?? usualDays;
    const by = choices.find(key => key === textFlag(flags, 'by')) ?? 'day';
    const from = ledger.dayOf(context.environment.clock.now() - (days - 1) * dayMs);
    return openProduct(context, async ({ product }) => {
      const rows = await product.spent(from, textFlag(flags, 'owner'));
      if (by === 'kind') return showKinds(context.out, ledger.spendByKind(rows), from, days);
      const sums = ledger.spendBy(rows, by);
      const total = ledger.spendTotal(rows);
      const shown = sums.map(({ key, ...sum }) => ({ [by]: key, ...documentOf(sum) }));
      context.out.document({ status: 'success', from, by, rows: shown, total: documentOf(total) });
      print(context.out, by, sums, total, days);
    });
  },
});

function documentOf({ calls, unpriced, usage: tokens, costUsd }: Total): JsonObject {
  const { input, cacheRead: cache_read, cacheWrite: cache_write, output, reasoning, estimated = 0 } = tokens;
  const counted = { calls, unpriced_calls: unpriced, estimated_calls: estimated, input, cache_read, cache_write };
  return { ...counted, output, reasoning, cost_usd: ledger.roundedUsd(costUsd) };
}

type Total = Omit<ledger.SpendSum, 'key'>;

function print(out: Output, by: ledger.SpendKey, sums: readonly ledger.SpendSum[], total: Total, days: number): void {
  const heads = [by, 'calls', 'input', 'cache read', 'cache write', 'output', 'USD'];
  const lines = [...sums.map(({ key, ...sum }) => [key, ...cellsOf(sum)]), ['total', ...cellsOf(total)]];
  printTable(out, days, [heads, ...lines], Math.max(...[heads, ...lines].map(([key = '']) => key.length)));
  if (total.unpriced > 0)
    out.line(out.style('dim', `${total.unpriced} calls have no known price and are not included.`));
  if (total.usage.estimated) {
    const count = `${total.usage.estimated} of these calls`;
    out.line(out.style('dim', `~ includes an estimate: the vendors did not report all token counts of ${count}.`));
  }
}

/** What was paid for: each kind is counted in a unit of its own, and what has no known price says so. */
function showKinds(out: Output, kinds: readonly ledger.KindSum[], from: string, days: number): void {
  const usd = kinds.reduce((sum, kind) => sum + kind.usd, 0);
  const total = { cost_usd: ledger.roundedUsd(usd) };
  out.document({ status: 'success', from, by: 'kind', rows: kinds.map(kindDocument), total });
  // Words of the line say already that it is not priced.
  const costOf = (kind: ledger.KindSum) => (ledger.knownUsd(kind) === undefined ? '' : ledger.usdText(kind.usd));
  const lines = kinds.map(kind => [kind.kind, ledger.kindWords(kind), costOf(kind)]);
  const width = Math.max(0, ...lines.map(([, words = '']) => words.length));
  printTable(out, days, [['kind', '', 'USD'], ...lines, ['total', '', ledger.usdText(usd)]], 15, width);
}

/** The first column is on the left; heads and sums, between which there may be nothing, stand out. */
function printTable(out: Output, days: number, rows: readonly (readonly string[])[], first: number, second = 13) {
  if (rows.length === 2) return out.line(`No model calls ${days === 1 ? 'today' : `in the last ${days} days`}.`);
  for (const [at, [key = '', cell = '', ...cells]] of rows.entries()) {
    const line = [key.padEnd(first), cell.padStart(second), ...cells.map(each => each.padStart(13))].join('');
    out.line(at === 0 || at === rows.length - 1 ? out.style('bold', line) : line);
  }
}

function kindDocument(sum: ledger.KindSum): JsonObject {
  const { kind, unit, amount, unpriced = 0 } = sum;
  const usd = ledger.knownUsd(sum);
  return { kind, amount, unit, not_priced: unpriced, cost_usd: usd === undefined ? undefined : ledger.roundedUsd(usd) };
}

function cellsOf({ calls, usage: tokens, costUsd }: Total): string[] {
  const { input, cacheRead, cacheWrite, output } = tokens;
  const mark = tokens.estimated ? '~' : '';
  const cell = (count: number, before = '') => before + count.toLocaleString('en-US');
  const counts = [cell(calls), cell(input, mark), cell(cacheRead), cell(cacheWrite), cell(output, mark)];
  return [...counts, mark + ledger.usdText(costUsd)];
}
