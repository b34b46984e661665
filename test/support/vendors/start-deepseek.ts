import { type ChatDialect, startChatDialect } from './chat-dialect.ts';
import type { FakeVendor, FakeVendorOptions } from './fake-vendor.ts';
import { openAiRefusal } from './open-ai-refusal.ts';
import type { Refusal } from './refusal.ts';
import { recordOf, recordsOf, stringOf } from './wire-values.ts';

const texts: Readonly<Record<number, [message: string, type: string]>> = {
  400: ['The request was not valid.', 'invalid_request_error'],
  401: ['Authentication Fails, Your api key: ****7890 is invalid', 'authentication_error'],
  402: ['Insufficient Balance', 'unknown_error'],
  404: ['Model Not Exist', 'invalid_request_error'],
  422: ['Failed to deserialize the JSON body into the target type', 'invalid_request_error'],
  429: ['Rate limit reached for requests', 'rate_limit_reached_error'],
  503: [
    'Service is too busy. We advise users to temporarily switch to alternative LLM API service providers.',
    'service_unavailable_error',
  ],
};

function refusal(status: number, message?: string): Refusal {
  const [text, type] = texts[status] ?? ['Internal Server Error', 'server_error'];
  return openAiRefusal(message ?? text, { status, type, code: status < 500 ? 'invalid_request_error' : type });
}

/** `thinking` switches, `reasoning_effort` weighs; what the service took for other words is not relied on. */
function check(body: Record<string, unknown>): Refusal | undefined {
  const { type } = recordOf(body.thinking);
  if (body.thinking != null && type !== 'enabled' && type !== 'disabled')
    return refusal(400, `thinking.type: unknown variant \`${String(type)}\`, expected \`enabled\` or \`disabled\``);
  const effort = body.reasoning_effort;
  const known = /flash$/.test(stringOf(body.model)) ? ['low', 'high', 'max'] : ['high', 'max'];
  if (effort != null && !known.includes(stringOf(effort)))
    return refusal(400, `reasoning_effort: unknown variant \`${String(effort)}\`, expected one of ${known.join(', ')}`);
  if (effort != null && type === 'disabled') return refusal(400, 'reasoning_effort needs thinking');
  // What it thought before a call has to come back with the call, as long as the same question is worked on.
  const messages = recordsOf(body.messages);
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  const forgotten = messages
    .slice(asked + 1)
    .some(message => message.tool_calls != null && message.reasoning_content === undefined);
  if (forgotten && type !== 'disabled')
    return refusal(400, 'The `reasoning_content` in the thinking mode must be passed back to the API.');
  return undefined;
}

const dialect: ChatDialect = {
  root: '',
  fields: {
    frequency_penalty: ['number'],
    logprobs: ['boolean'],
    max_tokens: ['integer'],
    messages: ['array'],
    model: ['string'],
    presence_penalty: ['number'],
    reasoning_effort: ['string'],
    response_format: ['object'],
    stop: ['string', 'strings'],
    stream: ['boolean'],
    stream_options: ['object'],
    temperature: ['number'],
    thinking: ['object'],
    tool_choice: ['string', 'object'],
    tools: ['array'],
    top_logprobs: ['integer'],
    top_p: ['number'],
    user_id: ['string'],
  },
  refusal,
  check,
  plainTexts: true,
  takesThoughts: true,
  thoughtsField: () => 'reasoning_content',
  usage: ({ input, output, reasoning, cacheRead }) => ({
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_cache_hit_tokens: cacheRead,
    prompt_cache_miss_tokens: input - cacheRead,
    completion_tokens_details: { reasoning_tokens: reasoning },
  }),
  tooLong: (tokens, window) =>
    refusal(
      400,
      `This model's maximum context length is ${window} tokens. However, you requested ${tokens} tokens. Please reduce the length of the messages or completion.`,
    ),
};

/** DeepSeek: OpenAI's chat below the bare host, with its cache figures beside the sum. */
export function startDeepSeek(options: FakeVendorOptions = {}): Promise<FakeVendor> {
  return startChatDialect(dialect, options);
}
