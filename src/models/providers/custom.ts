import type { ModelInfo } from '../../domain/model.ts';
import { closestEffort } from '../effort.ts';
import { checkedBaseUrl, isLocalUrl } from '../extras/endpoint.ts';
import { liveList } from '../extras/live-list.ts';
import { answerFetch } from '../extras/wire/plain-answer.ts';
import { type CallParams, type Connection, defineProvider, type ProviderSettings } from '../provider.ts';

const defaultWindow = 32_768;
const group = 'Providers';

export const custom = defineProvider({
  id: 'custom',
  names: [],
  title: 'A server of your own',
  options: {
    apiUrl: {
      env: ['CUSTOM_API_URL'],
      type: 'url',
      doc: 'Whole base address of a server with an OpenAI chat interface (vLLM, LM Studio, llama.cpp), such as http://127.0.0.1:8000/v1.',
      group,
      operatorOnly: true,
    },
    apiKey: {
      env: ['CUSTOM_API_KEY'],
      type: 'string',
      doc: 'Key of that server, where it wants one.',
      group,
      secret: true,
    },
    modelName: {
      env: ['CUSTOM_MODEL_NAME'],
      type: 'string',
      doc: 'Id of the model there, as the server lists it; an id with a colon is kept whole.',
      group,
    },
    contextWindow: {
      env: ['CUSTOM_CONTEXT_WINDOW'],
      type: 'number',
      default: defaultWindow,
      min: 1024,
      doc: 'Context window of that model in tokens, where the server does not tell it.',
      group,
    },
  },
  configured: settings => settings.apiUrl !== undefined,
  connect,
  models: settings => (settings.modelName === undefined ? [] : [modelOf(settings.modelName, windowOf(settings))]),
  local: settings => settings.apiUrl !== undefined && isLocalUrl(settings.apiUrl),
});

async function connect(settings: ProviderSettings): Promise<Connection> {
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  const baseUrl = checkedBaseUrl(settings.apiUrl ?? '', 'CUSTOM_API_URL');
  const { apiKey } = settings;
  const vendor = createOpenAICompatible({
    name: 'custom',
    baseURL: baseUrl,
    apiKey,
    includeUsage: true,
    fetch: answerFetch,
  });
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  return {
    languageModel: ({ id }) => vendor.chatModel(id),
    providerOptions: params => ({ custom: effortOption(params) }),
    // Chat templates often refuse instructions after the conversation.
    tailRole: () => 'user',
    list: signal => liveList({ provider: 'custom', baseUrl, headers }, signal),
  };
}

/** Only for models that are known to take one: servers refuse words that they do not know. */
function effortOption({ model, effort }: CallParams): { reasoningEffort?: string } {
  const sent = effort === undefined ? undefined : closestEffort(effort, model.efforts);
  return sent === undefined ? {} : { reasoningEffort: sent };
}

function windowOf({ contextWindow }: ProviderSettings): number {
  const tokens = Number(contextWindow ?? defaultWindow);
  return Number.isInteger(tokens) && tokens > 0 ? tokens : defaultWindow;
}

/** Nothing is known of it but its name and window; half of the window is the most it may answer. */
function modelOf(id: string, window: number): ModelInfo {
  return {
    provider: 'custom',
    id,
    name: id,
    aliases: [],
    window,
    maxOutput: Math.max(1, Math.floor(window / 2)),
    input: ['text'],
    efforts: [],
    reasoning: false,
    temperature: 'range',
    tools: false,
    score: 5,
    allowCodeGeneration: false,
    status: 'active',
  };
}
