import type { StatusStep } from './fake-vendor.ts';

/** What a vendor or server sends when it refuses a request for one of these reasons, as recorded or documented. */
export interface RecordedError {
  /** The provider that is asked; servers and vendors without one of their own are asked as `custom`. */
  provider: string;
  /** Whose answer it is, and what is wrong. */
  name: string;
  class: 'context_length' | 'balance' | 'quota' | 'content_filter';
  step: StatusStep;
}

const sent = (status: number, body: unknown): StatusStep => ({ fault: 'status', status, body });

/** The events of a stream that ends with an error under a 200. */
const streamed = (...events: unknown[]): StatusStep => ({
  fault: 'status',
  status: 200,
  headers: { 'content-type': 'text/event-stream' },
  body: events.map(event => `data: ${JSON.stringify(event)}\n\n`).join(''),
});

const openAi = (message: string, code: string | null, type = 'invalid_request_error') => ({
  error: { message, type, param: null, code },
});
const claude = (type: string, message: string) => ({ type: 'error', error: { type, message } });
const google = (code: number, status: string, message: string, details: unknown[] = []) => ({
  error: { code, message, status, details },
});
const fastApi = (message: string, code = 400) => ({
  object: 'error',
  message,
  type: 'BadRequestError',
  param: null,
  code,
});
const started = { id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { role: 'assistant' } }] };

