import type * as sdk from '@ai-sdk/provider';
import { configError } from '../core/errors.ts';
import { isRecord, numberIn, recordIn, textsIn } from '../core/json.ts';
import { efforts, type ModelInfo } from '../core/model.ts';
import { countedSearches } from '../models/fees.ts';
import { type CallParams, closestEffort, keyedProvider, type LiveModel, setting } from '../models/provider.ts';
import { type Fetch, sentBody } from './shared/http.ts';
import { isStrict } from './shared/json-schema.ts';
import { firstCount, liveList } from './shared/list-models.ts';
import { answerFetch } from './shared/non-streaming.ts';
import { mappedParts, type Part, searchTool, streamingModel, withErrors } from './shared/stream-transforms.ts';
import { fittedBudget } from './shared/thinking.ts';

/** The package's model with what it leaves out: the upstream provider's own words in errors, and the cost as `costUsd`. */
const withCostAndErrors = (model: sdk.LanguageModelV4): sdk.LanguageModelV4 =>
  withErrors(
    mappedParts(model, () => part => [mappedPart(part)]),
    withUpstreamWords,
  );

function mappedPart(part: Part): Part {
  if (part.type === 'error') return { ...part, error: streamError(part.error) };
  if (part.type === 'finish') {
    const costUsd = costOf(part.usage, part.providerMetadata);
    return costUsd === undefined ? part : { ...part, providerMetadata: { openrouter: { costUsd } } };
  }
  if (part.type !== 'source') return part;
  // What stands on the page goes along.
  const snippet = part.providerMetadata?.openrouter?.content;
  return typeof snippet === 'string' ? { ...part, providerMetadata: { openrouter: { snippet } } } : part;
}

/** With a key of the user's own at the upstream provider, that one's bill comes on top of OpenRouter's share. */
function costOf({ raw }: sdk.LanguageModelV4Usage, metadata: sdk.SharedV4ProviderMetadata | undefined) {
  const { cost, costDetails } = recordIn(metadata?.openrouter?.usage);
  if (typeof cost !== 'number') return undefined;
  return cost + (raw?.is_byok === true ? numberIn(recordIn(costDetails).upstreamInferenceCost) : 0);
}

/** The vendor's error object of a stream: its code is the status that it would have had. */
function streamError(error: unknown): unknown {
  if (!isRecord(error) || error instanceof Error) return error;
  const words = upstreamWords(error);
  return words === undefined ? error : { ...error, message: `${String(error.message)}: ${words}` };
}

/** The body says "Provider returned error"; what the provider said stands beside it. */
function withUpstreamWords(error: unknown): unknown {
  const { name, statusCode, responseHeaders, data } = recordIn(error);
  const told = recordIn(recordIn(data).error);
  const words = upstreamWords(told);
  if (words === undefined) return error;
  return Object.assign(new Error(`${String(told.message)}: ${words}`), { name, statusCode, responseHeaders });
}

function upstreamWords({ metadata }: Record<string, unknown>): string | undefined {
  const { provider_name: name, raw, reasons } = recordIn(metadata);
  const said = typeof raw === 'string' ? raw : isRecord(raw) ? JSON.stringify(raw) : undefined;
  const flagged = Array.isArray(reasons) ? `flagged for ${reasons.join(', ')}` : undefined;
  const words = [typeof name === 'string' ? name : undefined, said, flagged].filter(text => text !== undefined);
  return said === undefined && flagged === undefined ? undefined : words.join(': ');
}

/** The server tool, which the model calls when it wants to; the older plugin searches whatever is asked. */
const search = searchTool('openrouter.web_search', ({ maxResults, maxRounds, contentSize }) => ({
  parameters: {
    max_results: Math.min(25, maxResults),
    max_total_results: Math.min(25, maxResults) * maxRounds,
    ...(contentSize !== undefined && { search_context_size: contentSize }),
  },
}));

/** What OpenRouter's listing tells of a model. */
function factsOf(row: Record<string, unknown>): Omit<LiveModel, 'id'> {
  const { context_length: window, architecture, supported_parameters: takes, top_provider: top } = row;
  const read = textsIn(recordIn(architecture).input_modalities);
  return {
    ...(typeof window === 'number' && { window }),
    maxOutput: firstCount(recordIn(top).max_completion_tokens),
    ...(read.length > 0 && { input: read.includes('image') ? ['text', 'image'] : ['text'] }),
    ...(Array.isArray(takes) && thinkingOf(textsIn(takes).includes('reasoning'), row.reasoning)),
    ...priceOf(recordIn(row.pricing)),
  };
}

/** It writes dollars a token as text, and -1 where they vary. What costs by the request too has no price by tokens alone. */
function priceOf(told: Record<string, unknown>): Pick<LiveModel, 'price'> {
  const rate = (name: string) => {
    const usd = Number.parseFloat(String(told[name])) * 1_000_000;
    return usd >= 0 && usd < Infinity ? Number(usd.toFixed(6)) : undefined;
  };
  const [input, output, cacheRead, cacheWrite] = ['prompt', 'completion', 'input_cache_read', 'input_cache_write'].map(
    rate,
  );
  if (input === undefined || output === undefined || (told.request !== undefined && rate('request') !== 0)) return {};
  const out = Math.max(output, rate('internal_reasoning') ?? 0);
  return { price: { in: input, out, ...(cacheRead && { cacheRead }), ...(cacheWrite && { cacheWrite }) } };
}

