import type { JSONObject } from '@ai-sdk/provider';
import { type CallParams, closestEffort, keyedProvider } from '../models/provider.ts';
import { withLooseSchemas } from './shared/json-schema.ts';
import { liveList } from './shared/list-models.ts';
import { answerFetch } from './shared/non-streaming.ts';
import { withThoughtsApart } from './shared/stream-transforms.ts';

export const groq = keyedProvider({
  id: 'groq',
  names: ['q'],
  title: 'Groq',
  docs: {
    endpoint: 'POST https://api.groq.com/openai/v1/chat/completions',
    quirks: [
      'Thoughts come apart from the answer: the models are asked for it, but gpt-oss, which always does so and refuses the parameter.',
      'Models that can only be switched have one word for on.',
    ],
    source: 'https://console.groq.com/docs/api-reference',
  },
  key: [['GROQ_API_KEY'], 'Key of the Groq API; with it the open models that Groq serves can be asked.'],
  address: [['GROQ_BASE_URL']],
  baseUrl: 'https://api.groq.com/openai/v1',
  async connect(access) {
    const { createGroq } = await import('@ai-sdk/groq');
    const vendor = createGroq({ apiKey: access.apiKey, baseURL: access.baseUrl, fetch: answerFetch });
    return {
      languageModel: ({ id }) => withThoughtsApart(withLooseSchemas(vendor.languageModel(id), 'groq')),
      providerOptions: params => ({ groq: reasoningOptions(params) }),
      sendsStrings: () => true,
      imageLimits: () => ({ max: 5, bytes: 3_800_000, allBytes: 3_800_000 }),
      list: signal => liveList(access, signal),
    };
  },
});

function reasoningOptions({ model, effort }: CallParams): JSONObject {
  if (!model.reasoning) return {};
  const apart = model.id.includes('gpt-oss') ? {} : { reasoningFormat: 'parsed' };
  const sent = closestEffort(effort, model.efforts);
  if (sent === undefined) return apart;
  const switched = !model.efforts.some(word => word === 'low' || word === 'medium');
  return { ...apart, reasoningEffort: switched && sent !== 'none' ? 'default' : sent };
}
