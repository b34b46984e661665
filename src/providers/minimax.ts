import type { JSONObject, LanguageModelV4 } from '@ai-sdk/provider';
import { type CallParams, type Connection, keyedProvider, type VendorAccess } from '../models/provider.ts';
import { withSchemaInPrompt } from './shared/json-schema.ts';
import { liveList } from './shared/list-models.ts';
import { answerFetch } from './shared/non-streaming.ts';
import { chatPackage } from './shared/openai-dialect.ts';
import { adjustedModel, withThoughtsApart, withThoughtsInText } from './shared/stream-transforms.ts';
import { switchedThinking } from './shared/thinking.ts';

const smallestTemperature = 0.01;

export const minimax = keyedProvider({
  id: 'minimax',
  names: ['m'],
  title: 'MiniMax',
  docs: {
    endpoint:
      'POST https://api.minimax.io/anthropic/v1/messages, or /v1/chat/completions where the base address is of that kind',
    quirks: [
      'It is asked like Anthropic where the base URL has `/anthropic`, like OpenAI elsewhere; there the thoughts precede the answer, in tags.',
      'Temperatures are above 0 and at most 1.',
    ],
    source: 'https://platform.minimax.io/docs/api-reference/text-anthropic-api',
  },
  key: [['MINIMAX_API_KEY'], 'Key of the MiniMax API; with it the MiniMax models can be asked.'],
  address: [
    ['MINIMAX_BASE_URL'],
    'Whole base address, version path included: MiniMax is asked like Anthropic where it holds `/anthropic`, like OpenAI elsewhere (https://api.minimax.io/v1); unset: like Anthropic.',
  ],
  baseUrl: 'https://api.minimax.io/anthropic/v1',
  async connect(access) {
    return new URL(access.baseUrl).pathname.includes('/anthropic') ? likeAnthropic(access) : likeOpenAi(access);
  },
});

async function likeAnthropic(access: VendorAccess): Promise<Connection> {
  const { createMiniMax } = await import('@ai-sdk/minimax');
  const { apiKey, baseUrl, headers } = access;
  // One of its regions takes the key in the one header alone, another in the other.
  const vendor = createMiniMax({ apiKey, baseURL: baseUrl, headers, fetch: answerFetch });
  const listHeaders = { ...headers, 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' };
  // Its model is the one of Anthropic's package, reads its options and signs as it does.
  return {
    signer: 'anthropic',
    languageModel: ({ id }) => temperate(vendor.chat(id)),
    providerOptions: params => ({ anthropic: thinkingOptions(params, 'effort') }),
    cacheMark: { anthropic: { cacheControl: { type: 'ephemeral' } } },
    list: signal => liveList({ ...access, headers: listHeaders }, signal),
  };
}

async function likeOpenAi(access: VendorAccess): Promise<Connection> {
  const vendor = await chatPackage('minimax', access, {
    // The old name is deprecated there.
    transformRequestBody: ({ max_tokens, ...body }) => ({ ...body, max_completion_tokens: max_tokens }),
  });
  return {
    // There the thoughts stand in front of the answer, in tags, and are wanted back in the same place.
    languageModel: ({ id }) =>
      withThoughtsApart(withThoughtsInText(temperate(withSchemaInPrompt(vendor.chatModel(id))))),
    echoesThoughts: 'wanted',
    providerOptions: params => ({ minimax: thinkingOptions(params, 'reasoningEffort') }),
    sendsStrings: () => true,
    list: signal => liveList(access, signal),
  };
}

/** Thinking that can be switched, thinking that can be weighed (under this name), or thinking that nobody asks about. */
function thinkingOptions(params: CallParams, name: 'effort' | 'reasoningEffort'): JSONObject {
  const weighs = params.model.efforts.filter(word => word !== 'none').length > 1;
  return switchedThinking(params, sent => ({ thinking: { type: 'adaptive' }, ...(weighs && { [name]: sent }) }));
}

const temperate = (model: LanguageModelV4): LanguageModelV4 =>
  adjustedModel(model, options => {
    const { temperature } = options;
    if (temperature === undefined) return options;
    return { ...options, temperature: Math.min(1, Math.max(smallestTemperature, temperature)) };
  });
