import type { OpenAICompatibleProviderSettings } from '@ai-sdk/openai-compatible';
import type { JSONObject, LanguageModelV4, LanguageModelV4Usage } from '@ai-sdk/provider';
import { AppError } from '../../core/errors.ts';
import type { ModelInfo } from '../../core/model.ts';
import type { OptionSpec } from '../../core/option.ts';
import type { CallParams, Connection, ProviderDefinition, ProviderDocs } from '../../models/provider.ts';
import { closestEffort, keyedProvider } from '../../models/provider.ts';
import { versionedFetch } from './http.ts';
import { withLooseSchemas } from './json-schema.ts';
import { type LiveListSource, liveList, type serverList } from './list-models.ts';
import { answerFetch } from './non-streaming.ts';
import { adjustedModel, withThoughtsApart } from './stream-transforms.ts';

interface ReportedUsage {
  prompt_tokens?: number | null;
  completion_tokens?: number | null;
  prompt_tokens_details?: { cached_tokens?: number | null; cache_write_tokens?: unknown } | null;
  completion_tokens_details?: { reasoning_tokens?: number | null } | null;
  /** Where older models of Moonshot tell what the cache held. */
  [key: string]: unknown;
}

/**
 * Tokens as servers of OpenAI's chat tell them, with what the package leaves out: those written to the cache, which newer models
 * charge more for, and cached ones that stand beside the others instead of in the details.
 */
export function chatUsage(usage: ReportedUsage | null | undefined): LanguageModelV4Usage {
  const input = usage?.prompt_tokens ?? undefined;
  const output = usage?.completion_tokens ?? undefined;
  const beside = typeof usage?.cached_tokens === 'number' ? usage.cached_tokens : 0;
  const cacheRead = usage?.prompt_tokens_details?.cached_tokens ?? beside;
  const cacheWrites = usage?.prompt_tokens_details?.cache_write_tokens;
  const cacheWrite = typeof cacheWrites === 'number' ? cacheWrites : 0;
  const reasoning = usage?.completion_tokens_details?.reasoning_tokens ?? 0;
  return {
    inputTokens: {
      total: input,
      noCache: input === undefined ? undefined : Math.max(0, input - cacheRead - cacheWrite),
      cacheRead: input === undefined ? undefined : cacheRead,
      cacheWrite: input === undefined ? undefined : cacheWrite,
    },
    outputTokens: {
      total: output,
      text: output === undefined ? undefined : Math.max(0, output - reasoning),
      reasoning: output === undefined ? undefined : reasoning,
    },
  };
}

/** What OpenAI's Responses interface is told for these parameters, in the words of the AI SDK's package. */
export const responsesOptions = (params: CallParams): JSONObject => ({
  ...storelessOptions(params),
  ...thinkingMark(params),
  systemMessageMode: 'developer',
  // Summaries of reasoning are refused to organisations that did not verify themselves, and nobody reads them here.
  reasoningSummary: null,
});

/** The same for Chat Completions. `storeless`: the server knows `store` and `prompt_cache_key`, which others refuse. */
export function chatOptions(params: CallParams, storeless: boolean): JSONObject {
  const known = params.model.efforts.filter(effort => effort !== 'max');
  const options = storeless ? storelessOptions(params, known) : effortOption(params, known);
  // `system` is what every server knows; OpenAI reads it as its developer role.
  return { ...options, ...thinkingMark(params), systemMessageMode: 'system' };
}

/** From these on OpenAI's models think by themselves, and refuse calls of functions in Chat Completions while they do. */
const callsWithoutThought = /^gpt-(?:5\.[2-9]|[6-9]|\d\d)/;

/** The model behind Chat Completions, which does not think where it is given functions and refuses both together. `id` is OpenAI's. */
export function chatModel(model: LanguageModelV4, id: string, { efforts }: ModelInfo): LanguageModelV4 {
  if (!callsWithoutThought.test(id)) return model;
  return adjustedModel(model, options => {
    const { tools = [], providerOptions } = options;
    if (!tools.some(({ type }) => type === 'function')) return options;
    // One that always thinks.
    if (efforts.length > 0 && !efforts.includes('none')) throw needsResponses(id);
    const { reasoningEffort: _, ...rest } = providerOptions?.openai ?? {};
    const openai = efforts.includes('none') ? { ...rest, reasoningEffort: 'none' } : rest;
    return { ...options, providerOptions: { ...providerOptions, openai } };
  });
}

