import type { JSONObject, LanguageModelV4ProviderTool } from '@ai-sdk/provider';
import { isRecord } from '../core/json.ts';
import type { ModelInfo } from '../core/model.ts';
import { type UsesIn, use } from '../models/fees.ts';
import {
  accessOf,
  addressSetting,
  type CallParams,
  type Connection,
  defineProvider,
  keySetting,
  type ProviderSettings,
  setting,
} from '../models/provider.ts';
import { liveList } from './shared/list-models.ts';
import { answerFetch } from './shared/non-streaming.ts';
import { chatOptions, responsesOptions } from './shared/openai-dialect.ts';

/** The families that the vendor's documents name for its search; the small ones of older generations can't. */
const searching = /^(?:gpt-4o|gpt-4\.1(?!-nano)|gpt-[5-9]|o3(?!-mini)|o4)/;

export function openAiSearches({ id }: ModelInfo): boolean {
  return searching.test(id);
}

export function openAiSearchTools({ webSearch }: CallParams): LanguageModelV4ProviderTool[] {
  if (!webSearch) return [];
  const args = webSearch.contentSize === undefined ? {} : { searchContextSize: webSearch.contentSize };
  return [{ type: 'provider', id: 'openai.web_search', name: 'web_search', args }];
}

/** A search is charged; to open a page that it found, or to look for words in it, is not. */
export const openAiUses: UsesIn = part => {
  if (part.type !== 'tool-result' || part.toolName !== 'web_search') return undefined;
  const action = isRecord(part.result) ? part.result.action : undefined;
  return isRecord(action) && action.type !== 'search' ? undefined : use('web_search', 1);
};

/** Citations with titles come only where the bare list of addresses is not asked for. */
export function openAiSearchOptions({ webSearch }: CallParams): JSONObject {
  return webSearch ? { includeWebSearchSources: false, maxToolCalls: webSearch.maxRounds } : {};
}

/** The vendor refuses its search together with the effort `minimal`. */
export function withEffortForSearch(params: CallParams): CallParams {
  return params.webSearch && params.effort === 'minimal' ? { ...params, effort: 'low' } : params;
}

const ownBaseUrl = 'https://api.openai.com/v1';

export const openai = defineProvider({
  id: 'openai',
  names: ['o'],
  title: 'OpenAI',
  docs: {
    endpoint: 'POST https://api.openai.com/v1/responses, or /chat/completions with OPENAI_API_STYLE=chat',
    quirks: [
      "Nothing is stored there (`store: false`); a thread's id is the `prompt_cache_key`, so that its beginning is found in the cache.",
      'Another server at OPENAI_BASE_URL mostly speaks `chat` alone: set OPENAI_API_STYLE too.',
    ],
    source: 'https://platform.openai.com/docs/api-reference/responses',
  },
  options: {
    apiKey: keySetting(['OPENAI_API_KEY'], 'Key of the OpenAI API; with it the models of OpenAI can be asked.'),
    baseUrl: addressSetting(
      ['OPENAI_BASE_URL'],
      'Whole base address, version path included, of a server that speaks like OpenAI; unset: OpenAI itself.',
    ),
    apiStyle: setting(
      ['OPENAI_API_STYLE'],
      'Which of its interfaces the OpenAI server is asked through: `responses`, or `chat` for servers that lack it.',
      { default: 'responses', choices: ['responses', 'chat'] },
    ),
  },
  configured: settings => settings.apiKey !== undefined,
  connect,
  searches: (model, settings) => settings.apiStyle !== 'chat' && openAiSearches(model),
});

async function connect(settings: ProviderSettings): Promise<Connection> {
  const { createOpenAI } = await import('@ai-sdk/openai');
  const { apiKey, baseUrl, bearer } = accessOf(settings, ownBaseUrl, 'OPENAI_BASE_URL');
  const vendor = createOpenAI({ apiKey, baseURL: baseUrl, fetch: answerFetch });
  const chat = settings.apiStyle === 'chat';
  return {
    languageModel: ({ id }) => (chat ? vendor.chat(id) : vendor.responses(id)),
    providerOptions: params => ({
      openai: chat
        ? chatOptions(params)
        : { ...responsesOptions(withEffortForSearch(params)), ...openAiSearchOptions(params) },
    }),
    vendorTools: params => (chat ? [] : openAiSearchTools(params)),
    usesIn: openAiUses,
    // Chat templates of other servers often refuse instructions after the conversation.
    imageLimits: () => ({ max: 500, bytes: 20_000_000, allBytes: 48_000_000 }),
    tailRole: () => (chat && baseUrl !== ownBaseUrl ? 'user' : 'system'),
    list: signal => liveList({ provider: 'openai', baseUrl, headers: bearer }, signal),
  };
}
