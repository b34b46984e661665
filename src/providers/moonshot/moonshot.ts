import type { JSONObject, LanguageModelV4Usage } from '@ai-sdk/provider';
import { isRecord, recordIn } from '../../core/json.ts';
import type { ModelInfo } from '../../core/model.ts';
import { passedUse } from '../../models/fees.ts';
import type { CallParams, ProviderSettings } from '../../models/provider.ts';
import { closestEffort, keyedProvider, setting } from '../../models/provider.ts';
import { askJson, type Fetch, reportedCount, requestBody } from '../shared/http.ts';
import { withSchemaInPrompt } from '../shared/json-schema.ts';
import { liveList } from '../shared/list-models.ts';
import { answerFetch } from '../shared/non-streaming.ts';
import { chatPackage, chatUsage } from '../shared/openai-dialect.ts';
import { type CallOptions, mappedParts } from '../shared/stream-transforms.ts';
import { withoutForcedChoice } from '../shared/thinking.ts';
import { createMoonshotFormula, moonshotBalance } from './api.ts';
import { searchingModel, webSearchTool } from './web-search.ts';

export const moonshot = keyedProvider({
  id: 'moonshot',
  names: ['k', 'kimi', 'moonshotai'],
  title: 'Moonshot (Kimi)',
  docs: {
    endpoint: 'POST https://api.moonshot.ai/v1/chat/completions',
    quirks: [
      'It searches by its built-in tool `$web_search`, whose calls go back to it as they came; models that always think, by the tool of its platform (`/formulas/moonshot/web-search:latest`), whose sealed results go back to it as they came.',
      'PDF, Office and scanned documents are uploaded once (`/files`), and their text is kept in the thread.',
      'Kimi models cache the beginning of a prompt automatically; from K3 on for 5 minutes, or for an hour (`prompt_cache_options`).',
      'It counts tokens itself (`/tokenizers/estimate-token-count`), which decides where an estimate comes near the window.',
      '`polylogue doctor` tells what the account has left (`/users/me/balance`).',
    ],
    source: 'https://platform.moonshot.ai/docs',
  },
  key: [
    ['MOONSHOT_API_KEY', 'KIMI_API_KEY'],
    'Key of Moonshot; with it the Kimi models can be asked, also about PDF and Office documents.',
  ],
  address: [
    ['MOONSHOT_BASE_URL', 'KIMI_API_URL'],
    'Whole base address of Kimi, version path included; unset: https://api.moonshot.ai/v1. In China: https://api.moonshot.cn/v1.',
  ],
  baseUrl: 'https://api.moonshot.ai/v1',
  options: {
    trace: setting(
      ['MOONSHOT_TRACE'],
      "Asks Moonshot's tracing proxy, if the base URL points to one, to record the calls.",
      { type: 'boolean', default: false },
    ),
    cacheSeconds: setting(
      ['MOONSHOT_CACHE_SECONDS'],
      'Seconds that Kimi K3 and later cache the beginning of a prompt after its use. Up to 300: the 5 minutes that Kimi always caches; above 300: 1 hour, and what is written to the cache costs twice as much as other input. Older Kimi models always decide this alone.',
      { type: 'number', default: 0, min: 0, max: 3_600 },
    ),
    filesMaxMb: setting(['KIMI_FILES_MAX_SIZE_MB'], 'The largest document that is uploaded to Kimi, in megabytes.', {
      type: 'number',
      default: 100,
      min: 1,
      max: 100,
    }),
  },
  readsDocuments: true,
  cachesApart: asksForAnHour,
  headers: ({ apiKey = '', trace }) => ({
    authorization: `Bearer ${apiKey}`,
    ...(trace === 'true' && { 'msh-trace-mode': 'on' }),
  }),
  async connect(access) {
    const { baseUrl, headers } = access;
    const hour = asksForAnHour(access.settings);
    const speaking = (fetch: Fetch) =>
      chatPackage('moonshot', access, { fetch, convertUsage: chatUsage, transformRequestBody: bodyOf });
    const vendor = await speaking(answerFetch);
    const formula = createMoonshotFormula(access);
    return {
      languageModel: model => {
        const chat = withoutForcedChoice(withSchemaInPrompt(vendor.chatModel(model.id)), refusesChoice(model));
        const searching = searchingModel(chat, formula);
        if (!hour || !sellsAnHour(model)) return searching;
        return mappedParts(searching, () => part => [
          part.type === 'finish' ? { ...part, usage: writtenForAnHour(part.usage) } : part,
        ]);
      },
      providerOptions: params => ({ moonshot: { ...thinking(params), ...caching(params, hour), ...search(params) } }),
      usesIn: passedUse,
      sendsStrings: () => true,
      // Nothing else after the conversation is known to be taken so.
      documentRole: 'system',
      echoesThoughts: 'required',
      list: signal => liveList(access, signal),
      async countTokens({ id }, call) {
        const { model, messages } = await requestBody(async fetch => (await speaking(fetch)).chatModel(id), call);
        const url = `${baseUrl}/tokenizers/estimate-token-count`;
        const question = { url, headers, body: { model, messages }, provider: 'moonshot', model: id };
        const { data } = await askJson(question, call.abortSignal);
        return reportedCount(recordIn(data), 'total_tokens');
      },
      balance: signal => moonshotBalance(access, signal),
    };
  },
  searches: canSearch,
});

