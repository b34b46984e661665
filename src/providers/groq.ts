import type { JSONObject } from '@ai-sdk/provider';
import {
  type CallParams,
  type Connection,
  checkedBaseUrl,
  closestEffort,
  defineProvider,
  type ProviderSettings,
} from '../models/provider.ts';
import { liveList } from './shared/list-models.ts';
import { answerFetch } from './shared/non-streaming.ts';
import { withThoughtsApart } from './shared/stream-transforms.ts';

const ownBaseUrl = 'https://api.groq.com/openai/v1';
const group = 'Providers';

export const groq = defineProvider({
  id: 'groq',
  names: ['q'],
  title: 'Groq',
  docs: {
    endpoint: 'POST https://api.groq.com/openai/v1/chat/completions',
    quirks: [
      'Thoughts come apart from the answer: the models are asked for it, but gpt-oss, which does so by itself and refuses to be told.',
      'Models that can only be switched have one word for on.',
    ],
    source: 'https://console.groq.com/docs/api-reference',
  },
  options: {
    apiKey: {
      env: ['GROQ_API_KEY'],
      type: 'string',
      doc: 'Key of the Groq API; with it the open models that Groq serves can be asked.',
      group,
      secret: true,
    },
    baseUrl: {
      env: ['GROQ_BASE_URL'],
      type: 'url',
      doc: 'Whole base address, version path included, of a server that speaks like Groq; unset: Groq itself.',
      group,
      operatorOnly: true,
    },
  },
  configured: settings => settings.apiKey !== undefined,
  connect,
});

async function connect(settings: ProviderSettings): Promise<Connection> {
  const { createGroq } = await import('@ai-sdk/groq');
  // Both are always given: what is left out, the package would take from the environment.
  const apiKey = settings.apiKey ?? '';
  const baseUrl = checkedBaseUrl(settings.baseUrl ?? ownBaseUrl, 'GROQ_BASE_URL');
  const vendor = createGroq({ apiKey, baseURL: baseUrl, fetch: answerFetch });
  return {
    languageModel: ({ id }) => withThoughtsApart(vendor.languageModel(id)),
    providerOptions: params => ({ groq: reasoningOptions(params) }),
    // The chat templates of open models often refuse instructions after the conversation.
    tailRole: () => 'user',
    imageLimits: () => ({ max: 5, bytes: 3_800_000, allBytes: 3_800_000 }),
    list: signal => liveList({ provider: 'groq', baseUrl, headers: { authorization: `Bearer ${apiKey}` } }, signal),
  };
}

/** Thoughts come apart from the answer: gpt-oss does so by itself and refuses to be told, the others have to be asked. */
function reasoningOptions({ model, effort }: CallParams): JSONObject {
  if (!model.reasoning) return {};
  const apart = model.id.includes('gpt-oss') ? {} : { reasoningFormat: 'parsed' };
  const sent = effort === undefined ? undefined : closestEffort(effort, model.efforts);
  if (sent === undefined) return apart;
  // Models that can only be switched have one word for on.
  const switched = !model.efforts.some(word => word === 'low' || word === 'medium');
  return { ...apart, reasoningEffort: switched && sent !== 'none' ? 'default' : sent };
}