/** OpenRouter brings any of the usual efforts to what a model takes, and `none` to all that need not think. */
function thinkingOf(reasoning: boolean, told: unknown): Pick<LiveModel, 'reasoning' | 'efforts'> {
  if (!reasoning) return { reasoning, efforts: [] };
  const { mandatory, supported_efforts: supported } = recordIn(told);
  const named = textsIn(supported);
  const taken = named.length > 0 ? named : ['low', 'medium', 'high'];
  return { reasoning, efforts: efforts.filter(word => (word === 'none' ? mandatory !== true : taken.includes(word))) };
}

export const openrouter = keyedProvider({
  id: 'openrouter',
  names: ['r'],
  title: 'OpenRouter',
  docs: {
    endpoint: 'POST https://openrouter.ai/api/v1/chat/completions',
    quirks: [
      'Models are named `vendor/model`, with a route behind a colon where one is wanted: `:free`, `:nitro`, `:floor`, `:online`, `:thinking`.',
      'What a call cost is what OpenRouter says it cost. Its list has the prices of models that are not in the catalogue.',
      'A name that is not in its list is passed on as typed, with a warning.',
    ],
    source: 'https://openrouter.ai/docs/api-reference/overview',
  },
  key: [
    ['OPENROUTER_API_KEY'],
    'Key of OpenRouter; with it the models of many vendors can be asked, as `vendor/model`.',
  ],
  address: [['OPENROUTER_BASE_URL']],
  baseUrl: 'https://openrouter.ai/api/v1',
  options: {
    referer: setting(['OPENROUTER_REFERER'], 'Address that OpenRouter shows as the app that asks; unset: none.'),
    appTitle: setting(['OPENROUTER_TITLE'], 'Name that OpenRouter shows as the app that asks; unset: none.'),
  },
  openEnded: true,
  async connect(access) {
    const { apiKey, baseUrl, settings } = access;
    const headers = {
      ...header('HTTP-Referer', settings.referer, 'OPENROUTER_REFERER'),
      ...header('X-Title', settings.appTitle, 'OPENROUTER_TITLE'),
    };
    const { createOpenRouter } = await import('@openrouter/ai-sdk-provider');
    const marking = createOpenRouter({ apiKey, baseURL: baseUrl, headers, fetch: answerFetch });
    const plain = createOpenRouter({ apiKey, baseURL: baseUrl, headers, fetch: stringFetch });
    return {
      languageModel: model => {
        const vendor = wantsMarks(model) ? marking : plain;
        const chat = (strict: boolean) =>
          vendor.chat(model.id, { usage: { include: true }, structuredOutputs: { strict } });
        return withCostAndErrors(streamingModel(chat(true), call => chat(isStrict(call)).doStream(call)));
      },
      providerOptions: params => ({
        openrouter: {
          ...reasoningOption(params),
          // Keeps a thread at the vendor that has its beginning in the cache.
          ...(params.cacheKey !== undefined && { session_id: params.cacheKey }),
        },
      }),
      vendorTools: search,
      usesIn: countedSearches,
      sendsStrings: model => !wantsMarks(model),
      cacheMark: { openrouter: { cacheControl: { type: 'ephemeral' } } },
      list: signal => liveList(access, signal, factsOf),
    };
  },
  // Its search is a tool, for models that call tools.
  searches: model => model.tools,
});

/** The families whose caches want marks; the others cache by themselves. */
const wantsMarks = ({ id }: ModelInfo): boolean => /^~?(?:anthropic|google|qwen)\//.test(id);

/** The package writes instructions as a list, which servers that read only strings refuse. */
const stringFetch: Fetch = (input, init) => {
  const body = sentBody(init);
  if (!Array.isArray(body?.messages)) return answerFetch(input, init);
  const messages = body.messages.map(message =>
    isRecord(message) && message.role === 'system' ? { ...message, content: textOf(message.content) } : message,
  );
  return answerFetch(input, { ...init, body: JSON.stringify({ ...body, messages }) });
};

function textOf(content: unknown): unknown {
  if (!Array.isArray(content) || !content.every(part => isRecord(part) && part.type === 'text')) return content;
  return content.map(part => (isRecord(part) ? part.text : '')).join('\n\n');
}

/** Headers carry Latin letters only; anything else would fail each call with a riddle. */
function header(name: string, value: string | undefined, envName: string): Record<string, string> {
  if (value === undefined) return {};
  if (/^[\x20-\x7e]+$/.test(value)) return { [name]: value };
  throw configError(`${envName} has characters that no header can carry.`, {
    next: `Set ${envName} to plain letters, digits and signs (ASCII), or leave it unset.`,
  });
}

/** A budget where the model takes one, else the nearest effort that it knows. */
function reasoningOption({ model, effort, thinkingBudget, maxOutputTokens }: CallParams): sdk.JSONObject {
  if (thinkingBudget === 0) return { reasoning: { enabled: false } };
  if (thinkingBudget !== undefined) {
    // Vendors behind OpenRouter take no less.
    const budget = fittedBudget(thinkingBudget, { min: 1_024, max: Infinity }, maxOutputTokens);
    return budget === undefined ? {} : { reasoning: { max_tokens: budget } };
  }
  const sent = closestEffort(effort, model.efforts);
  return sent === undefined ? {} : { reasoning: { effort: sent } };
}
