import { type ChatDialect, startChatDialect } from './chat-dialect.ts';
import type { FakeVendor, FakeVendorOptions } from './fake-vendor.ts';
import { minimaxRefusal } from './minimax-refusal.ts';
import type { Refusal } from './refusal.ts';
import { numberOf, recordOf, stringOf } from './wire-values.ts';

function check(body: Record<string, unknown>): Refusal | undefined {
  const temperature = numberOf(body.temperature);
  if (temperature !== undefined && (temperature <= 0 || temperature > 1))
    return minimaxRefusal(400, 'invalid params, temperature must be in (0, 1] (2013)');
  return checkMinimaxThinking(body, stringOf(body.reasoning_effort));
}

/** M3 can be switched, M3.1 can be weighed and always thinks, the others do as they like. */
export function checkMinimaxThinking(body: Record<string, unknown>, effort: string): Refusal | undefined {
  const { type } = recordOf(body.thinking);
  const weighed = stringOf(body.model).startsWith('MiniMax-M3.1');
  if (body.thinking != null && type !== 'adaptive' && type !== 'disabled')
    return minimaxRefusal(400, 'invalid params, thinking.type must be adaptive or disabled (2013)');
  if (type === 'disabled' && weighed) return minimaxRefusal(400, 'invalid params, requires adaptive thinking (2013)');
  if (effort !== '' && !(weighed && ['low', 'medium', 'high', 'xhigh', 'max'].includes(effort)))
    return minimaxRefusal(400, 'invalid params, effort is not supported (2013)');
  return undefined;
}

const dialect: ChatDialect = {
  root: '/v1',
  fields: {
    max_completion_tokens: ['integer'],
    messages: ['array'],
    model: ['string'],
    reasoning_effort: ['string'],
    reasoning_split: ['boolean'],
    response_format: ['object'],
    service_tier: ['string'],
    stream: ['boolean'],
    stream_options: ['object'],
    temperature: ['number'],
    thinking: ['object'],
    tool_choice: ['string', 'object'],
    tools: ['array'],
    top_p: ['number'],
    user: ['string'],
  },
  refusal: minimaxRefusal,
  check,
  thoughtsField: () => undefined,
  usage: ({ input, output, reasoning, cacheRead }) => ({
    total_tokens: input + output,
    total_characters: 0,
    prompt_tokens: input,
    completion_tokens: output,
    prompt_tokens_details: { cached_tokens: cacheRead },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }),
  lastChunk: () => ({ input_sensitive: false, output_sensitive: false, base_resp: { status_code: 0, status_msg: '' } }),
  // Under a 200.
  wrongKey: () => {
    const message = 'invalid api key';
    return { status: 200, message, body: { base_resp: { status_code: 2049, status_msg: message } } };
  },
  tooLong: (tokens, window) =>
    minimaxRefusal(400, `invalid params, context window exceeds limit: ${tokens} > ${window} (2013)`),
};

/** MiniMax as OpenAI would speak: thoughts in tags in front of the text, some errors under a 200. */
export function startMinimaxChat(options: FakeVendorOptions = {}): Promise<FakeVendor> {
  return startChatDialect(dialect, options);
}
