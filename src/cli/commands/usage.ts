import { inputError } from '../../domain/error.ts';
import type { JsonObject } from '../../domain/json.ts';
import { roundedUsd, usdText } from '../../domain/money.ts';
import { dayOf, type SpendKey, type SpendSum, spendBy, spendKeys, spendTotal } from '../../domain/usage.ts';
import { type CommandContext, defineCommand } from '../command.ts';
import { textFlag } from '../flags.ts';
import { openProduct } from '../open-product.ts';
import type { Output } from '../output.ts';

const usualDays = 30;
const mostDays = 370;
const dayMs = 24 * 3_600_000;

export const usage = defineCommand({
  name: 'usage',
  summary: 'what models were asked and what that cost, by day, provider, model, tool or thread',
  usage: '',
  flags: [
    { name: 'days', value: 'number', doc: `How far back, today included (in UTC); ${usualDays} when it is not given.` },
    { name: 'by', value: 'word', choices: spendKeys, doc: 'What to add up by; day when it is not given.' },
  ],
  examples: [
    ['polylogue usage', 'the last 30 days, day by day'],
    ['polylogue usage --days 1 --by model', 'who was asked today'],
    ['polylogue usage --days 365 --by provider --json', 'a year, for programs'],
  ],
  async run(context) {
    const days = daysOf(context);
    const by = byOf(context);
    const from = dayOf(context.around.clock.now() - (days - 1) * dayMs);
    return openProduct(context, async ({ product }) => {
      const rows = await product.spent(from);
      const sums = spendBy(rows, by);
      const total = spendTotal(rows);
      if (context.out.json) {
        const shown = sums.map(({ key, ...sum }) => ({ [by]: key, ...documentOf(sum) }));
        context.out.document({ status: 'success', from, by, rows: shown, total: documentOf(total) });
      } else print(context.out, { by, sums, total, days });
      return 0;
    });
  },
});

function daysOf({ flags }: CommandContext): number {
  const given = textFlag(flags, 'days');
  const days = given === undefined ? usualDays : Number(given);
  if (Number.isInteger(days) && days >= 1 && days <= mostDays) return days;
  throw inputError(`"${given}" is no number of days.`, { next: `Give --days a whole number from 1 to ${mostDays}.` });
}

function byOf({ flags }: CommandContext): SpendKey {
  const given = textFlag(flags, 'by') ?? 'day';
  const by = spendKeys.find(key => key === given);
  if (by) return by;
  throw inputError(`Usage can't be added up by "${given}".`, { next: `Give --by one of ${spendKeys.join(', ')}.` });
}

function documentOf({ calls, unpriced, usage: tokens, costUsd }: Omit<SpendSum, 'key'>): JsonObject {
  return {
    calls,
    unpriced_calls: unpriced,
    input: tokens.input,
    cache_read: tokens.cacheRead,
    cache_write: tokens.cacheWrite,
    output: tokens.output,
    reasoning: tokens.reasoning,
    cost_usd: roundedUsd(costUsd),
  };
}

interface Table {
  by: SpendKey;
  sums: readonly SpendSum[];
  total: Omit<SpendSum, 'key'>;
  days: number;
}

function print(out: Output, { by, sums, total, days }: Table): void {
  if (sums.length === 0) {
    out.line(`No model was asked ${days === 1 ? 'today' : `in the last ${days} days`}.`);
    return;
  }
  const width = Math.max(by.length, 5, ...sums.map(({ key }) => key.length));
  const columns = ['calls', 'input', 'cache read', 'cache write', 'output', 'USD'];
  const line = (key: string, cells: readonly string[]) =>
    `${key.padEnd(width)}${cells.map(cell => cell.padStart(13)).join('')}`;
  out.line(out.style('bold', line(by, columns)));
  for (const { key, ...sum } of sums) out.line(line(key, cellsOf(sum)));
  out.line(out.style('bold', line('total', cellsOf(total))));
  if (total.unpriced > 0) {
    out.line(out.style('dim', `The cost of ${total.unpriced} of these calls is not known; it is not in the sums.`));
  }
}

function cellsOf({ calls, usage: tokens, costUsd }: Omit<SpendSum, 'key'>): string[] {
  const counts = [calls, tokens.input, tokens.cacheRead, tokens.cacheWrite, tokens.output];
  return [...counts.map(count => count.toLocaleString('en-US')), usdText(costUsd)];
}
