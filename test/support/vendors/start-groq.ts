import { type ChatDialect, startChatDialect } from './chat-dialect.ts';
import type { FakeVendor, FakeVendorOptions } from './fake-vendor.ts';
import type { Refusal } from './refusal.ts';
import { stringOf } from './wire-values.ts';

const texts: Readonly<Record<number, [message: string, type: string, code?: string]>> = {
  401: ['Invalid API Key', 'invalid_request_error', 'invalid_api_key'],
  402: ['Your organization is out of credit.', 'billing_error', 'payment_required'],
  403: ['The model is blocked at the project level.', 'permissions_error', 'model_permission_blocked_project'],
  413: [
    'Request too large for model on tokens per minute (TPM): Limit 6000, Requested 9000',
    'tokens',
    'rate_limit_exceeded',
  ],
  429: ['Rate limit reached for model. Please try again later.', 'tokens', 'rate_limit_exceeded'],
  503: ['Service Unavailable', 'service_unavailable'],
};

function refusal(status: number, message?: string, code?: string): Refusal {
  const fallback: [string, string] =
    status < 500 ? ['Bad request', 'invalid_request_error'] : ['Internal Server Error', 'internal_server_error'];
  const [text, type, known = code] = texts[status] ?? fallback;
  const said = message ?? text;
  return { status, message: said, body: { error: { message: said, type, ...(known && { code: known }) } } };
}

interface Thinker {
  efforts: readonly string[];
  /** Tells its thoughts in a form of its own choice. */
  formats: boolean;
}

function thinker(id: string): Thinker | undefined {
  if (id.includes('gpt-oss')) return { efforts: ['low', 'medium', 'high'], formats: false };
  if (id.includes('qwen3.8')) return { efforts: ['none', 'low', 'medium', 'high'], formats: true };
  return id.includes('qwen3') ? { efforts: ['none', 'default'], formats: true } : undefined;
}

function check(body: Record<string, unknown>): Refusal | undefined {
  const { reasoning_effort: effort, reasoning_format: format, include_reasoning: include } = body;
  const model = thinker(stringOf(body.model));
  if (format != null && include != null)
    return refusal(400, 'cannot specify both reasoning_format and include_reasoning');
  if (format != null && !model?.formats) return refusal(400, 'reasoning_format is not supported with this model');
  if (format != null && !['parsed', 'raw', 'hidden'].includes(stringOf(format)))
    return refusal(400, '`reasoning_format` must be one of `parsed`, `raw` or `hidden`');
  if (effort == null) return undefined;
  if (!model) return refusal(400, '`reasoning_effort` is not supported with this model');
  if (model.efforts.includes(stringOf(effort))) return undefined;
  return refusal(400, `\`reasoning_effort\` must be one of ${model.efforts.map(word => `\`${word}\``).join(', ')}`);
}

const dialect: ChatDialect = {
  root: '/openai/v1',
  fields: {
    citation_options: ['string'],
    compound_custom: ['object'],
    disable_tool_validation: ['boolean'],
    documents: ['array'],
    frequency_penalty: ['number'],
    include_reasoning: ['boolean'],
    logprobs: ['boolean'],
    max_completion_tokens: ['integer'],
    max_tokens: ['integer'],
    messages: ['array'],
    metadata: ['object'],
    model: ['string'],
    n: ['integer'],
    parallel_tool_calls: ['boolean'],
    presence_penalty: ['number'],
    reasoning_effort: ['string'],
    reasoning_format: ['string'],
    response_format: ['object'],
    seed: ['integer'],
    service_tier: ['string'],
    stop: ['string', 'strings'],
    stream: ['boolean'],
    stream_options: ['object'],
    temperature: ['number'],
    tool_choice: ['string', 'object'],
    tools: ['array'],
    top_logprobs: ['integer'],
    top_p: ['number'],
    user: ['string'],
  },
  refusal,
  check,
  // Unless they are asked for apart, thoughts of the models that have a choice stand in the text.
  thoughtsField: body =>
    thinker(stringOf(body.model))?.formats && body.reasoning_format !== 'parsed' ? undefined : 'reasoning',
  usage: ({ input, output, reasoning, cacheRead }) => ({
    queue_time: 0.01,
    prompt_tokens: input,
    prompt_time: 0.01,
    completion_tokens: output,
    completion_time: 0.1,
    total_tokens: input + output,
    total_time: 0.11,
    prompt_tokens_details: { cached_tokens: cacheRead },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }),
  whole: reply => ({ x_groq: { id: `req_${reply.id}` } }),
  lastChunk: (reply, usage) => ({ x_groq: { id: `req_${reply.id}`, usage } }),
  headers: id => ({
    'x-request-id': `req_${id}`,
    'x-ratelimit-limit-requests': '14400',
    'x-ratelimit-remaining-tokens': '17997',
    'x-ratelimit-reset-tokens': '7.66s',
  }),
  tooLong: () => refusal(400, 'Please reduce the length of the messages or completion.', 'context_length_exceeded'),
};

/** Groq: OpenAI's chat below /openai/v1, with thoughts in `reasoning`, or in the text where nobody asked for them apart. */
export function startGroq(options: FakeVendorOptions = {}): Promise<FakeVendor> {
  return startChatDialect(dialect, options);
}
