import type { JSONObject, LanguageModelV4CallOptions, LanguageModelV4ProviderTool } from '@ai-sdk/provider';
import { numberIn, recordIn, recordsIn, textsIn } from '../../core/json.ts';
import type { Effort, ModelInfo } from '../../core/model.ts';
import { passedUse, type UsesIn, use } from '../../models/fees.ts';
import {
  budgetFor,
  type CallParams,
  closestEffort,
  keyedProvider,
  type LiveModel,
  setting,
} from '../../models/provider.ts';
import { type Fetch, postJson, reportedCount, requestBody } from '../shared/http.ts';
import { type LiveListSource, listPage } from '../shared/list-models.ts';
import { answerFetch } from '../shared/non-streaming.ts';
import { adjustedModel } from '../shared/stream-transforms.ts';
import { cachedModel, ofThread } from './cached-model.ts';

/** Against a server that never stops naming a next page. */
const maxPages = 20;

/** The vendor's own limit; its list fits into one page of this size. */
const pageSize = 1000;

/**
 * The models of `GET {baseUrl}/models` in Gemini's form that write text on request: its listing names embedding and
 * drawing models too. Throws an `AppError` of kind `model`, or the signal's reason.
 */
export async function googleList(source: LiveListSource, signal: AbortSignal): Promise<LiveModel[]> {
  const models = new Map<string, LiveModel>();
  let token = '';
  for (let page = 0; page < maxPages; page++) {
    const query = new URLSearchParams({ pageSize: String(pageSize), ...(token !== '' && { pageToken: token }) });
    const body = await listPage(source, `?${query}`, signal);
    for (const model of recordsIn(body.models).flatMap(modelOf)) models.set(model.id, model);
    const next = body.nextPageToken;
    if (typeof next !== 'string' || next === '' || next === token) break;
    token = next;
  }
  return [...models.values()];
}

