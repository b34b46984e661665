import type * as sdk from '@ai-sdk/provider';
import { numberIn, recordIn, recordsIn, textIn, textsIn } from '../../core/json.ts';
import type { Effort } from '../../core/model.ts';
import { passedUse, type UsesIn, use, usePart } from '../../models/fees.ts';
import type { CallParams, LiveModel } from '../../models/provider.ts';
import { budgetFor, closestEffort, keyedProvider, setting } from '../../models/provider.ts';
import { badUpstream } from '../../models/resilience/errors.ts';
import { askJson, type Fetch, reportedCount, requestBody, sentBody } from '../shared/http.ts';
import { allPages, firstCount, type LiveListSource, listPage } from '../shared/list-models.ts';
import { answerFetch } from '../shared/non-streaming.ts';
import { adjustedModel, type CallOptions, type Part, searchTool, streamingModel } from '../shared/stream-transforms.ts';
import { fittedBudget, smallestAnswer } from '../shared/thinking.ts';
import type { CacheInUse, GoogleCaches, PromptOfThread } from './context-cache.ts';

/** The vendor's own limit; its list fits into one page of this size. */
const pageSize = 1000;

/**
 * The models of `GET {baseUrl}/models` in Gemini's form that write text on request: its listing names embedding and
 * drawing models too. Throws an `AppError` of kind `model`, or the signal's reason.
 */
const googleList = (source: LiveListSource, signal: AbortSignal): Promise<LiveModel[]> =>
  allPages(async token => {
    const query = new URLSearchParams({ pageSize: String(pageSize), ...(token !== undefined && { pageToken: token }) });
    const { models, nextPageToken: next } = await listPage(source, `?${query}`, signal);
    return { entries: recordsIn(models).flatMap(modelOf), next };
  });

/** The window is what the vendor calls the input limit; its own documents give no other. */
function modelOf({ name, supportedGenerationMethods: methods, ...limits }: Record<string, unknown>): LiveModel[] {
  const id = textIn(name).replace(/^models\//, '');
  // Servers that merely speak like Gemini may leave the methods out.
  if (id === '' || (Array.isArray(methods) && !methods.includes('generateContent'))) return [];
  return [{ id, window: firstCount(limits.inputTokenLimit), maxOutput: firstCount(limits.outputTokenLimit) }];
}

/** Those that can't search. */
const without = /^(?!gemini-)|^gemini-(?:1|2\.0-flash-lite|robotics)|-(?:image|tts|live|customtools)/;

/** The answer tells what was searched for; empty queries are not charged. */
const googleUses: UsesIn = part => {
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
  headers: ({ apiKey = '' }) => ({ 'x-goog-api-key': apiKey }),
  async connect(access) {
    const { createGoogle } = await import('@ai-sdk/google');
    const { apiKey, baseUrl, headers, settings, context } = access;
    const model = (id: string, fetch: Fetch) =>
      createGoogle({ apiKey, baseURL: baseUrl, fetch: withFewHops(fetch) }).languageModel(id);
    const wanted = settings.cache !== 'off' && context;
    const { cachedContents, GoogleCaches } = await import('./context-cache.ts');
    const caches = wanted ? new GoogleCaches({ vendor: cachedContents(access), ...wanted }) : undefined;
    const speaking = (id: string) =>
      caches && id.startsWith('gemini-') ? cachedModel(caches, id, fetch => model(id, fetch)) : model(id, answerFetch);
    return {
      // The vendor counts thoughts as output, so that a budget is added to what the answer may take.
      languageModel: info =>
        adjustedModel(speaking(info.id), options => {
          const budget = numberIn(recordIn(options.providerOptions?.google?.thinkingConfig).thinkingBudget);
          const { maxOutputTokens: answer } = options;
          if (budget === 0 || answer === undefined) return options;
          return { ...options, maxOutputTokens: Math.min(Math.max(smallestAnswer, answer) + budget, info.maxOutput) };
        }),
      providerOptions: params => ({ google: thinkingOptions(params), ...(caches && ofThread(params.cacheKey)) }),
      // How often and how much it searches, the vendor decides alone.
      vendorTools: searchTool('google.google_search', undefined, 'google_search'),
      usesIn: googleUses,
      imageLimits: () => ({ max: 900, bytes: 18_000_000, allBytes: 18_000_000, types: seenTypes }),
      list: signal => googleList(access, signal),
      async countTokens({ id }, call) {
        // The counting method wants the whole question, with the model's name in it, as one member.
        const body = {
          generateContentRequest: { model: `models/${id}`, ...(await requestBody(fetch => model(id, fetch), call)) },
        };
        const url = `${baseUrl}/models/${encodeURIComponent(id)}:countTokens`;
        const answer = await askJson({ url, headers, body, provider: 'google', model: id }, call.abortSignal);
        return reportedCount(answer, 'totalTokens');
      },
      forget: async thread => caches?.forget(thread),
      close: async () => caches?.close(),
    };
  },
  searches: ({ id }) => !without.test(id),
});

/** The package continues an answer for which one request was too short, each time for the price of the whole prompt. */
const maxHops = 8;