const tooLong: Readonly<Record<string, readonly [name: string, step: StatusStep][]>> = {
  openai: [
    [
      'the window',
      sent(
        400,
        openAi(
          'Your input exceeds the context window of this model. Please adjust your input and try again.',
          'context_length_exceeded',
        ),
      ),
    ],
    [
      'more than a minute holds',
      sent(
        429,
        openAi(
          'Request too large for gpt-4.1-2025-04-14 (for limit gpt-4.1) in organization org-x on tokens per min (TPM): Limit 30000, Requested 37313. The input or output tokens must be reduced in order to run successfully.',
          'rate_limit_exceeded',
          'tokens',
        ),
      ),
    ],
    [
      'the configured limit',
      sent(
        400,
        openAi(
          'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 290001 tokens.',
          'context_length_exceeded',
        ),
      ),
    ],
    [
      'one text',
      sent(
        400,
        openAi(
          "Invalid 'input[0].content': string too long. Expected a string with maximum length 10485760.",
          'string_above_max_length',
        ),
      ),
    ],
  ],
  azure: [
    [
      'the window',
      sent(
        400,
        openAi(
          "This model's maximum context length is 128000 tokens. However, your messages resulted in 130011 tokens.",
          'context_length_exceeded',
        ),
      ),
    ],
  ],
  anthropic: [
    ['the window', sent(400, claude('invalid_request_error', 'prompt is too long: 213462 tokens > 200000 maximum'))],
    [
      'the answer beside it',
      sent(
        400,
        claude(
          'invalid_request_error',
          'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again',
        ),
      ),
    ],
    ['the bytes', sent(413, claude('request_too_large', 'Request exceeds the maximum size'))],
  ],
  google: [
    [
      'the window',
      sent(
        400,
        google(
          400,
          'INVALID_ARGUMENT',
          'The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).',
        ),
      ),
    ],
  ],
  xai: [
    [
      'the window',
      sent(400, {
        code: 'Client specified an invalid argument',
        error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
      }),
    ],
  ],
  moonshot: [
    [
      'the window',
      sent(400, {
        error: {
          message: 'Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)',
          type: 'invalid_request_error',
        },
      }),
    ],
    ['the input', sent(400, { error: { message: 'Input token length too long', type: 'invalid_request_error' } })],
  ],
  zhipu: [
    ['by number', sent(400, { error: { code: '1261', message: 'Prompt exceeds max length' } })],
    ['by word', sent(400, { error: { code: '1210', message: 'Prompt 超长' } })],
  ],
  deepseek: [
    [
      'the window',
      sent(
        400,
        openAi(
          "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens (132000 in the messages, 8000 in the completion). Please reduce the length of the messages or completion.",
          'invalid_request_error',
        ),
      ),
    ],
  ],
  groq: [
    [
      'the window',
      sent(400, openAi('Please reduce the length of the messages or completion.', 'context_length_exceeded')),
    ],
    [
      'more than a minute holds',
      sent(
        413,
        openAi(
          'Request too large for model `openai/gpt-oss-120b` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 8000, Requested 9787, please reduce your message size and try again.',
          'rate_limit_exceeded',
          'tokens',
        ),
      ),
    ],
  ],
  minimax: [
    ['the window', sent(400, claude('invalid_request_error', 'invalid params, context window exceeds limit (2013)'))],
  ],
  openrouter: [
    [
      'the window',
      sent(400, {
        error: {
          code: 400,
          message:
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (132000 of text input, 8000 in the output).",
        },
      }),
    ],
  ],
  dial: [
    [
      'cut in vain',
      sent(
        400,
        openAi(
          'The requested maximum prompt tokens is 1000. However, the system messages and the last user message resulted in 2000 tokens.',
          'truncate_prompt_error',
        ),
      ),
    ],
    ['its code', sent(400, openAi('Too much.', 'context_length_exceeded'))],
  ],
  ollama: [
    ['the runner', sent(400, { error: 'the input length exceeds the context length' })],
    ['the newer runner', sent(400, { error: 'prompt too long; exceeded max context length by 4 tokens' })],
    [
      'llama.cpp below it',
      sent(500, {
        error:
          'llama runner: request (8230 tokens) exceeds the available context size (4096 tokens), try increasing it',
      }),
    ],
  ],
  custom: [
    [
      'llama.cpp with 400',
      sent(400, {
        error: {
          code: 400,
          message: 'request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it',
          type: 'exceed_context_size_error',
          n_prompt_tokens: 4390,
          n_ctx: 4096,
        },
      }),
    ],
    [
      'llama.cpp with 500',
      sent(500, { error: { code: 500, message: 'Context size has been exceeded.', type: 'server_error' } }),
    ],
    [
      'llama.cpp in the stream',
      streamed(started, { error: { code: 500, message: 'Context size has been exceeded.', type: 'server_error' } }),
    ],
    [
      'llama.cpp of old',
      sent(500, {
        error: {
          code: 500,
          message:
            'the request exceeds the available context size. try increasing the context size or enable context shift',
          type: 'server_error',
        },
      }),
    ],
    [
      'llama-cpp-python',
      sent(400, openAi('Requested tokens (2285) exceed context window of 2048', 'context_length_exceeded')),
    ],
    [
      'vLLM',
      sent(400, {
        error: fastApi(
          "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.",
        ),
      }),
    ],
    [
      "vLLM's decoder",
      sent(400, fastApi('The decoder prompt (length 21535) is longer than the maximum model length of 16384.')),
    ],
    [
      'LM Studio',
      sent(400, {
        error:
          'The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.',
      }),
    ],
    ['LM Studio of now', sent(400, { error: 'Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)' })],
    [
      'LM Studio in the stream',
      streamed({
        error: {
          message:
            'Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.',
        },
      }),
    ],
    [
      'SiliconFlow',
      sent(400, {
        code: 20015,
        message: 'length of prompt_tokens (68957) must be less than max_seq_len (65536).',
        data: null,
      }),
    ],
    [
      'SiliconFlow with the answer',
      sent(400, {
        code: 20015,
        message: 'max_total_tokens (33802) must be less than or equal to max_seq_len (32768)',
        data: null,
      }),
    ],
    [
      'Perplexity',
      sent(400, {
        error: {
          message: 'Requested token count exceeds the model maximum of 131072 tokens.',
          type: 'invalid_request',
          code: 400,
        },
      }),
    ],
    [
      'Mistral',
      sent(400, {
        object: 'error',
        message: 'Prompt contains 40960 tokens, too large for model with 32768 maximum context length',
        type: 'invalid_request_prompt',
        code: '3051',
      }),
    ],
    [
      'Together',
      sent(422, openAi("The input (300 tokens) is longer than the model's context length (200 tokens).", null)),
    ],
    ['Fireworks', sent(400, openAi('The prompt is too long: 139264, model maximum context length: 131071', null))],
    [
      'text-generation-inference',
      sent(422, {
        error:
          'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 512 `max_new_tokens`',
        error_type: 'validation',
      }),
    ],
    ['Alibaba', sent(400, openAi('Range of input length should be [1, 30720]', 'invalid_parameter_error'))],
  ],
};