const needsResponses = (id: string): AppError =>
  new AppError('model', `${id} calls tools through /responses alone.`, {
    code: 'API_ERROR',
    class: 'bad_request',
    next: 'Set OPENAI_API_STYLE or AZURE_OPENAI_API_STYLE to `responses`, or name another model.',
    data: { noModel: true },
  });

/** What vendors of the Responses interface are told that keep nothing. `known`: the efforts that may be sent. */
export const storelessOptions = ({ model, effort, cacheKey }: CallParams, known = model.efforts): JSONObject => ({
  store: false,
  ...(cacheKey === undefined ? {} : { promptCacheKey: cacheKey }),
  ...effortOption({ model, effort }, known),
});

/** The package guesses from the id; the catalogue knows. */
const thinkingMark = ({ model }: CallParams): JSONObject => (model.reasoning ? { forceReasoning: true } : {});

/** The name under which the package looks for options; one of plain letters, whatever the provider is called. */
const vendorName = 'chat';

/** The package for OpenAI's chat, as each vendor of it is asked; `name`: under which it looks for options. */
export async function chatPackage(
  name: string,
  { baseUrl, headers }: Pick<LiveListSource, 'baseUrl' | 'headers'>,
  more: Partial<OpenAICompatibleProviderSettings>,
) {
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  const usual = { baseURL: baseUrl, headers: { ...headers }, includeUsage: true, fetch: answerFetch };
  return createOpenAICompatible({ name, ...usual, ...more });
}

/** Connects to a server that speaks OpenAI's chat dialect; `list` reads its list of models. */
export async function connectChatServer(
  server: LiveListSource,
  list: typeof serverList = liveList,
): Promise<Connection> {
  const address = versionedFetch(server.baseUrl, answerFetch);
  const own = { supportsStructuredOutputs: true, fetch: address.fetch, convertUsage: chatUsage };
  const vendor = await chatPackage(vendorName, server, own);
  return {
    languageModel: ({ id }) => withThoughtsApart(withLooseSchemas(vendor.chatModel(id), vendorName)),
    providerOptions: params => ({ [vendorName]: effortOption(params) }),
    sendsStrings: () => true,
    list: signal => list({ ...server, fetch: address.fetch }, signal),
    remark: async () => address.remark('The base address'),
  };
}

/** Only for models that are known to take one: servers refuse words that they do not know. */
export function effortOption({ model, effort }: Pick<CallParams, 'model' | 'effort'>, known = model.efforts) {
  const sent = closestEffort(effort, known);
  return sent === undefined ? {} : { reasoningEffort: sent };
}

/** A vendor whose interface is OpenAI's chat dialect and nothing else. */
export interface ChatVendor {
  /** Lower case; stands before the colon in `provider:model`. */
  id: string;
  /** Short forms of the id. */
  names: readonly string[];
  /** For people. */
  title: string;
  /** What its two settings begin with: `ACME` gives ACME_API_KEY and ACME_BASE_URL. */
  env: string;
  /** Its own base address, version path included. */
  baseUrl: string;
  /** Endpoint, differences from what is usual, and source, for the reference. */
  docs: ProviderDocs;
}

/** The whole provider of `vendor`, which speaks OpenAI's chat dialect. */
export function chatVendor(
  vendor: ChatVendor,
): ProviderDefinition & { options: Record<'apiKey' | 'baseUrl', OptionSpec> } {
  const { title, env } = vendor;
  return keyedProvider({
    ...vendor,
    key: [[`${env}_API_KEY`], `Key of ${title}; with it its models can be asked.`],
    address: [[`${env}_BASE_URL`]],
    connect: access => connectChatServer(access),
  });
}
