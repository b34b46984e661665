import type { JSONObject } from '@ai-sdk/provider';
import { isRecord } from '../../core/json.ts';
import type { ModelInfo } from '../../core/model.ts';
import { passedUse } from '../../models/fees.ts';
import {
  addressSetting,
  type CallParams,
  type Connection,
  closestEffort,
  defineProvider,
  keySetting,
  type ProviderSettings,
  setting,
} from '../../models/provider.ts';
import type { Fetch } from '../shared/http.ts';
import { postJson, reportedCount, requestBody } from '../shared/http.ts';
import { liveList } from '../shared/list-models.ts';
import { answerFetch } from '../shared/non-streaming.ts';
import { chatUsage } from '../shared/openai-dialect.ts';
import { moonshotBalance, moonshotEndpoint } from './api.ts';
import { createMoonshotCaching } from './caching.ts';
import { createMoonshotFormula, webSearchFormula } from './formula.ts';
import { type SearchWords, searchingModel, webSearchTool } from './web-search.ts';

export const moonshot = defineProvider({
  id: 'moonshot',
  names: ['k', 'kimi', 'moonshotai'],
  title: 'Moonshot (Kimi)',
  docs: {
    endpoint: 'POST https://api.moonshot.ai/v1/chat/completions',
    quirks: [
      'It searches by its built-in tool `$web_search`, whose calls go back to it as they came; models that always think, by the tool of its platform (`/formulas/moonshot/web-search:latest`), whose sealed results go back to it as they came.',
      'PDF, Office and pictures of text are uploaded once (`/files`), and their text is kept in the thread.',
      'Kimi models keep the beginning of a prompt in a cache by themselves; moonshot-v1 models have a paid one.',
      'It counts tokens itself (`/tokenizers/estimate-token-count`), which decides where an estimate comes near the window.',
      '`polylogue doctor` tells what the account has left (`/users/me/balance`).',
    ],
    source: 'https://platform.moonshot.ai/docs',
  },
  options: {
    apiKey: keySetting(
      ['MOONSHOT_API_KEY', 'KIMI_API_KEY'],
      'Key of Moonshot; with it the Kimi models can be asked, also about PDF and Office documents.',
    ),
    baseUrl: addressSetting(
      ['MOONSHOT_BASE_URL', 'KIMI_API_URL'],
      'Whole base address of Kimi, version path included; unset: https://api.moonshot.ai/v1. In China: https://api.moonshot.cn/v1.',
    ),
    trace: setting(
      ['MOONSHOT_TRACE'],
      "Asks Moonshot's tracing proxy, where one stands at the base address, to record the calls.",
      { type: 'boolean', default: false },
    ),
    cacheSeconds: setting(
      ['MOONSHOT_CACHE_SECONDS'],
      'How long moonshot-v1 models keep a long beginning of a prompt in a paid cache after its last use; 0: not at all. Kimi models cache by themselves.',
      { type: 'number', default: 0, min: 0, max: 3_600 },
    ),
    filesMaxMb: setting(['KIMI_FILES_MAX_SIZE_MB'], 'The largest document that is uploaded to Kimi, in megabytes.', {
      type: 'number',
      default: 100,
      min: 1,
      max: 100,
    }),
  },
  configured: settings => settings.apiKey !== undefined,
  readsDocuments: true,
  connect,
  searches: canSearch,
});

async function connect(settings: ProviderSettings): Promise<Connection> {
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  // A wait that a cache asks for as a date is not waited for.
  const endpoint = moonshotEndpoint(settings, () => 0);
  const caching = createMoonshotCaching(endpoint, cacheSecondsOf(settings));
  const speaking = (fetch: Fetch) =>
    createOpenAICompatible({
      name: 'moonshot',
      baseURL: endpoint.baseUrl,
      headers: { ...endpoint.headers },
      includeUsage: true,
      fetch,
      convertUsage: chatUsage,
      transformRequestBody: bodyOf,
    });
  const vendor = speaking(answerFetch);
  const formula = createMoonshotFormula(endpoint, webSearchFormula);
  return {
    languageModel: model => {
      const plain = searchingModel(vendor.chatModel(model.id), searchWords, formula);
      return isFirstFamily(model) ? caching.cached(plain) : plain;
    },
    providerOptions: params => ({ moonshot: { ...thinking(params), ...cacheKey(params), ...search(params) } }),
    usesIn: passedUse,
    // Only documents are known to be taken as system messages; instructions after the conversation are not.
    sendsStrings: () => true,
    tailRole: () => 'user',
    documentRole: 'system',
    echoesThoughts: true,
    list: signal => liveList(endpoint, signal),
    async countTokens({ id }, call) {
      const { model, messages } = await requestBody(fetch => speaking(fetch).chatModel(id), call);
      const url = `${endpoint.baseUrl}/tokenizers/estimate-token-count`;
      const question = { url, headers: endpoint.headers, body: { model, messages }, provider: 'moonshot', model: id };
      const { data } = await postJson(question, call.abortSignal);
      return reportedCount(isRecord(data) ? data : {}, 'total_tokens');
    },
    balance: signal => moonshotBalance(endpoint, signal),
  };
}

