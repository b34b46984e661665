import { checkedBaseUrl } from '../models/extras/endpoint.ts';
import {
  openAiSearches,
  openAiSearchOptions,
  openAiSearchTools,
  openAiUses,
  withEffortForSearch,
} from '../models/extras/search/open-ai-search.ts';
import { chatOptions, responsesOptions } from '../models/extras/wire/open-ai-options.ts';
import { type Connection, defineProvider, type ProviderSettings } from '../models/provider.ts';
import { liveList } from './shared/list-models.ts';
import { answerFetch } from './shared/plain-answer.ts';

const ownBaseUrl = 'https://api.openai.com/v1';
const group = 'Providers';

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
    apiKey: {
      env: ['OPENAI_API_KEY'],
      type: 'string',
      doc: 'Key of the OpenAI API; with it the models of OpenAI can be asked.',
      group,
      secret: true,
    },
    baseUrl: {
      env: ['OPENAI_BASE_URL'],
      type: 'url',
      doc: 'Whole base address, version path included, of a server that speaks like OpenAI; unset: OpenAI itself.',
      group,
      operatorOnly: true,
    },
    apiStyle: {
      env: ['OPENAI_API_STYLE'],
      type: 'string',
      default: 'responses',
      choices: ['responses', 'chat'],
      doc: 'Which of its interfaces the OpenAI server is asked through: `responses`, or `chat` for servers that lack it.',
      group,
    },
  },
  configured: settings => settings.apiKey !== undefined,
  connect,
  searches: (model, settings) => settings.apiStyle !== 'chat' && openAiSearches(model),
});

async function connect(settings: ProviderSettings): Promise<Connection> {
  const { createOpenAI } = await import('@ai-sdk/openai');
  // Both are always given: what is left out, the package would take from the environment.
  const apiKey = settings.apiKey ?? '';
  const baseUrl = checkedBaseUrl(settings.baseUrl ?? ownBaseUrl, 'OPENAI_BASE_URL');
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
    imageLimits: () => ({ most: 500, bytes: 20_000_000, allBytes: 48_000_000 }),
    tailRole: () => (chat && baseUrl !== ownBaseUrl ? 'user' : 'system'),
    list: signal => liveList({ provider: 'openai', baseUrl, headers: { authorization: `Bearer ${apiKey}` } }, signal),
  };
}
