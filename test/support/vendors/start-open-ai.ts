import { chatWire } from './chat-wire.ts';
import { checkChat } from './check-chat.ts';
import { checkResponses } from './check-responses.ts';
import type { FakeVendor, FakeVendorOptions } from './fake-vendor.ts';
import { missingKey, openAiRefusal, openAiStatusBody, unknownModel, wrongKey } from './open-ai-refusal.ts';
import { createPrefixCache } from './prefix-cache.ts';
import { tokensOf } from './prompt.ts';
import { readChat } from './read-chat.ts';
import { readResponses } from './read-responses.ts';
import { responsesWire } from './responses-wire.ts';
import { startVendor } from './start-vendor.ts';
import type { VendorKind } from './vendor-kind.ts';
import { stringOf } from './wire-values.ts';

/**
 * OpenAI: POST /responses, POST /chat/completions and GET /models. Also stands for the servers that speak its dialect,
 * which is why a model's window shows in the listing as `max_model_len`.
 */
export function startOpenAi(options: FakeVendorOptions = {}): Promise<FakeVendor> {
  const prefixes = createPrefixCache();
  const keys = options.keys ?? ['test-key'];
  const kind: VendorKind = {
    routes: { 'POST /responses': 'responses', 'POST /chat/completions': 'chat', 'GET /models': 'models' },
    authorise({ authorization = '' }) {
      if (keys.length === 0) return undefined;
      const [scheme, key = ''] = authorization.split(' ');
      if (scheme !== 'Bearer' || key === '') return missingKey();
      return keys.includes(key) ? undefined : wrongKey(key);
    },
    check: (dialect, body) => (dialect === 'responses' ? checkResponses(body) : checkChat(body)),
    read: (dialect, body) => (dialect === 'responses' ? readResponses(body) : readChat(body)),
    cache: (dialect, body, segments) => ({
      read: prefixes.cached(`${dialect} ${stringOf(body.model)} ${stringOf(body.prompt_cache_key)}`, segments),
      written: 0,
      wire: reply => (dialect === 'responses' ? responsesWire(body, reply) : chatWire(body, reply)),
    }),
    listing: models => ({
      object: 'list',
      data: models.map(({ id, window }) => ({
        id,
        object: 'model',
        created: 1_700_000_000,
        owned_by: 'system',
        ...(window !== undefined && { max_model_len: window }),
      })),
    }),
    headers: id => ({ 'x-request-id': `req_${id}`, 'openai-version': '2020-10-01', 'openai-processing-ms': '5' }),
    stamp: body => body,
    badJson: () => openAiRefusal('We could not parse the JSON body of your request.'),
    wrongAddress: (method, path) => openAiRefusal(`Invalid URL (${method} ${path})`, { status: 404 }),
    unknownModel,
    tooLong: (dialect, tokens, window) =>
      dialect === 'responses'
        ? openAiRefusal(
            'Your input exceeds the context window of this model. Please adjust your input and try again.',
            { param: 'input', code: 'context_length_exceeded' },
          )
        : openAiRefusal(
            `This model's maximum context length is ${window} tokens. However, your messages resulted in ${tokens} tokens.`,
            { param: 'messages', code: 'context_length_exceeded' },
          ),
    statusBody: openAiStatusBody,
  };
  return startVendor(kind, tokensOf, options);
}
