import type { JSONObject, SharedV4ProviderOptions } from '@ai-sdk/provider';
import { closestEffort } from '../effort.ts';
import { checkedBaseUrl } from '../extras/endpoint.ts';
import { liveList } from '../extras/live-list.ts';
import { type CallParams, type Connection, defineProvider, type ProviderSettings } from '../provider.ts';

const ownBaseUrl = 'https://api.openai.com/v1';
const group = 'Providers';

export const openai = defineProvider({
  id: 'openai',
  names: ['o'],
  title: 'OpenAI',
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
});

async function connect(settings: ProviderSettings): Promise<Connection> {
  const { createOpenAI } = await import('@ai-sdk/openai');
  // Both are always given: what is left out, the package would take from the environment.
  const apiKey = settings.apiKey ?? '';
  const baseUrl = checkedBaseUrl(settings.baseUrl ?? ownBaseUrl, 'OPENAI_BASE_URL');
  const vendor = createOpenAI({ apiKey, baseURL: baseUrl });
  const chat = settings.apiStyle === 'chat';
  return {
    languageModel: ({ id }) => (chat ? vendor.chat(id) : vendor.responses(id)),
    providerOptions: params => ({ openai: chat ? chatOptions(params) : responsesOptions(params) }),
    // Chat templates of other servers often refuse instructions after the conversation.
    tailRole: () => (chat && baseUrl !== ownBaseUrl ? 'user' : 'system'),
    list: signal => liveList({ provider: 'openai', baseUrl, headers: { authorization: `Bearer ${apiKey}` } }, signal),
  };
}

type VendorOptions = SharedV4ProviderOptions[string];

function responsesOptions(params: CallParams): VendorOptions {
  return {
    ...sharedOptions(params, params.model.efforts),
    systemMessageMode: 'developer',
    // Summaries of reasoning are refused to organisations that did not verify themselves, and nobody reads them here.
    reasoningSummary: null,
  };
}

function chatOptions(params: CallParams): VendorOptions {
  const known = params.model.efforts.filter(effort => effort !== 'max');
  // `system` is what every server knows; OpenAI reads it as its developer role.
  return { ...sharedOptions(params, known), systemMessageMode: 'system' };
}

function sharedOptions({ model, effort, cacheKey }: CallParams, known: CallParams['model']['efforts']): JSONObject {
  const sent = effort === undefined ? undefined : closestEffort(effort, known);
  return {
    store: false,
    ...(cacheKey === undefined ? {} : { promptCacheKey: cacheKey }),
    ...(sent === undefined ? {} : { reasoningEffort: sent }),
    // The package guesses from the id; the catalogue knows.
    ...(model.reasoning ? { forceReasoning: true } : {}),
  };
}
