import { z } from 'zod';
import { AppError, configError } from '../../core/errors.ts';
import { type Effort, efforts, type InputKind, type ModelInfo, type Price } from '../../core/model.ts';
import type { Clock, KeptTexts } from '../../core/ports.ts';
import { checkedBaseUrl, plainModel } from '../provider.ts';
import { boundedFetch } from '../resilience/bounded-body.ts';
import { badUpstream, toModelError } from '../resilience/errors.ts';
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

function thinkingOf({ reasoning, reasoning_options: options = [] }: Entry) {
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

const keptName = 'models-dev.json';
const maxTagLength = 200;
const patienceMs = 30_000;

export interface RefreshParts {
  kept?: KeptTexts;
  clock: Clock;
  /** Address of api.json. */
  url: string;
}

/** The body stays as the source told it: a later release of ours may read more of it. */
const keptSchema = z.object({ version: z.literal(1), at: z.number(), etag: z.string().optional(), body: z.unknown() });

/** Undefined when nothing was ever fetched, or what was is damaged. */
export async function keptFacts(
  kept: KeptTexts | undefined,
): Promise<{ at: number; etag?: string; facts: FactsByProvider } | undefined> {
  const text = await kept?.read(keptName);
  if (text === undefined) return undefined;
  try {
    const file = keptSchema.parse(JSON.parse(text));
    const facts = readModelsDev(file.body);
    return facts && { at: file.at, ...(file.etag === undefined ? {} : { etag: file.etag }), facts };
  } catch {
    // Damaged or of another release: as if it were not there, and the next refresh writes it anew.
    return undefined;
  }
}

/** Fetches the facts and keeps them. Throws an `AppError`; what was kept before then stays. */
export async function refreshFacts({ kept, clock, url }: RefreshParts, signal: AbortSignal) {
  if (!kept) {
    throw configError('Nothing may be written, so that no facts can be kept.', {
      next: 'Start it without --private and with a store on disk.',
    });
  }
  const before = await keptFacts(kept);
  const answer = await fetched(url, before?.etag, AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]));
  if (answer === 'unchanged') return summary(before?.facts ?? {}, false);
  const body = ourPart(answer.body);
  const facts = readModelsDev(body);
  if (!facts) throw badUpstream(`${url} answered with something that is no list of models.`, false, advice);
  const file = { version: 1, at: clock.now(), ...(answer.etag === undefined ? {} : { etag: answer.etag }), body };
  await kept.write(keptName, JSON.stringify(file));
  return summary(facts, true);
}

const advice =
  'What was fetched before stays. Retry later, or check whether a proxy answers in its place; MODELS_DEV_URL sets another URL.';

async function fetched(url: string, etag: string | undefined, signal: AbortSignal) {
  const address = checkedBaseUrl(url, 'MODELS_DEV_URL');
  const origin = { provider: 'models.dev', model: 'its list of models', now: 0 };
  try {
    const headers = { accept: 'application/json', ...(etag === undefined ? {} : { 'if-none-match': etag }) };
    const response = await boundedFetch(address, { headers, signal });
    if (response.status === 304 && etag !== undefined) {
      await response.body?.cancel();
      return 'unchanged';
    }
    const text = (await response.text()) || response.statusText;
    if (!response.ok) {
      throw Object.assign(new Error('no list of models'), { statusCode: response.status, responseBody: text });
    }
    const tag = response.headers.get('etag');
    const body: unknown = JSON.parse(text);
    return { body, ...(tag === null || tag.length > maxTagLength ? {} : { etag: tag }) };
  } catch (error) {
    if (error instanceof SyntaxError)
      throw badUpstream(`${url} answered with something else than JSON.`, false, advice);
    const { kind, message, details } = toModelError(error, origin);
    throw new AppError(kind, message, { ...details, next: advice });
  }
}

/** What a refresh brought. `changed`: the source has something newer than what was there. */
function summary(facts: FactsByProvider, changed: boolean) {
  const rows = Object.values(facts);
  return { changed, models: rows.reduce((sum, list) => sum + list.length, 0), providers: Object.keys(facts) };
}
