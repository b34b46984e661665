import { z } from 'zod';
import { type Effort, efforts, type InputKind, type ModelInfo, type Price } from '../../core/model.ts';
import { plainModel } from '../provider.ts';
import { isChatId } from '../routing/names.ts';

/** What models.dev tells of one model, in our words. */
export interface ModelFacts {
  id: string;
  name: string;
  /** Tokens. */
  window: number;
  maxOutput?: number;
  input: readonly InputKind[];
  reasoning: boolean;
  efforts: readonly Effort[];
  thinkingBudget?: { min: number; max: number };
  temperature: boolean;
  tools: boolean;
  price?: Price;
  deprecated: boolean;
}

/** By our provider ids. */
export type FactsByProvider = Readonly<Record<string, readonly ModelFacts[]>>;

/** Their provider → ours. Others of theirs are none of ours. */
const providerIds: Readonly<Record<string, string>> = {
  anthropic: 'anthropic',
  deepseek: 'deepseek',
  google: 'google',
  groq: 'groq',
  minimax: 'minimax',
  moonshotai: 'moonshot',
  openai: 'openai',
  openrouter: 'openrouter',
  xai: 'xai',
  zai: 'zhipu',
};

const leastWindow = 8_192;
const maxTokens = 100_000_000;
/** Far above what any vendor serves. */
const maxModels = 3_000;
const tokens = z.number().int().min(0).max(maxTokens);
const dollars = z.number().min(0).max(100_000);
const kinds = ['text', 'image', 'pdf', 'audio', 'video'] as const;

const modelSchema = z.object({
  id: z
    .string()
    .min(1)
    .max(200)
    .regex(/^[\w~][\w.:@/+~-]*$/),
  name: z.string().min(1).max(200).optional(),
  reasoning: z.boolean().optional(),
  temperature: z.boolean().optional(),
  tool_call: z.boolean().optional(),
  status: z.string().optional(),
  modalities: z.object({ input: z.array(z.string()), output: z.array(z.string()) }),
  limit: z.object({ context: tokens, output: tokens.optional() }),
  cost: z
    .object({ input: dollars, output: dollars, cache_read: dollars.optional(), cache_write: dollars.optional() })
    .optional(),
  reasoning_options: z
    .array(
      z.object({
        type: z.string(),
        values: z.array(z.string()).optional(),
        min: z.number().optional(),
        max: z.number().optional(),
      }),
    )
    .optional(),
});
type Entry = z.infer<typeof modelSchema>;

const documentSchema = z.record(z.string(), z.looseObject({ models: z.record(z.string(), z.unknown()) }));

/** Those parts of api.json that are read here; much smaller than the whole. */
export function ourPart(body: unknown): unknown {
  const document = documentSchema.safeParse(body);
  if (!document.success) return {};
  const parts = Object.keys(providerIds).flatMap(id => {
    const { models = {} } = Object.hasOwn(document.data, id) ? (document.data[id] ?? {}) : {};
    const sound = Object.entries(models).flatMap(([key, raw]) => {
      const { success, data } = modelSchema.safeParse(raw);
      return success ? [[key, data]] : [];
    });
    return sound.length === 0 ? [] : [[id, { models: Object.fromEntries(sound) }]];
  });
  return Object.fromEntries(parts);
}

/** Reads the body of models.dev's api.json; undefined when it is none. What is no chat model, or malformed, is left out. */
export function readModelsDev(body: unknown): FactsByProvider | undefined {
  const document = documentSchema.safeParse(body);
  if (!document.success) return undefined;
  const entries = Object.entries(providerIds).flatMap(([theirs, ours]): [string, ModelFacts[]][] => {
    const found = Object.hasOwn(document.data, theirs) ? document.data[theirs] : undefined;
    const facts = Object.values(found?.models ?? {})
      .slice(0, maxModels)
      .flatMap(factsOf);
    return facts.length === 0 ? [] : [[ours, facts]];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function factsOf(raw: unknown): ModelFacts[] {
  const entry = modelSchema.safeParse(raw);
  if (!entry.success || !isChat(entry.data)) return [];
  const { id, name = id, limit, cost, reasoning = false, temperature = true, tool_call: tools = false } = entry.data;
  return [
    {
      id,
      name,
      window: limit.context,
      ...(limit.output ? { maxOutput: Math.min(limit.output, limit.context) } : {}),
      input: kinds.filter(kind => kind === 'text' || entry.data.modalities.input.includes(kind)),
      reasoning,
      ...thinkingOf(entry.data),
      temperature,
      tools,
      ...(cost ? { price: priceOf(cost) } : {}),
      deprecated: entry.data.status === 'deprecated',
    },
  ];
}

function isChat({ id, modalities, limit }: Entry): boolean {
  const { input, output } = modalities;
  return isChatId(id) && input.includes('text') && output.includes('text') && limit.context >= leastWindow;
}

const priceOf = ({ input, output, cache_read, cache_write }: NonNullable<Entry['cost']>): Price => ({
  in: input,
  out: output,
  ...(cache_read === undefined ? {} : { cacheRead: cache_read }),
  ...(cache_write === undefined ? {} : { cacheWrite: cache_write }),
});

function thinkingOf({
  reasoning,
  reasoning_options: options = [],
}: Entry): Pick<ModelFacts, 'efforts' | 'thinkingBudget'> {
  if (!reasoning) return { efforts: [] };
  const budget = options.find(({ type }) => type === 'budget_tokens');
  if (budget?.max !== undefined) {
    return { efforts: [], thinkingBudget: { min: Math.max(0, budget.min ?? 0), max: budget.max } };
  }
  const words = options.flatMap(({ values }) => values ?? []);
  return { efforts: efforts.filter(effort => words.includes(effort)) };
}

/** Of a model that nobody here has looked at, a low score: it is there to be named, not to be chosen. */
const strangerScore = 1;

/** Lays facts over the models: of known ones what vendors change, as prices and limits; unknown ones are added. */
export function overlayFacts(models: readonly ModelInfo[], facts: FactsByProvider): ModelInfo[] {
  const byKey = new Map(
    Object.entries(facts).flatMap(([provider, rows]) => rows.map(row => [`${provider}:${row.id}`, { provider, row }])),
  );
  const known = models.map(model => {
    const key = `${model.provider}:${model.id}`;
    const found = byKey.get(key);
    byKey.delete(key);
    return found ? renewed(model, found.row) : model;
  });
  return [...known, ...[...byKey.values()].map(({ provider, row }) => added(provider, row))];
}

/** How a model is asked (efforts, budgets) stays: those were looked at. */
function renewed(model: ModelInfo, facts: ModelFacts): ModelInfo {
  const { window, maxOutput = model.maxOutput, input, price = model.price, tools } = facts;
  return {
    ...model,
    window,
    maxOutput: Math.min(maxOutput, window),
    input,
    tools,
    ...(price ? { price } : {}),
    // A price that was fetched is newer than one that was announced.
    ...(facts.price && model.life && { life: { ...model.life, priceFrom: undefined } }),
    status: facts.deprecated ? 'deprecated' : 'active',
  };
}

function added(provider: string, facts: ModelFacts): ModelInfo {
  const { deprecated, temperature, maxOutput = Math.min(32_768, Math.floor(facts.window / 2)), ...rest } = facts;
  return plainModel({
    provider,
    ...rest,
    maxOutput,
    temperature: temperature ? 'range' : 'none',
    score: strangerScore,
    status: deprecated ? 'deprecated' : 'active',
  });
}
