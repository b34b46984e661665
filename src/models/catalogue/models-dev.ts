import { z } from 'zod';
import { AppError, configError } from '../../core/errors.ts';
import { parsedJson } from '../../core/json.ts';
import { efforts, type ModelInfo, type Price } from '../../core/model.ts';
import type { Clock, KeptText } from '../../core/ports.ts';
import { checkedBaseUrl, plainModel } from '../provider.ts';
import { boundedFetch } from '../resilience/bounded-fetch.ts';
import { badUpstream, toModelError } from '../resilience/errors.ts';
import { isChatId } from '../routing/names.ts';
import { strangerScore } from '../routing/roster.ts';

/** What models.dev tells of one model, in our words. */
type ModelFacts = ReturnType<typeof factsOf>;

/** By our provider ids. */
type FactsByProvider = Readonly<Record<string, readonly ModelFacts[]>>;

const alikeIds = ['anthropic', 'deepseek', 'google', 'groq', 'minimax', 'openai', 'openrouter', 'xai'];

/** Their provider → ours. Others of theirs are none of ours. */
const providerIds: Readonly<Record<string, string>> = {
  ...Object.fromEntries(alikeIds.map(id => [id, id])),
  moonshotai: 'moonshot',
  zai: 'zhipu',
};

const leastWindow = 8_192;
const maxTokens = 100_000_000;
/** Far above what any vendor serves. */
const maxModels = 3_000;
const tokens = z.number().int().min(0).max(maxTokens);
const dollars = z.number().min(0).max(100_000);
export const inputKinds = ['text', 'image', 'pdf', 'audio', 'video'] as const;

const thinkingSchema = () =>
  z
    .object({ values: z.array(z.string()), min: z.number(), max: z.number() })
    .partial()
    .extend({ type: z.string() });

const modelSchema = () =>
  z.object({
    id: z.string().regex(/^[\w~][\w.:@/+~-]{0,199}$/),
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
    reasoning_options: z.array(thinkingSchema()).optional(),
  });
type Entry = z.infer<ReturnType<typeof modelSchema>>;

const documentSchema = () => z.record(z.string(), z.looseObject({ models: z.record(z.string(), z.unknown()) }));

/** Those parts of api.json that are read here, without what is malformed; much smaller than the whole. */
function ourPart(body: unknown) {
  const { data: document = {} } = documentSchema().safeParse(body);
  const schema = modelSchema();
  const parts = Object.keys(providerIds).flatMap(id => {
    const sound = Object.entries(document[id]?.models ?? {}).flatMap(([key, raw]) => {
      const { data } = schema.safeParse(raw);
      return data ? [[key, data] as const] : [];
    });
    return sound.length === 0 ? [] : [[id, { models: Object.fromEntries(sound) }] as const];
  });
  return Object.fromEntries(parts);
}

/** Reads the body of models.dev's api.json; undefined when it is none. What is no chat model, or malformed, is left out. */
export function readModelsDev(body: unknown): FactsByProvider | undefined {
  const entries = Object.entries(ourPart(body)).flatMap(([id, { models }]) => {
    const facts = Object.values(models).slice(0, maxModels).filter(isChat).map(factsOf);
    return facts.length === 0 ? [] : [[providerIds[id] ?? id, facts] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function factsOf({ limit, cost, modalities, status, ...entry }: Entry) {
  const { id, name = id, reasoning = false, temperature = true, tool_call: tools = false } = entry;
  return {
    id,
    name,
    window: limit.context,
    ...(limit.output ? { maxOutput: Math.min(limit.output, limit.context) } : {}),
    input: inputKinds.filter(kind => kind === 'text' || modalities.input.includes(kind)),
    reasoning,
    ...thinkingOf(entry),
    temperature: temperature ? 'range' : 'none',
    tools,
    ...(cost ? { price: priceOf(cost) } : {}),
    status: status === 'deprecated' ? 'deprecated' : 'active',
  } satisfies Partial<ModelInfo>;
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

function thinkingOf({ reasoning, reasoning_options: options = [] }: Pick<Entry, 'reasoning' | 'reasoning_options'>) {
  if (!reasoning) return { efforts: [] };
  const budget = options.find(({ type }) => type === 'budget_tokens');
  if (budget?.max !== undefined)
    return { efforts: [], thinkingBudget: { min: Math.max(0, budget.min ?? 0), max: budget.max } };
  const words = options.flatMap(({ values }) => values ?? []);
  return { efforts: efforts.filter(effort => words.includes(effort)) };
}

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
  const { window, maxOutput = model.maxOutput, input, price = model.price, tools, status } = facts;
  return {
    ...model,
    window,
    maxOutput: Math.min(maxOutput, window),
    input,
    tools,
    ...(price ? { price } : {}),
    // A price that was fetched is newer than one that was announced.
    ...(facts.price && model.life && { life: { ...model.life, priceFrom: undefined } }),
    status,
  };
}

function added(provider: string, facts: ModelFacts): ModelInfo {
  const maxOutput = Math.min(32_768, Math.floor(facts.window / 2));
  return plainModel({ provider, maxOutput, score: strangerScore, ...facts });
}

const maxTagLength = 200;
const patienceMs = 30_000;

/** The body stays as the source told it: a later release of ours may read more of it. */
const keptSchema = () =>
  z.object({ version: z.literal(1), at: z.number(), etag: z.string().optional(), body: z.unknown() });

/** Undefined when nothing was ever fetched, or what was is damaged or of another release: the next refresh writes it anew. */
export async function keptFacts(kept: KeptText | undefined) {
  const file = keptSchema().safeParse(parsedJson((await kept?.read()) ?? '')).data;
  const facts = readModelsDev(file?.body);
  return file && facts && { at: file.at, etag: file.etag, facts };
}

/** Fetches the facts from `url`, the address of api.json, and keeps them. Throws an `AppError`; what was kept before then stays. */
export async function refreshFacts(
  { kept, clock, url }: { kept?: KeptText; clock: Clock; url: string },
  signal: AbortSignal,
) {
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
  await kept.write(JSON.stringify({ version: 1, at: clock.now(), etag: answer.etag, body }));
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
    if (!response.ok)
      throw Object.assign(new Error('no list of models'), { statusCode: response.status, responseBody: text });
    const tag = response.headers.get('etag');
    const body: unknown = JSON.parse(text);
    return { body, etag: tag === null || tag.length > maxTagLength ? undefined : tag };
  } catch (error) {
    if (error instanceof SyntaxError)
      throw badUpstream(`${url} answered with something else than JSON.`, false, advice);
    const { kind, message, details } = toModelError(error, origin);
    throw new AppError(kind, message, { ...details, next: advice });
  }
}

/** What a refresh brought. `changed`: the source has something newer than what was there. */
function summary(facts: FactsByProvider, changed: boolean) {
  return { changed, models: Object.values(facts).flat().length, providers: Object.keys(facts) };
}
