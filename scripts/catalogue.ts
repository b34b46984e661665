/**
 * Makes src/models/catalogue/catalogue.gen.json and docs/reference/models.md from scripts/data/model-facts.jsonl, and reports
 * rows that nobody looked at for 90 days:  npm run catalogue
 * Ends with 1 where a row has no source, and names it.
 * With `-- --changes https://models.dev/api.json` (or a file) it writes nothing, but lists what is otherwise there, as the body of
 * an issue, and ends with 1 where there is such a thing: a nightly job opens it.
 * One fact sheet a line. Which rows stay, how they are scored and what they are called is decided here and beside.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import type { Effort, InputKind, ModelInfo, Price, Rates } from '../src/core/model.ts';
import { efforts } from '../src/core/model.ts';
import { isChatId, modelKey, undatedKey } from '../src/models/routing/names.ts';
import { assignAliases } from './catalogue-aliases.ts';
import { changesSince, describeModels, reportOf } from './catalogue-report.ts';
import { isSpecial, scoreOf } from './catalogue-scores.ts';

const rates = { in: z.number(), out: z.number(), cacheRead: z.number().optional(), cacheWrite: z.number().optional() };

const day = z.iso.date();
const prices = z.object({ ...rates, tiers: z.array(z.object({ above: z.number(), ...rates })).optional() });

const factSchema = z.object({
  provider: z.string(),
  id: z.string().min(1),
  name: z.string(),
  context: z.number().nullish(),
  maxOutput: z.number().nullish(),
  input: z.array(z.enum(['text', 'image', 'pdf', 'audio', 'video'])),
  reasoning: z.boolean(),
  reasoningOptions: z
    .array(
      z.object({
        type: z.enum(['toggle', 'effort', 'budget_tokens']),
        values: z.array(z.string()).optional(),
        min: z.number().optional(),
        max: z.number().optional(),
      }),
    )
    .optional(),
  /** Our effort (`off` for `none`) → the vendor's word, null where it has none. Low, medium and high may be left out. */
  levels: z.record(z.string(), z.string().nullable()).optional(),
  usdPerMTok: prices.nullish(),
  /** The price that was announced for a day to come. */
  priceFrom: z.object({ date: day, usdPerMTok: prices }).optional(),
  released: z.string().nullish(),
  tools: z.boolean().optional(),
  temperature: z.boolean().optional(),
  /** From when on the vendor advises against it, and does not serve it. */
  deprecated: day.optional(),
  retired: day.optional(),
  /** The id that the vendor names in its place. */
  replacedBy: z.string().optional(),
  status: z.string().nullish(),
  legacy: z.boolean().optional(),
  /** The page that says all this, and the day for which it does. */
  source: z.url().optional(),
  checked: day.optional(),
});
export type Fact = z.infer<typeof factSchema>;

const providerIds = new Map([
  ['zai', 'zhipu'],
  ['moonshotai', 'moonshot'],
  ['ollama-cloud', 'ollama'],
]);

const leastWindow = 8_192;

function isChat(fact: Fact): boolean {
  if (fact.legacy) return true;
  return isChatId(fact.id) && fact.input.includes('text') && (fact.context ?? 0) >= leastWindow;
}

/** From this score on, a model may be asked to write whole files. */
const codeGenerationScore = 16;

function toModel(fact: Fact, generation: number): ModelInfo {
  const window = fact.context ?? leastWindow;
  const price = priceOf(fact);
  const score = scoreOf({ ...fact, price, generation });
  return {
    provider: fact.provider,
    id: fact.id,
    name: fact.name.replace(/^[^:]+: /, '').trim(),
    aliases: [],
    window,
    maxOutput: Math.min(fact.maxOutput ?? Math.min(32_768, Math.floor(window / 2)), window),
    input: inputOf(fact),
    ...thinkingOf(fact),
    reasoning: fact.reasoning,
    temperature: temperatureOf(fact),
    tools: fact.tools ?? !fact.legacy,
    ...(price ? { price } : {}),
    score,
    allowCodeGeneration: score >= codeGenerationScore && !isSpecial(fact.id),
    status: fact.status === 'deprecated' ? 'deprecated' : 'active',
    ...lifeOf(fact),
  };
}

/** What runs on people's own machines does not end with a vendor's cloud: there the server's list decides. */
function lifeOf(fact: Fact): Pick<ModelInfo, 'life'> {
  const { provider, deprecated, retired, replacedBy, priceFrom } = fact;
  if (provider === 'ollama' || !(deprecated || retired || replacedBy || priceFrom)) return {};
  const price = priceFrom && priceOf({ ...fact, usdPerMTok: priceFrom.usdPerMTok });
  const later = price && priceFrom ? { priceFrom: { day: priceFrom.date, price } } : {};
  return { life: { deprecated, retired, replacedBy, ...later } };
}