/** The window is what the vendor calls the input limit; its own documents give no other. */
function modelOf({ name, inputTokenLimit, supportedGenerationMethods }: Record<string, unknown>): LiveModel[] {
  if (typeof name !== 'string') return [];
  const id = name.replace(/^models\//, '');
  const methods = supportedGenerationMethods;
  // Servers that merely speak like Gemini may leave the methods out.
  if (id === '' || (Array.isArray(methods) && !methods.includes('generateContent'))) return [];
  const isReported = typeof inputTokenLimit === 'number' && inputTokenLimit > 0;
  return [isReported ? { id, window: inputTokenLimit } : { id }];
}

const without = /^(?!gemini-)|^gemini-(?:1|2\.0-flash-lite|robotics)|-(?:image|tts|live|customtools)/;

export const googleSearches = ({ id }: ModelInfo): boolean => !without.test(id);

/** How often and how much it searches, the vendor decides alone. */
export const googleSearchTools = ({ webSearch }: CallParams): LanguageModelV4ProviderTool[] =>
  webSearch ? [{ type: 'provider', id: 'google.google_search', name: 'google_search', args: {} }] : [];

/** The answer tells what was searched for; empty queries are not charged. */
export const googleUses: UsesIn = part => {
  if (part.type !== 'finish') return passedUse(part);
  const queries = textsIn(recordIn(part.providerMetadata?.google?.groundingMetadata).webSearchQueries);
  return use('web_search', queries.filter(query => query.trim() !== '').length);
};

/** Types of images that it takes, of those that are read here. */
const seenTypes = ['image/png', 'image/jpeg', 'image/webp'];

/** What the interface has words for; thinking is switched off by a budget alone. */
const levels: readonly Effort[] = ['minimal', 'low', 'medium', 'high', 'xhigh'];

/** The least budget that all models with one take, so that a small effort never means none. */
const smallestThinking = 128;

/** What must be left for the answer beside the thinking. */
const smallestAnswer = 1000;

export const google = keyedProvider({
  id: 'google',
  names: ['g', 'gemini'],
  title: 'Google',
  docs: {
    endpoint: 'POST https://generativelanguage.googleapis.com/v1beta/models/{model}:streamGenerateContent?alt=sse',
    quirks: [
      'Thinking is a budget in tokens for older models and a level for newer ones; both in one request are refused.',
      'Thoughts are asked for, because a model that thinks for minutes without a sign of life would run into the time limits.',
      'It counts tokens itself (`:countTokens`), which decides where an estimate comes near the window.',
    ],
    source: 'https://ai.google.dev/api/generate-content',
  },
  key: [['GEMINI_API_KEY', 'GOOGLE_API_KEY'], 'Key of the Gemini API; with it the Gemini models can be asked.'],
  address: [
    ['GEMINI_BASE_URL'],
    'Whole base address, version path included, of a server that speaks like the Gemini API; unset: Google itself.',
  ],
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
  options: {
    cache: setting(
      ['GEMINI_CACHE'],
      'Whether the beginning of a thread is kept at Google from its second call on, which costs storage and saves most of the input: `auto`, or `off`.',
      { default: 'auto', choices: ['auto', 'off'] },
    ),
  },
  cachesApart: settings => settings.cache !== 'off',
  readsDocuments: true,
  async connect({ apiKey, baseUrl, settings, context }) {
    const { createGoogle } = await import('@ai-sdk/google');
    const headers = { 'x-goog-api-key': apiKey };
    const model = (id: string, fetch: Fetch) => createGoogle({ apiKey, baseURL: baseUrl, fetch }).languageModel(id);
    const wanted = settings.cache !== 'off' && context;
    const { cachedContents, googleCaches } = await import('./context-cache.ts');
    const caches = wanted ? googleCaches({ vendor: cachedContents({ baseUrl, headers }), ...wanted }) : undefined;
    const speaking = (id: string) =>
      caches && id.startsWith('gemini-')
        ? cachedModel({ caches, id, fetch: answerFetch, connect: fetch => model(id, fetch) })
        : model(id, answerFetch);
    return {
      // The vendor counts thoughts as output, so that a budget is added to what the answer may take.
      languageModel: info =>
        adjustedModel(speaking(info.id), options => {
          const budget = sentBudget(options);
          const { maxOutputTokens: answer } = options;
          if (budget === 0 || answer === undefined) return options;
          return { ...options, maxOutputTokens: Math.min(Math.max(smallestAnswer, answer) + budget, info.maxOutput) };
        }),
      providerOptions: params => ({ google: thinkingOptions(params), ...(caches && ofThread(params.cacheKey)) }),
      vendorTools: googleSearchTools,
      usesIn: googleUses,
      // Instructions stand beside the conversation there, never in it.
      tailRole: () => 'user',
      imageLimits: () => ({ max: 900, bytes: 18_000_000, allBytes: 18_000_000, types: seenTypes }),
      list: signal => googleList({ provider: 'google', baseUrl, headers }, signal),
      async countTokens({ id }, call) {
        // The counting method wants the whole question, with the model's name in it, as one member.
        const body = {
          generateContentRequest: { model: `models/${id}`, ...(await requestBody(fetch => model(id, fetch), call)) },
        };
        const url = `${baseUrl}/models/${encodeURIComponent(id)}:countTokens`;
        const answer = await postJson({ url, headers, body, provider: 'google', model: id }, call.abortSignal);
        return reportedCount(answer, 'totalTokens');
      },
      forget: async thread => caches?.forget(thread),
      close: async () => caches?.close(),
    };
  },
  searches: googleSearches,
});

/**
 * Older models take a budget in tokens, newer ones a level; both in one request are refused. Thoughts are asked for, because
 * a model that thinks for minutes without a sign of life would run into the time limits.
 */
function thinkingOptions(params: CallParams): JSONObject {
  const { model, effort } = params;
  if (model.thinkingBudget) {
    const budget = budgetOf(params, model.thinkingBudget);
    if (budget === undefined) return {};
    return { thinkingConfig: { thinkingBudget: budget, ...(budget > 0 ? { includeThoughts: true } : {}) } };
  }
  if (effort === undefined) return {};
  const known = model.efforts.filter(word => levels.includes(word));
  // `none` becomes the lowest level: there thinking can't be switched off.
  const sent = closestEffort(effort, known);
  return sent === undefined ? {} : { thinkingConfig: { thinkingLevel: sent, includeThoughts: true } };
}

/** Zero switches thinking off; undefined leaves it to the vendor. */
function budgetOf({ model, effort, thinkingBudget }: CallParams, range: { min: number; max: number }) {
  const wanted = thinkingBudget ?? (effort === undefined ? undefined : wantedFor(effort, range));
  if (wanted === undefined) return undefined;
  const canRest = range.min <= 0 || model.efforts.includes('none');
  const max = Math.min(range.max, model.maxOutput - smallestAnswer);
  const least = Math.max(range.min, 1);
  if (canRest && (wanted <= 0 || max < least)) return 0;
  return max < least ? undefined : Math.floor(Math.min(max, Math.max(least, wanted)));
}

const wantedFor = (effort: Effort, range: { min: number; max: number }): number =>
  effort === 'none' ? 0 : Math.max(smallestThinking, budgetFor(effort, range));

function sentBudget({ providerOptions }: LanguageModelV4CallOptions): number {
  return numberIn(recordIn(providerOptions?.google?.thinkingConfig).thinkingBudget);
}
