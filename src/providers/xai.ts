import type { LanguageModelV4, LanguageModelV4Message, LanguageModelV4ReasoningPart } from '@ai-sdk/provider';
import { recordIn } from '../core/json.ts';
import { startedSearch, type UsesIn, use } from '../models/fees.ts';
import { keyedProvider } from '../models/provider.ts';
import { liveList } from './shared/list-models.ts';
import { answerFetch } from './shared/non-streaming.ts';
import { storelessOptions } from './shared/openai-dialect.ts';
import { mappedParts, type Part, searchTool, streamingModel } from './shared/stream-transforms.ts';

/** Only what brought something is charged, which the vendor counts; its search is the one tool that it is given. */
const xaiUses: UsesIn = part =>
  part.type === 'finish' ? use('web_search', part.usage.raw?.num_server_side_tools_used) : startedSearch(part);

/** Characters of thoughts that are kept; what is forgotten is merely not sent along. */
const maxChars = 4_000_000;

/**
 * Sends the sealed thoughts of earlier answers back with them, as vendors of Responses without a store ask for: the model
 * goes on from what it thought, and its cache holds. They live as long as the connection, belong to one model and one
 * thread (its cache key), and are never kept without one; threads keep the text alone.
 */
function createEchoedThoughts(): (model: LanguageModelV4) => LanguageModelV4 {
  const kept = new Map<string, LanguageModelV4ReasoningPart[]>();
  let chars = 0;

  function keep(key: string, thoughts: LanguageModelV4ReasoningPart[]): void {
    // Of two answers of the same words the first one stays: the cache begins with what was sent along with it.
    if (thoughts.length === 0 || kept.has(key)) return;
    kept.set(key, thoughts);
    chars += sizeOf(key, thoughts);
    for (const oldest of kept.keys()) {
      if (chars <= maxChars) return;
      drop(oldest);
    }
  }

  function drop(key: string): void {
    const its = kept.get(key);
    if (its) chars -= sizeOf(key, its);
    kept.delete(key);
  }

  function withThoughts(message: LanguageModelV4Message, keyOf: (text: string) => string): LanguageModelV4Message {
    if (message.role !== 'assistant') return message;
    const content = message.content.flatMap((part): typeof message.content =>
      part.type === 'text' ? [...(kept.get(keyOf(part.text)) ?? []), part] : [part],
    );
    return { ...message, content };
  }

  return model =>
    streamingModel(model, async options => {
      const thread = options.providerOptions?.xai?.promptCacheKey;
      if (typeof thread !== 'string') return model.doStream(options);
      const keyOf = (text: string) => JSON.stringify([model.modelId, thread, text.trim()]);
      const prompt = options.prompt.map(message => withThoughts(message, keyOf));
      const mapping = () => collected((text, thoughts) => keep(keyOf(text), thoughts));
      try {
        return await mappedParts(model, mapping).doStream({ ...options, prompt });
      } catch (error) {
        // A seal that is not known any more would make the vendor refuse all that follows in the thread.
        const isItsOwn = (key: string) => key.startsWith(JSON.stringify([model.modelId, thread]).slice(0, -1));
        if (recordIn(error).statusCode === 400) [...kept.keys()].filter(isItsOwn).forEach(drop);
        throw error;
      }
    });
}

const sizeOf = (key: string, thoughts: readonly LanguageModelV4ReasoningPart[]): number =>
  key.length + JSON.stringify(thoughts).length;

/** Tells the answer and its sealed thoughts once the answer is finished. */
function collected(keep: (text: string, thoughts: LanguageModelV4ReasoningPart[]) => void) {
  let text = '';
  const words = new Map<string, string>();
  const thoughts: LanguageModelV4ReasoningPart[] = [];
  return (part: Part): Part[] => {
    if (part.type === 'text-delta') text += part.delta;
    if (part.type === 'reasoning-delta') words.set(part.id, (words.get(part.id) ?? '') + part.delta);
    // Words without a seal would be of no use to the vendor; sealed ones go back as they came.
    if (part.type === 'reasoning-end' && typeof part.providerMetadata?.xai?.reasoningEncryptedContent === 'string')
      thoughts.push({ type: 'reasoning', text: words.get(part.id) ?? '', providerOptions: part.providerMetadata });
    if (part.type === 'finish' && part.finishReason.unified === 'stop') keep(text, thoughts);
    return [part];
  };
}

export const xai = keyedProvider({
  id: 'xai',
  names: ['x'],
  title: 'xAI',
  docs: {
    endpoint: 'POST https://api.x.ai/v1/responses',
    quirks: [
      'Nothing is stored there (`store: false`); the sealed thoughts of earlier answers are sent back as long as this process lives.',
      'Roles come in any order, so that instructions follow the conversation.',
    ],
    source: 'https://docs.x.ai/docs/api-reference',
  },
  key: [['XAI_API_KEY'], 'Key of the xAI API; with it the Grok models can be asked.'],
  address: [
    ['XAI_BASE_URL'],
    'Whole base address, version path included, of a server that speaks like xAI (Responses); unset: xAI itself.',
  ],
  baseUrl: 'https://api.x.ai/v1',
  async connect(access) {
    const { createXai } = await import('@ai-sdk/xai');
    const vendor = createXai({ apiKey: access.apiKey, baseURL: access.baseUrl, fetch: answerFetch });
    const echoed = createEchoedThoughts();
    return {
      languageModel: ({ id }) => echoed(vendor.responses(id)),
      // A turn there is one round of the vendor's own tools.
      providerOptions: ({ webSearch, ...params }) => ({
        xai: { ...storelessOptions(params), ...(webSearch && { maxTurns: webSearch.maxRounds }) },
      }),
      vendorTools: searchTool('xai.web_search'),
      usesIn: xaiUses,
      tailRole: () => 'system',
      imageLimits: () => ({ max: 50, bytes: 20_000_000, allBytes: 30_000_000, types: ['image/png', 'image/jpeg'] }),
      list: signal => liveList(access, signal),
    };
  },
  // From the fourth generation on.
  searches: ({ id }) => /^grok-(?:[4-9]|\d\d)/.test(id),
});