function inputOf(fact: Fact): InputKind[] {
  const kinds: InputKind[] = ['text', 'image', 'pdf', 'audio', 'video'];
  return kinds.filter(kind => fact.input.includes(kind));
}

/** A price of nothing beside a sibling that costs is a subscription's, and says nothing about a call. */
function priceOf(fact: Fact): Price | undefined {
  const given = fact.usdPerMTok;
  if (!given || (given.in === 0 && /highspeed/i.test(fact.id))) return undefined;
  const ofMaker = (rates: Rates) => ratesOf(rates, ['anthropic', 'moonshot'].includes(fact.provider));
  const tiers = given.tiers?.map(({ above, ...rates }) => ({ above, ...ofMaker(rates) }));
  return { ...ofMaker(given), ...(tiers ? { tiers: tiers.toSorted((a, b) => a.above - b.above) } : {}) };
}

/** Anthropic, and Moonshot from K3 on, sell a cache that lasts for an hour, for twice the price of input. */
function ratesOf(rates: Rates, sellsHour: boolean): Rates {
  return {
    in: rates.in,
    out: rates.out,
    ...(rates.cacheRead ? { cacheRead: rates.cacheRead } : {}),
    ...(rates.cacheWrite ? { cacheWrite: rates.cacheWrite } : {}),
    ...(rates.cacheWrite && sellsHour ? { cacheWriteHour: Number((rates.in * 2).toFixed(6)) } : {}),
  };
}

/** Anthropic names no upper end of its budget; this one leaves room for the answer in every window. */
const budgetWithoutEnd = 16_000;

/**
 * Efforts or a budget: levels are the vendor's newer word, then a budget, then efforts, then on and off. Beside a budget
 * stands at most `none`, where thinking can be left off: at Anthropic it is off until a budget is sent.
 */
function thinkingOf(fact: Fact): Pick<ModelInfo, 'efforts' | 'thinkingBudget'> {
  if (!fact.reasoning) return { efforts: [] };
  if (fact.levels && Object.values(fact.levels).some(word => word !== null)) {
    return { efforts: fromLevels(fact.levels) };
  }
  const options = fact.reasoningOptions ?? [];
  const budget = options.find(option => option.type === 'budget_tokens');
  const off = options.some(option => option.type === 'toggle') || (budget && fact.provider === 'anthropic');
  if (budget) {
    const range = { min: budget.min ?? 0, max: budget.max ?? budgetWithoutEnd };
    return { efforts: off ? ['none'] : [], thinkingBudget: range };
  }
  const words = options.flatMap(option => option.values ?? []).map(word => (word === 'default' ? 'high' : word));
  if (words.length > 0) {
    return { efforts: efforts.filter(effort => words.includes(effort) || (off && effort === 'none')) };
  }
  if (off) return { efforts: ['none', 'high'] };
  // OpenRouter takes these three for whatever thinks behind it, and translates.
  return { efforts: fact.provider === 'openrouter' ? ['low', 'medium', 'high'] : [] };
}

function fromLevels(levels: Record<string, string | null>): Effort[] {
  const unsaid: readonly Effort[] = ['none', 'low', 'medium', 'high'];
  return efforts.filter(effort => {
    const word = levels[effort === 'none' ? 'off' : effort];
    return word === undefined ? unsaid.includes(effort) : word !== null;
  });
}

/** Where nothing is said: these vendors refuse a temperature for models that think. */
const refuseTemperature = new Set(['openai', 'anthropic', 'moonshot']);

/** The vendor fixes it, whatever the facts say: any other value is refused. */
const fixedTemperature = /^kimi-k(2\.[5-9]|[3-9])/;

function temperatureOf(fact: Fact): ModelInfo['temperature'] {
  if (fact.provider === 'moonshot' && fixedTemperature.test(fact.id)) return 'none';
  const takes = fact.temperature ?? !(fact.reasoning && refuseTemperature.has(fact.provider));
  return takes ? 'range' : 'none';
}

/**
 * How new a row is, in half years from 2025 H1 (0) on; at most 3. Rows of a vendor without a date are newer than all dated
 * ones, those of the first design older; an aggregator's row takes the generation of the same model at its maker.
 */
