/**
 * Prints what `auto` picks with each vendor's key alone and with six sets of keys, for each category, size and capability, and
 * what such a call may cost:  node scripts/auto-picks.ts [--day YYYY-MM-DD]
 * Ends with 1 where one of the candidates is retired on that day, by the facts and not by what routing made of them.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Clock } from '../src/core/ports.ts';
import { createModelService } from '../src/models/call/models.ts';
import type { Category } from '../src/models/routing/roster.ts';
import { providers } from '../src/providers/index.gen.ts';
import { readFacts } from './catalogue.ts';
import { table } from './generate/markdown.ts';

export const vendors = [
  'anthropic',
  'deepseek',
  'google',
  'groq',
  'minimax',
  'moonshot',
  'openai',
  'openrouter',
  'xai',
  'zhipu',
] as const;

const sets: readonly (readonly string[])[] = [
  ...vendors.map(vendor => [vendor]),
  ['anthropic', 'openai'],
  ['google', 'openai'],
  ['anthropic', 'google', 'openrouter'],
  ['deepseek', 'groq', 'xai'],
  ['deepseek', 'minimax', 'moonshot', 'zhipu'],
  vendors,
];

const categories: readonly Category[] = ['extended_reasoning', 'balanced', 'fast_response'];

/** Tokens of the prompt. */
const sizes = [2_000, 100_000, 600_000];

const capabilities = { text: {}, images: { vision: true }, search: { search: true } };

/** US dollars that AUTO_COST_LIMIT leaves to a call where nobody sets it. */
const usualLimit = 2;

/** What is picked in one situation. */
export interface Pick {
  keys: string;
  category: Category;
  size: number;
  capability: string;
  /** `provider:id` of all candidates, the one that is asked first; empty where none can do it. */
  candidates: string[];
  usd?: number;
}

export async function autoPicks(day: string): Promise<Pick[]> {
  const picks: Pick[] = [];
  for (const keys of sets) {
    const team = teamOf(keys, Date.parse(day));
    for (const category of categories) {
      for (const size of sizes) {
        for (const [capability, more] of Object.entries(capabilities)) {
          const needs = { window: size, ...more };
          const { candidates } = await team.explain({ name: 'auto', category, needs, promptTokens: size });
          const names = candidates.map(({ model }) => `${model.provider}:${model.id}`);
          const found = { keys: keys === vendors ? 'all' : keys.join(' + '), category, size, capability };
          picks.push({ ...found, candidates: names, usd: candidates[0]?.usd });
        }
      }
    }
  }
  return picks;
}

/** The product's models with nothing but keys that open nothing: no vendor is asked. */
function teamOf(keys: readonly string[], now: number) {
  const clock: Clock = {
    ...{ now: () => now, storeTime: () => now, monotonic: () => 0, sinceBoot: () => ({ boot: '', ms: 0 }) },
    ...{ after: () => () => {}, sleep: async () => {} },
  };
  const policy = {
    allowed: {},
    denied: [],
    localOnly: false,
    prefer: 'quality',
    allowUnknown: false,
    offline: false,
  } as const;
  return createModelService({
    definitions: providers,
    settings: Object.fromEntries(keys.map(id => [id, { apiKey: 'none' }])),
    policy: { ...policy, autoCostLimit: usualLimit },
    maxThinkingTokens: 32_000,
    clock,
    random: { uuid: () => 'none', fraction: () => 0.5 },
    emit: () => {},
  });
}

/** Candidates that their vendors retired by then. */
export function retiredAmong(picks: readonly Pick[], day: string, text: string): string[] {
  const gone = readFacts(text).filter(({ retired, provider }) => provider !== 'ollama' && retired && retired <= day);
  const names = new Set(gone.map(({ provider, id }) => `${provider}:${id}`));
  return [...new Set(picks.flatMap(({ candidates }) => candidates).filter(name => names.has(name)))];
}

export function picksTable(picks: readonly Pick[]): string {
  const rows = Map.groupBy(picks, ({ keys, category, size }) => [keys, category, size.toLocaleString('en')].join('|'));
  const cellOf = ({ candidates: [first], usd }: Pick) => (first ? `${first} ${priceText(usd)}` : 'none');
  return table(
    ['keys', 'category', 'tokens', ...Object.keys(capabilities)],
    [...rows].map(([row, cells]) => [...row.split('|'), ...cells.map(cellOf)]),
  );
}

function priceText(usd: number | undefined): string {
  return usd === undefined ? '(not priced)' : `$${usd.toFixed(4)}`;
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { day: { type: 'string' } } });
  const day = values.day ?? new Date().toISOString().slice(0, 10);
  const picks = await autoPicks(day);
  console.log(picksTable(picks));
  const facts = readFileSync(new URL('./data/model-facts.jsonl', import.meta.url), 'utf8');
  const retired = retiredAmong(picks, day, facts);
  if (retired.length > 0) {
    console.error(`Retired on ${day}: ${retired.join(', ')}`);
    process.exitCode = 1;
  }
}