function canSearch(model: ModelInfo): boolean {
  return isFirstFamily(model) || model.tools;
}

/** The built-in search needs thinking switched off: models that always think search by the platform's tool. */
function byFormula(model: ModelInfo): boolean {
  return !isFirstFamily(model) && model.reasoning && !model.efforts.includes('none');
}

/** It has the paid cache and no thinking; the later ones cache by themselves. */
function isFirstFamily({ id }: ModelInfo): boolean {
  return id.startsWith('moonshot-v1');
}

function cacheSecondsOf({ cacheSeconds }: ProviderSettings): number {
  const seconds = Number(cacheSeconds ?? 0);
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(3_600, seconds) : 0;
}

/** K2 models only switch it on and off; from K3 on it has levels and can't be switched off. */
function thinking({ model, effort, webSearch }: CallParams): JSONObject {
  const switches = model.efforts.includes('none');
  if (webSearch && canSearch(model) && switches) return { thinking: { type: 'disabled' } };
  const sent = closestEffort(effort, model.efforts);
  if (sent === undefined) return {};
  if (switches) return { thinking: { type: sent === 'none' ? 'disabled' : 'enabled' } };
  return { reasoningEffort: sent };
}

function cacheKey({ model, cacheKey: key }: CallParams): JSONObject {
  return key === undefined || isFirstFamily(model) ? {} : { prompt_cache_key: key };
}

const maxRounds = 3;

/** The adapter knows no tools of the vendor's own: they travel as an option and become one when the body is made. */
function search({ model, webSearch, maxOutputTokens, effort }: CallParams): JSONObject {
  if (!webSearch || !canSearch(model)) return {};
  const rounds = Math.max(1, Math.min(maxRounds, webSearch.maxRounds));
  const formula = byFormula(model);
  const quiet = !formula && model.reasoning && effort !== 'none';
  const note = 'Thinking was switched off: Kimi searches the web only without it.';
  const room = Math.max(0, model.window - maxOutputTokens);
  return { vendorSearch: { rounds, room, ...(quiet && { note }), ...(formula && { formula }) } };
}

const searchWords: SearchWords = {
  allowanceOf({ providerOptions }) {
    const allowance = providerOptions?.moonshot?.vendorSearch;
    if (!isRecord(allowance) || typeof allowance.rounds !== 'number' || typeof allowance.room !== 'number')
      return undefined;
    const note = typeof allowance.note === 'string' ? allowance.note : undefined;
    return { rounds: allowance.rounds, room: allowance.room, note, formula: allowance.formula === true };
  },
  withoutSearch: options => ({
    ...options,
    providerOptions: { ...options.providerOptions, moonshot: { ...options.providerOptions?.moonshot, noSearch: true } },
  }),
};

/** The vendor's newer name for the limit of the answer, and its own tool. */
function bodyOf(given: Record<string, unknown>): Record<string, unknown> {
  const { vendorSearch, noSearch, max_tokens: maxTokens, ...body } = given;
  const limited = { ...body, ...(maxTokens === undefined ? {} : { max_completion_tokens: maxTokens }) };
  // The platform's tool is a function among the others already.
  if (vendorSearch === undefined || (isRecord(vendorSearch) && vendorSearch.formula === true)) return limited;
  const tools = [{ type: 'builtin_function', function: { name: webSearchTool } }];
  return { ...limited, tools, tool_choice: noSearch === true ? 'none' : 'auto' };
}