const spent: Readonly<Record<string, readonly [name: string, kind: 'balance' | 'quota', step: StatusStep][]>> = {
  openai: [
    [
      'the quota',
      'quota',
      sent(
        429,
        openAi(
          'You exceeded your current quota, please check your plan and billing details.',
          'insufficient_quota',
          'insufficient_quota',
        ),
      ),
    ],
    [
      'the hard limit',
      'balance',
      sent(400, openAi('Billing hard limit has been reached', 'billing_hard_limit_reached')),
    ],
  ],
  azure: [['the quota', 'quota', sent(429, openAi('You exceeded your current quota.', 'insufficient_quota'))]],
  anthropic: [
    [
      'the credit',
      'balance',
      sent(400, claude('invalid_request_error', 'Your credit balance is too low to access the Anthropic API.')),
    ],
    [
      'the limit that was set',
      'quota',
      sent(
        400,
        claude(
          'invalid_request_error',
          'You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.',
        ),
      ),
    ],
    [
      'long prompts',
      'balance',
      sent(429, claude('rate_limit_error', 'Usage credits are required for long context requests.')),
    ],
  ],
  google: [
    [
      'the prepaid credit',
      'balance',
      sent(
        429,
        google(
          429,
          'RESOURCE_EXHAUSTED',
          'Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing.',
        ),
      ),
    ],
    [
      'the cap on spending',
      'balance',
      sent(
        429,
        google(
          429,
          'RESOURCE_EXHAUSTED',
          'Your billing account has exceeded its monthly spending cap. Please go to AI Studio.',
        ),
      ),
    ],
  ],
  xai: [
    [
      'with 403',
      'balance',
      sent(403, {
        code: 'The caller does not have permission to execute the specified operation',
        error:
          'Your team x has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit.',
      }),
    ],
    [
      'with 429',
      'balance',
      sent(429, {
        code: 'Some resource has been exhausted',
        error:
          'Your team x has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit.',
      }),
    ],
    [
      'a new team',
      'balance',
      sent(403, {
        code: 'The caller does not have permission to execute the specified operation',
        error:
          "Your newly created team doesn't have any credits or licenses yet. You can purchase those on https://console.x.ai.",
      }),
    ],
  ],
  moonshot: [
    [
      'suspended',
      'quota',
      sent(429, {
        error: {
          message:
            'Your account org-x is suspended due to insufficient balance, please recharge your account or check your plan and billing details',
          type: 'exceeded_current_quota_error',
        },
      }),
    ],
    [
      'never charged',
      'quota',
      sent(403, {
        error: {
          message:
            'Your account is not active, organization exceeded current quota, please check your plan and billing details',
          type: 'exceeded_current_quota_error',
        },
      }),
    ],
  ],
  zhipu: [
    [
      'the balance',
      'balance',
      sent(429, { error: { code: '1113', message: 'Insufficient balance or no resource package. Please recharge.' } }),
    ],
    [
      'the plan',
      'quota',
      sent(429, {
        error: {
          code: '1308',
          message: 'Usage limit reached for 5 hour. Your limit will reset at 2026-11-23 18:00:00',
        },
      }),
    ],
  ],
  deepseek: [
    ['the balance', 'balance', sent(402, openAi('Insufficient Balance', 'invalid_request_error', 'unknown_error'))],
  ],
  groq: [
    [
      'the limit on spending',
      'balance',
      sent(400, openAi('API access blocked due to spend limit. Please raise it in the console.', 'blocked_api_access')),
    ],
  ],
  minimax: [
    ['under a 200', 'balance', sent(200, { base_resp: { status_code: 1008, status_msg: 'insufficient balance' } })],
    ['with 500', 'balance', sent(500, claude('api_error', 'insufficient balance (1008)'))],
    [
      'the plan',
      'quota',
      sent(429, claude('rate_limit_error', 'usage limit exceeded, 5-hour usage limit reached for Token Plan (2056)')),
    ],
  ],
  openrouter: [
    [
      'the credit',
      'balance',
      sent(402, {
        error: {
          code: 402,
          message:
            'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 30104.',
        },
      }),
    ],
    [
      "the key's limit",
      'quota',
      sent(403, {
        error: {
          code: 403,
          message: 'Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys',
        },
      }),
    ],
    [
      "the workspace's budget",
      'quota',
      sent(403, {
        error: { code: 403, message: 'Workspace monthly budget of $500.00 exceeded. Contact your workspace admin.' },
      }),
    ],
  ],
  dial: [['the quota', 'quota', sent(429, openAi('You exceeded your current quota.', 'insufficient_quota'))]],
  ollama: [
    ['the plan', 'quota', sent(429, { error: "you've reached your weekly usage limit, please upgrade to continue" })],
  ],
  custom: [
    [
      'SiliconFlow',
      'balance',
      sent(403, { code: 30001, message: 'Sorry, your account balance is insufficient', data: null }),
    ],
    [
      'Perplexity',
      'quota',
      sent(401, {
        error: {
          message: 'You exceeded your current quota, please check your plan and billing details.',
          type: 'insufficient_quota',
          code: 401,
        },
      }),
    ],
    [
      'Fireworks',
      'balance',
      sent(
        412,
        openAi(
          'Account x is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices.',
          null,
        ),
      ),
    ],
    [
      'Together',
      'balance',
      sent(402, openAi('Credit limit exceeded, please navigate to the billing page', 'credit_limit')),
    ],
  ],
};