function generations(facts: readonly Fact[]): (fact: Fact) => number {
  const newest = 3;
  const dated = (fact: Fact): number | undefined => {
    const match = /^(\d{4})-(\d{2})/.exec(fact.released ?? '');
    if (!match) return undefined;
    const halves = (Number(match[1]) - 2025) * 2 + (Number(match[2]) > 6 ? 1 : 0);
    return Math.max(-6, Math.min(newest, halves < 0 ? halves * 2 : halves));
  };
  const makers = facts.filter(fact => fact.provider !== 'openrouter' && fact.provider !== 'ollama');
  const own = (fact: Fact) => dated(fact) ?? (fact.legacy ? -1 : newest);
  const byName = new Map(makers.map(fact => [modelKey(fact.id), own(fact)]));
  return fact => {
    if (fact.provider === 'openrouter') {
      if (fact.id.startsWith('~')) return newest;
      return byName.get(modelKey(fact.id)) ?? byName.get(undatedKey(fact.id)) ?? fromName(fact.id);
    }
    return own(fact);
  };
}

/** `…-2512` and the like carry their month; anything else is taken as older than 2025. */
function fromName(id: string): number {
  const month = /-(2[3-9])(0[1-9]|1[0-2])\b/.exec(id);
  if (!month) return -1;
  return Math.min(3, (Number(month[1]) - 25) * 2 + (Number(month[2]) > 6 ? 1 : 0));
}

/** The facts by our names of providers. */
export function readFacts(text: string): Fact[] {
  const lines = text.split('\n').filter(line => line.trim() !== '');
  const facts = lines.map(line => factSchema.parse(JSON.parse(line)));
  return facts.map(fact => ({ ...fact, provider: providerIds.get(fact.provider) ?? fact.provider }));
}

/**
 * What an aggregator passes on ends at its maker first, unless others can run it too; it has hosts of its own, though, so
 * that only its list knows when it is gone.
 */
function withMakersEnd(facts: readonly Fact[]): (fact: Fact) => Fact {
  const closed = /^(anthropic\/|openai\/(?!gpt-oss)|google\/gemini|x-ai\/)/;
  const makers = facts.filter(({ provider }) => provider !== 'openrouter' && provider !== 'ollama');
  const ends = new Map(makers.map(fact => [modelKey(fact.id), fact.deprecated ?? fact.retired]));
  return fact => {
    if (fact.provider !== 'openrouter' || !closed.test(fact.id)) return fact;
    const end = ends.get(modelKey(fact.id.replace(/:.*$/, '')));
    return end ? { ...fact, deprecated: end } : fact;
  };
}

/** Pure: the facts' text in, the catalogue's text out; one row a line, members at their usual value left out. */
export function makeCatalogue(text: string): string {
  const facts = readFacts(text);
  const kept = facts.filter(isChat).map(withMakersEnd(facts));
  const generation = generations(kept);
  const models = assignAliases(kept.map(fact => toModel(fact, generation(fact))));
  const providers = [...new Set(models.map(model => model.provider))].sort();
  const blocks = providers.map(provider => {
    const rows = models.filter(model => model.provider === provider).map(model => JSON.stringify(compact(model)));
    return `${JSON.stringify(provider)}: [\n${rows.join(',\n')}\n]`;
  });
  return `{\n${blocks.join(',\n')}\n}\n`;
}

function compact(model: ModelInfo): Record<string, unknown> {
  const { provider: _, ...row } = model;
  return {
    id: row.id,
    name: row.name,
    aliases: row.aliases.length > 0 ? row.aliases : undefined,
    window: row.window,
    maxOutput: row.maxOutput,
    input: row.input.length > 1 ? row.input.filter(kind => kind !== 'text') : undefined,
    efforts: row.efforts.length > 0 ? row.efforts : undefined,
    thinkingBudget: row.thinkingBudget,
    reasoning: row.reasoning || undefined,
    noTemperature: row.temperature === 'none' || undefined,
    noTools: !row.tools || undefined,
    price: row.price,
    score: row.score,
    code: row.allowCodeGeneration || undefined,
    deprecated: row.status === 'deprecated' || undefined,
    life: row.life,
  };
}

const at = (path: string) => new URL(`../${path}`, import.meta.url);

/** What is generated from the facts, by path. */
export function catalogueFiles(text: string): Map<string, string> {
  return new Map([
    ['src/models/catalogue/catalogue.gen.json', makeCatalogue(text)],
    ['docs/reference/models.md', describeModels(readFacts(text))],
  ]);
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { changes: { type: 'string' } } });
  const text = readFileSync(at('scripts/data/model-facts.jsonl'), 'utf8');
  const today = new Date().toISOString().slice(0, 10);
  if (values.changes === undefined) {
    const report = reportOf(readFacts(text), today);
    console.log(report.text);
    if (report.unsourced.length > 0) process.exitCode = 1;
    for (const [path, made] of catalogueFiles(text)) writeFileSync(at(path), made);
  } else {
    const isFile = !/^https?:/.test(values.changes);
    const api = isFile ? readFileSync(values.changes, 'utf8') : await (await fetch(values.changes)).text();
    const changes = changesSince(api, today);
    console.log(changes.join('\n'));
    if (changes.length > 0) process.exitCode = 1;
  }
}