function canSearch(model: ModelInfo): boolean {
  return isFirstFamily(model) || model.tools;
}

/** It neither thinks nor caches. */
const isFirstFamily = ({ id }: ModelInfo): boolean => id.startsWith('moonshot-v1');

/** The first five minutes are the vendor's own, without being asked for. */
function asksForAnHour({ cacheSeconds }: ProviderSettings): boolean {
  return Number(cacheSeconds ?? 0) > 300;
}

const sellsAnHour = ({ price }: ModelInfo): boolean => price?.cacheWriteHour !== undefined;

/** The vendor tells only what it read from its cache. The rest is written there, and paid as that. */
function writtenForAnHour(usage: LanguageModelV4Usage): LanguageModelV4Usage {
  const { total, cacheRead = 0 } = usage.inputTokens;
  const cacheWrite = Math.max(0, (total ?? 0) - cacheRead);
  const raw = { cache_creation: { ephemeral_1h_input_tokens: cacheWrite } };
  return { ...usage, inputTokens: { total, noCache: 0, cacheRead, cacheWrite }, raw };
}

/** While K2 models think, nothing forces them to call a tool; from K3 on no single tool does. */
const refusesChoice =
  ({ reasoning, efforts }: ModelInfo) =>
  ({ toolChoice, providerOptions }: CallOptions): boolean =>
    efforts.length > 0 && !efforts.includes('none')
      ? toolChoice?.type === 'tool'
      : reasoning && recordIn(providerOptions?.moonshot?.thinking).type !== 'disabled';

/** K2 models only switch it on and off; from K3 on it has levels and can't be switched off. */
function thinking({ model, effort, webSearch }: CallParams): JSONObject {
  const switches = model.efforts.includes('none');
  if (webSearch && canSearch(model) && switches) return { thinking: { type: 'disabled' } };
  const sent = closestEffort(effort, model.efforts);
  if (sent === undefined) return {};
  if (switches) return { thinking: { type: sent === 'none' ? 'disabled' : 'enabled' } };
  return { reasoningEffort: sent };
}

const caching = ({ model, cacheKey: key }: CallParams, hour: boolean): JSONObject => ({
  ...(key !== undefined && !isFirstFamily(model) && { prompt_cache_key: key }),
  ...(hour && sellsAnHour(model) && { prompt_cache_options: { ttl: '1h' } }),
});

const maxRounds = 3;

/** The adapter knows no tools of the vendor's own: they travel as an option and become one when the body is made. */
function search({ model, webSearch, maxOutputTokens, effort }: CallParams): JSONObject {
  if (!webSearch || !canSearch(model)) return {};
  const rounds = Math.max(1, Math.min(maxRounds, webSearch.maxRounds));
  // The built-in search needs thinking switched off: models that always think search by the platform's tool.
  const formula = !isFirstFamily(model) && model.reasoning && !model.efforts.includes('none');
  const quiet = !formula && model.reasoning && effort !== 'none';
  const note = 'Thinking was switched off: Kimi searches the web only without it.';
  const room = Math.max(0, model.window - maxOutputTokens);
  return { vendorSearch: { rounds, room, ...(quiet && { note }), ...(formula && { formula }) } };
}

/** The vendor's newer name for the limit of the answer, and its own tool. */
function bodyOf(given: Record<string, unknown>): Record<string, unknown> {
  const { vendorSearch, noSearch, max_tokens: maxTokens, ...body } = given;
  const limited = { ...body, ...(maxTokens === undefined ? {} : { max_completion_tokens: maxTokens }) };
  // The platform's tool is a function among the others already.
  if (vendorSearch === undefined || (isRecord(vendorSearch) && vendorSearch.formula === true)) return limited;
  const tools = [{ type: 'builtin_function', function: { name: webSearchTool } }];
  return { ...limited, tools, tool_choice: noSearch === true ? 'none' : 'auto' };
}