const filtered: Readonly<Record<string, readonly [name: string, step: StatusStep][]>> = {
  openai: [
    [
      'the safety system',
      sent(400, openAi('Your request was rejected by our safety system.', 'content_policy_violation')),
    ],
    [
      'the usage policy',
      sent(
        400,
        openAi('Invalid prompt: your prompt was flagged as potentially violating our usage policy.', 'invalid_prompt'),
      ),
    ],
  ],
  azure: [
    [
      'the prompt',
      sent(400, {
        error: {
          message: "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
          type: null,
          param: 'prompt',
          code: 'content_filter',
          status: 400,
          innererror: { code: 'ResponsibleAIPolicyViolation' },
        },
      }),
    ],
  ],
  anthropic: [['the answer', sent(400, claude('invalid_request_error', 'Output blocked by content filtering policy'))]],
  google: [
    [
      'the prompt',
      streamed({
        promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
        usageMetadata: { promptTokenCount: 9, totalTokenCount: 9 },
      }),
    ],
    [
      'Model Armor of the prompt',
      streamed({
        promptFeedback: { blockReason: 'MODEL_ARMOR', blockReasonMessage: 'Blocked by Model Armor.' },
        usageMetadata: { promptTokenCount: 9, totalTokenCount: 9 },
      }),
    ],
    ...['SAFETY', 'RECITATION', 'LANGUAGE', 'MODEL_ARMOR', 'SPII', 'BLOCKLIST', 'PROHIBITED_CONTENT'].map(
      (finishReason): [string, StatusStep] => [
        `the end ${finishReason}`,
        streamed({
          candidates: [{ finishReason, index: 0 }],
          usageMetadata: { promptTokenCount: 9, totalTokenCount: 9 },
        }),
      ],
    ),
  ],
  xai: [
    [
      'the guidelines',
      sent(403, {
        code: 'The caller does not have permission to execute the specified operation',
        error: 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO',
      }),
    ],
  ],
  moonshot: [
    [
      'the risk',
      sent(400, {
        error: {
          code: 400,
          message: 'The request was rejected because it was considered high risk',
          param: 'prompt',
          type: 'content_filter',
        },
      }),
    ],
  ],
  zhipu: [
    [
      'by number',
      sent(400, {
        error: {
          code: '1301',
          message: 'System detected potentially unsafe or sensitive content in input or generation.',
        },
      }),
    ],
    ['the end', streamed({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'sensitive' }] })],
  ],
  deepseek: [['the risk', sent(400, openAi('Content Exists Risk', 'invalid_request_error'))]],
  groq: [
    [
      'the end',
      streamed({
        id: 'c',
        object: 'chat.completion.chunk',
        model: 'm',
        choices: [{ index: 0, delta: {}, finish_reason: 'content_filter' }],
      }),
    ],
  ],
  minimax: [
    ['the input, under a 200', sent(200, { base_resp: { status_code: 1026, status_msg: 'input new_sensitive' } })],
    ['the output, with 500', sent(500, claude('api_error', 'output new_sensitive (1027)'))],
  ],
  openrouter: [
    [
      'the moderation',
      sent(403, {
        error: {
          code: 403,
          message:
            'openai/o3 requires moderation on OpenInference. Your input was flagged for "violence". No credits were charged.',
          metadata: { reasons: ['violence'], flagged_input: 'x', provider_name: 'OpenAI' },
        },
      }),
    ],
  ],
  dial: [['its code', sent(400, openAi('The response was filtered.', 'content_filter'))]],
  ollama: [],
  custom: [
    ['Alibaba', sent(400, openAi('Input data may contain inappropriate content.', 'data_inspection_failed'))],
    [
      "Portkey's guardrails",
      sent(446, openAi('The guardrail checks defined in the config failed.', null, 'hooks_failed')),
    ],
    ["LiteLLM's guardrails", sent(400, openAi("{'error': 'Violated guardrail policy'}", '400', 'None'))],
  ],
};

/** One row for each vendor, class and form. Texts are shortened where the rest says nothing. */
export const recordedErrors: readonly RecordedError[] = [
  ...Object.entries(tooLong).flatMap(([provider, rows]) =>
    rows.map(([name, step]) => ({ provider, name: `too long: ${name}`, class: 'context_length' as const, step })),
  ),
  ...Object.entries(spent).flatMap(([provider, rows]) =>
    rows.map(([name, kind, step]) => ({ provider, name: `nothing left: ${name}`, class: kind, step })),
  ),
  ...Object.entries(filtered).flatMap(([provider, rows]) =>
    rows.map(([name, step]) => ({ provider, name: `filtered: ${name}`, class: 'content_filter' as const, step })),
  ),
];

/** The rows of a provider; one without any is held to say what servers of OpenAI's dialect say. */
export function recordedErrorsOf(id: string): RecordedError[] {
  const own = recordedErrors.filter(({ provider }) => provider === id);
  return own.length > 0 ? own : recordedErrors.filter(({ provider }) => provider === 'custom');
}