function withFewHops(fetch: Fetch): Fetch {
  let hops = 0;
  return async (input, init) => {
    if (typeof init?.body === 'string' && init.body.includes('"continuationToken":"')) hops++;
    if (hops > maxHops) throw badUpstream(`The answer was to be continued more than ${maxHops} times.`, false);
    return fetch(input, init);
  };
}

function thinkingOptions(params: CallParams): sdk.JSONObject {
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
  if (canRest && wanted <= 0) return 0;
  const within = { min: Math.max(range.min, 1), max: range.max };
  return fittedBudget(wanted, within, model.maxOutput) ?? (canRest ? 0 : undefined);
}

const wantedFor = (effort: Effort, range: { min: number; max: number }): number =>
  effort === 'none' ? 0 : Math.max(smallestThinking, budgetFor(effort, range));

const ownOptions = 'polylogueCache';

/** Tells the model of which thread a prompt is. Not the vendor's: it is taken off before the vendor's package sees it. */
const ofThread = (thread: string | undefined): sdk.SharedV4ProviderOptions =>
  thread === undefined ? {} : { [ownOptions]: { thread } };

/** The vendor's model, whose requests leave out what a cache holds. What is cached is taken from requests as they would be sent. */
function cachedModel(caches: GoogleCaches, id: string, connect: (fetch: Fetch) => sdk.LanguageModelV4) {
  const plain = connect(answerFetch);
  return streamingModel(plain, async options => {
    const thread = options.providerOptions?.[ownOptions]?.thread;
    // Tools would have to be in the cache, and come and go with what the caller asks for.
    if (typeof thread !== 'string' || (options.tools ?? []).length > 0) return plain.doStream(withoutOwn(options));
    const account: Account = { written: 0, stored: 0 };
    const asking = connect(throughCache(caches, id, thread, account));
    const answer = await asking.doStream(withoutOwn(options));
    const { written, stored } = account;
    return written + stored === 0 ? answer : { ...answer, stream: answer.stream.pipeThrough(counting(account)) };
  });
}

/** What was bought on the way to an answer: tokens written, and tokens times hours of storage. */
type Account = Pick<CacheInUse, 'written' | 'stored'>;

function withoutOwn(options: CallOptions): CallOptions {
  const { [ownOptions]: _thread, ...providerOptions } = options.providerOptions ?? {};
  return { ...options, providerOptions };
}

/** A cache that the vendor does not know any more is made anew, once. */
function throughCache(caches: GoogleCaches, id: string, thread: string, account: Account): Fetch {
  return async (input, init) => {
    const body = sentBody(init);
    const prompt = body && promptOf(body, id, thread);
    if (!prompt) return answerFetch(input, init);
    const signal = init?.signal ?? new AbortController().signal;
    // An attempt that failed is made again with the same prompt: that is no second call.
    const reported = (response: Response) => {
      if (response.ok) caches.answered(prompt);
      return response;
    };
    for (let tries = 0; tries < 2; tries++) {
      const cache = await caches.forPrompt(prompt, signal);
      if (!cache) break;
      account.written += cache.written;
      account.stored += cache.stored;
      const response = await answerFetch(input, { ...init, body: JSON.stringify(shortened(body, cache)) });
      if (!(await isGone(response))) return reported(response);
      await caches.lost(prompt, cache.name);
    }
    return reported(await answerFetch(input, init));
  };
}

/** Everything before the newest message, which carries what is never stored. */
function promptOf(body: Record<string, unknown>, model: string, thread: string): PromptOfThread | undefined {
  const { contents, systemInstruction, tools, toolConfig } = body;
  if (!Array.isArray(contents) || contents.length === 0 || tools !== undefined || toolConfig !== undefined)
    return undefined;
  return { thread, model, systemInstruction, contents: contents.slice(0, -1) };
}

function shortened(body: Record<string, unknown>, { name, messages }: CacheInUse): Record<string, unknown> {
  const { systemInstruction: _cached, contents, ...rest } = body;
  return { ...rest, cachedContent: name, contents: Array.isArray(contents) ? contents.slice(messages) : contents };
}

/** 403 "CachedContent not found (or permission denied)"; and whatever else is wrong with the cache rather than the request. */
const isGone = async (response: Response): Promise<boolean> =>
  [400, 403, 404].includes(response.status) && /cached ?content/i.test(await response.clone().text());

/** What it took to make and keep the cache is paid beside the request itself. */
const counting = ({ written, stored }: Account): TransformStream<Part, Part> =>
  new TransformStream({
    start(controller) {
      if (stored > 0) controller.enqueue(usePart({ kind: 'cache_storage', amount: stored }));
    },
    transform(part, controller) {
      if (part.type !== 'finish') return controller.enqueue(part);
      const { inputTokens } = part.usage;
      const total = inputTokens.total === undefined ? undefined : inputTokens.total + written;
      const counted = { ...inputTokens, total, cacheWrite: (inputTokens.cacheWrite ?? 0) + written };
      controller.enqueue({ ...part, usage: { ...part.usage, inputTokens: counted } });
    },
  });
