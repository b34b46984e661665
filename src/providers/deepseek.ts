import { recordIn } from '../core/json.ts';
import { keyedProvider } from '../models/provider.ts';
import { liveList } from './shared/list-models.ts';
import { answerFetch } from './shared/non-streaming.ts';
import { adjustedModel, type CallOptions, withThoughtsApart } from './shared/stream-transforms.ts';
import { switchedThinking, withoutForcedChoice } from './shared/thinking.ts';

export const deepseek = keyedProvider({
  id: 'deepseek',
  names: ['d'],
  title: 'DeepSeek',
  docs: {
    endpoint: 'POST https://api.deepseek.com/chat/completions',
    quirks: [
      'Thinking is on by default; an effort is sent with it, and `none` switches it off.',
      'An answer that its machines broke off for lack of capacity is reported as broken off, not as ended.',
    ],
    source: 'https://api-docs.deepseek.com',
  },
  key: [['DEEPSEEK_API_KEY'], 'Key of the DeepSeek API; with it the DeepSeek models can be asked.'],
  address: [['DEEPSEEK_BASE_URL'], 'Whole base address of a server that speaks like DeepSeek; unset: DeepSeek itself.'],
  baseUrl: 'https://api.deepseek.com',
  async connect(access) {
    const { createDeepSeek } = await import('@ai-sdk/deepseek');
    const vendor = createDeepSeek({ apiKey: access.apiKey, baseURL: access.baseUrl, fetch: answerFetch });
    return {
      languageModel: ({ id, reasoning }) => {
        const asked = adjustedModel(vendor.chat(id), withoutIdleTemperature);
        return withThoughtsApart(withoutForcedChoice(asked, call => reasoning && !isThoughtless(call)));
      },
      providerOptions: params => ({
        deepseek: switchedThinking(params, sent => ({ thinking: { type: 'enabled' }, reasoningEffort: sent })),
      }),
      sendsStrings: () => true,
      echoesThoughts: 'required',
      list: signal => liveList(access, signal),
    };
  },
});

/** The package warns of each temperature that thinking makes useless, also of the 0 that is sent where nobody named one. */
const withoutIdleTemperature = (options: CallOptions): CallOptions =>
  options.temperature === 0 && !isThoughtless(options) ? { ...options, temperature: undefined } : options;

const isThoughtless = ({ providerOptions }: CallOptions): boolean =>
  recordIn(providerOptions?.deepseek?.thinking).type === 'disabled';
