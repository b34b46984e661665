import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/errors.ts';
import { withoutKeys } from '../../../src/core/text.ts';
import { readVendorError } from '../../../src/models/resilience/classify-error.ts';
import { badUpstream, toModelError } from '../../../src/models/resilience/errors.ts';
import { ownTime } from '../../support/own-time.ts';
import { apiError } from '../scripted-model.ts';

const origin = { provider: 'openai', model: 'gpt-x', attempt: 2, now: Date.parse('2030-01-01T00:00:00Z') };
const verdict = (error: unknown) => {
  const { details } = toModelError(error, origin);
  return [details.class, details.retryable];
};
const openAi = (message: string, code: string | null = null, type = 'invalid_request_error') => ({
  error: { message, type, param: null, code },
});
const claude = (type: string, message: string) => ({ type: 'error', error: { type, message }, request_id: 'req_1' });

describe('toModelError', () => {
  it.each([
    ['moonshot', { error: { type: 'rate_limit_reached_error', message: 'please try again after 20 seconds' } }, {}, 20],
    ['openai', openAi('Limit 3, Used 3.', 'rate_limit_exceeded'), { 'X-RateLimit-Reset-Requests': '20s' }, 20],
    [
      'openrouter',
      {
        error: {
          code: 429,
          message: 'Rate limit exceeded: free-models-per-day',
          metadata: { headers: { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': `${origin.now + 3_600_000}` } },
        },
      },
      {},
      3600,
    ],
  ])('tells the wait that %s asks for, and advises it', (provider, body, headers, seconds) => {
    const { details } = toModelError(apiError(429, body, headers), { ...origin, provider });
    expect(details).toMatchObject({ class: 'rate_limit', retryable: true, retryAfterSeconds: seconds });
    expect(details.next).toContain(`Retry in ${seconds} s`);
  });

  it.each([
    ['SELF_SIGNED_CERT_IN_CHAIN', false, /NODE_EXTRA_CA_CERTS/],
    ['CERT_HAS_EXPIRED', false, /base URL/],
    ['EMFILE', true, /ulimit -n/],
  ])('says what to change after %s', (code, retryable, next) => {
    const error = new TypeError('fetch failed', { cause: Object.assign(new Error('y'), { code }) });
    const { details } = toModelError(error, origin);
    expect(details).toMatchObject({ class: 'network', retryable, next: expect.stringMatching(next) });
  });

  it.each(['fetch failed', 'terminated', 'Failed to process successful response'])(
    'tells what is behind "%s"',
    outer => {
      const wrapped = new Error(outer, { cause: new TypeError('terminated', { cause: new Error('read ECONNRESET') }) });
      expect(toModelError(wrapped, origin).message).toContain(': read ECONNRESET');
      expect(toModelError(new Error(outer), origin).message).toContain(`: ${outer}`);
    },
  );

  it('tells our own limit, whatever packages wrapped it in', () => {
    const limit = badUpstream('The answer did not end after 5 bytes.', false);
    const wrapped = apiError(200);
    Object.assign(wrapped, { cause: new TypeError('terminated', { cause: limit }) });
    const { message, details } = toModelError(wrapped, origin);
    expect(message).toBe(limit.message);
    expect(details).toMatchObject({ class: 'bad_upstream', retryable: false, provider: 'openai', model: 'gpt-x' });
  });

  it.each([
    [
      'OpenAI quota',
      apiError(
        429,
        openAi(
          'You exceeded your current quota, please check your plan and billing details.',
          'insufficient_quota',
          'insufficient_quota',
        ),
      ),
      'quota',
      false,
    ],
    [
      'OpenAI rate',
      apiError(429, openAi('Rate limit reached for gpt-x', 'rate_limit_exceeded', 'requests')),
      'rate_limit',
      true,
    ],
    ['OpenAI key', apiError(401, openAi('Incorrect API key provided: sk-1.', 'invalid_api_key')), 'auth', false],
    [
      'OpenAI window',
      apiError(400, openAi("This model's maximum context length is 8192 tokens.", 'context_length_exceeded')),
      'context_length',
      false,
    ],
    [
      'OpenAI parameter',
      apiError(400, openAi("Unsupported parameter: 'temperature'", 'unsupported_parameter')),
      'bad_request',
      false,
    ],
    [
      'OpenAI filter',
      apiError(400, openAi('Your request was rejected by our safety system.', 'content_policy_violation')),
      'content_filter',
      false,
    ],
    ['unknown model', apiError(404, openAi('The model does not exist', 'model_not_found')), 'bad_request', false],
    [
      'Anthropic credit as 400',
      apiError(400, claude('invalid_request_error', 'Your credit balance is too low to access the Anthropic API.')),
      'balance',
      false,
    ],
    [
      'Anthropic window',
      apiError(400, claude('invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum')),
      'context_length',
      false,
    ],
    [
      'Anthropic size',
      apiError(413, claude('request_too_large', 'Request exceeds the maximum size')),
      'context_length',
      false,
    ],
    [
      'Anthropic token rate',
      apiError(429, claude('rate_limit_error', 'Too many tokens: 30,000 input tokens per minute')),
      'rate_limit',
      true,
    ],
    [
      'Ollama without memory for the model',
      apiError(500, { error: 'model requires more system memory (7.5 GiB) than is available (5.2 GiB)' }),
      'bad_upstream',
      false,
    ],
    ['Anthropic overload', apiError(529, claude('overloaded_error', 'Overloaded')), 'bad_upstream', true],
    [
      'Anthropic permission',
      apiError(403, claude('permission_error', 'Your API key does not have permission')),
      'auth',
      false,
    ],
    [
      'Gemini bad key as 400',
      apiError(400, [
        {
          error: {
            code: 400,
            message: 'API key not valid. Please pass a valid API key.',
            status: 'INVALID_ARGUMENT',
            details: [{ '@type': 'x.ErrorInfo', reason: 'API_KEY_INVALID' }],
          },
        },
      ]),
      'auth',
      false,
    ],
    [
      'DeepSeek balance',
      apiError(402, { error: { message: 'Insufficient Balance', type: 'unknown_error' } }),
      'balance',
      false,
    ],
    ['408', apiError(408), 'timeout', true],
    ['409', apiError(409), 'bad_upstream', true],
    ['422', apiError(422, { detail: [{ loc: ['body'], msg: 'field required' }] }), 'bad_request', false],
    ['500', apiError(500, 'Internal Server Error'), 'bad_upstream', true],
    ['501', apiError(501), 'bad_upstream', true],
    ['502 page', apiError(502, '<html><body><h1>Bad gateway</h1></body></html>'), 'bad_upstream', true],
    ['504', apiError(504), 'timeout', true],
    ['a success that could not be read', apiError(200, '<html>'), 'bad_upstream', true],
    ['an error event of a stream', { type: 'overloaded_error', message: 'Overloaded' }, 'bad_upstream', true],
    [
      'a refusal inside of a stream',
      { message: 'bad thing', type: 'invalid_request_error', code: 'invalid_prompt' },
      'bad_request',
      false,
    ],
    [
      'unreadable JSON',
      Object.assign(new Error('JSON parsing failed'), { name: 'AI_JSONParseError' }),
      'bad_upstream',
      true,
    ],
    [
      'a prompt that the adapter can not say',
      Object.assign(new Error('no'), { name: 'AI_UnsupportedFunctionalityError' }),
      'bad_request',
      false,
    ],
    [
      'a reset',
      Object.assign(new Error('Cannot connect'), { cause: Object.assign(new Error('x'), { code: 'ECONNRESET' }) }),
      'network',
      true,
    ],
    [
      'a refused connection of several addresses',
      new Error('x', { cause: new AggregateError([Object.assign(new Error('y'), { code: 'ECONNREFUSED' })]) }),
      'network',
      true,
    ],
    ['a wrong name', new Error('x', { cause: Object.assign(new Error('y'), { code: 'ENOTFOUND' }) }), 'network', false],
    [
      'a bad certificate',
      new Error('x', { cause: Object.assign(new Error('y'), { code: 'CERT_HAS_EXPIRED' }) }),
      'network',
      false,
    ],
    [
      'no headers in time',
      new Error('x', { cause: Object.assign(new Error('y'), { code: 'UND_ERR_HEADERS_TIMEOUT' }) }),
      'timeout',
      true,
    ],
    [
      'no HTTP',
      new TypeError('fetch failed', { cause: Object.assign(new Error('y'), { name: 'HTTPParserError' }) }),
      'bad_upstream',
      true,
    ],
    [
      'a wrong compression',
      new TypeError('terminated', { cause: Object.assign(new Error('y'), { code: 'Z_DATA_ERROR' }) }),
      'bad_upstream',
      true,
    ],
    ['our own mistake', new TypeError('x is not a function'), 'unknown', false],
    ['a thrown text', 'what', 'unknown', false],
    ['OpenAI credit', apiError(429, openAi('x', 'credit_balance_exhausted', 'insufficient_quota')), 'balance', false],
    [
      'OpenAI spending',
      apiError(429, openAi('x', 'project_spend_limit_exceeded', 'insufficient_quota')),
      'balance',
      false,
    ],
    ['OpenAI usage', apiError(429, openAi('x', 'organization_usage_limit_exceeded', 'y')), 'quota', false],
    [
      'Anthropic spending',
      apiError(429, {
        error: { type: 'rate_limit_error', message: 'x', details: { error_code: 'enforced_spend_limit_reached' } },
      }),
      'balance',
      false,
    ],
    ['Ark overdue', apiError(403, { error: { code: 'AccountOverdueError', message: 'x' } }), 'balance', false],
    ['Alibaba free', apiError(403, { error: { code: 'AllocationQuota.FreeTierOnly', message: 'x' } }), 'quota', false],
    [
      'a gateway in Chinese',
      apiError(403, { error: { message: '用户额度不足, 剩余额度: 0.00', code: '' } }),
      'quota',
      false,
    ],
    ['a balance in Chinese', apiError(403, { error: { message: '账户余额不足,请充值' } }), 'balance', false],
    ['a key that is sensitive', apiError(401, openAi('A key is sensitive information.')), 'auth', false],
    ['a filter that is down', apiError(503, openAi('Later.', 'moderation_unavailable')), 'bad_upstream', true],
    ['a proxy that wants a password', apiError(407, '<html>Proxy Authentication Required</html>'), 'network', false],
    [
      'an envelope in a stream',
      { type: 'error', error: { code: 'context_length_exceeded', message: 'Too much.' } },
      'context_length',
      false,
    ],
    [
      'a filter in a chunk that could not be read',
      Object.assign(new Error('x'), {
        name: 'AI_TypeValidationError',
        value: { choices: null, base_resp: { status_code: 1027, status_msg: 'output new_sensitive' } },
      }),
      'content_filter',
      false,
    ],
    [
      'a piece of an answer that could not be read',
      Object.assign(new Error('Type validation failed: Value: {"x":"the context window"}'), {
        name: 'AI_TypeValidationError',
        value: { x: 'the context window' },
      }),
      'bad_upstream',
      true,
    ],
    ['nothing at all', undefined, 'unknown', false],
  ])('%s', (_name, error, kind, retryable) => {
    expect(verdict(error)).toEqual([kind, retryable]);
  });

  it.each([
    ['a value that quotes', openAi("Invalid value: 'the context window is broken'.", 'invalid_value'), 'bad_request'],
    [
      'arguments that quote',
      openAi('Failed: {"q":"is my prompt too long?"}', 'invalid_function_parameters'),
      'bad_request',
    ],
    [
      'a long name',
      openAi(
        "Invalid 'tools[0].name': string too long. Expected a string with maximum length 64.",
        'string_above_max_length',
      ),
      'bad_request',
    ],
    ['safety', openAi("We've limited access to this content for safety reasons.", 'invalid_prompt'), 'content_filter'],
    [
      'an inner code of Azure',
      { error: { code: 'x', message: 'Refused.', innererror: { code: 'ResponsibleAIPolicyViolation' } } },
      'content_filter',
    ],
    [
      'a camel of Ark',
      { error: { code: 'InputTextSensitiveContentDetected', message: 'The request failed.' } },
      'content_filter',
    ],
    ['Chinese for a filter', { error: { code: 'OperationDenied', message: '内容包含敏感信息' } }, 'content_filter'],
    ['Chinese for too long', { error: { message: '输入的tokens数量超过模型最大长度限制' } }, 'context_length'],
    ['Qianfan', openAi('the max input characters is 24000', 'invalid_argument'), 'context_length'],
    [
      'the bytes of Google',
      { error: { code: 400, message: 'Request payload size exceeds the limit: 20971520 bytes.' } },
      'context_length',
    ],
    ['LiteLLM', openAi('litellm.ContextWindowExceededError: too much'), 'context_length'],
    ["LiteLLM's budget", openAi('Budget has been exceeded!', null, 'budget_exceeded'), 'quota'],
    [
      'arrears of Alibaba',
      { error: { code: 'Arrearage', message: 'Access denied, keep your account in good standing.' } },
      'balance',
    ],
    ['an organization of Anthropic', claude('invalid_request_error', 'This organization has been disabled.'), 'auth'],
  ] as const)('a 400 with %s', (_name, body, kind) => {
    expect(verdict(apiError(400, body))).toEqual([kind, false]);
  });

  it('says who failed, with which status, and what the vendor said', () => {
    const error = toModelError(apiError(400, openAi('Bad\n  thing')), origin);
    expect(error.message).toBe('openai answered 400 for gpt-x: Bad thing');
    expect(error).toMatchObject({
      kind: 'model',
      details: { code: 'API_ERROR', provider: 'openai', model: 'gpt-x', attempt: 2, status: 400 },
    });
  });

  it.each([
    ['text of a page', apiError(502, '<html><style>b{}</style><h1>Bad gateway</h1> nginx</html>'), 'Bad gateway nginx'],
    ['a bare JSON string', apiError(400, '"just words"'), 'just words'],
    ['plain text', apiError(503, 'upstream down'), 'upstream down'],
    ['an error that is a string', apiError(400, { error: 'model is loading' }), 'model is loading'],
    ['a list of errors', apiError(422, { errors: [{ message: 'x is wrong', code: 'X' }] }), 'x is wrong'],
    ['a message with details', apiError(400, { message: { detail: [{ msg: 'y is missing' }] } }), 'y is missing'],
    ['an error in an error', apiError(500, { error: { error: { message: 'deep below' } } }), 'deep below'],
    ['msg', apiError(400, { code: 10003, msg: 'no such app' }), 'no such app'],
    ['error_msg', apiError(400, { error_code: 17, error_msg: 'daily limit' }), 'daily limit'],
    ['a title', apiError(400, { type: 'about:blank', title: 'It failed', status: 400 }), 'It failed'],
    ['a detail before its title', apiError(400, { title: 'It failed', detail: 'because of z' }), 'because of z'],
    ['an empty body', apiError(500, ''), 'from the SDK'],
  ])('reads %s', (_name, error, said) => {
    expect(toModelError(error, origin).message).toMatch(new RegExp(`: ${said}$`));
  });

  it('shortens what the vendor said and keeps neither prompt nor address nor headers', () => {
    const error = toModelError(apiError(400, 'x'.repeat(100_000), { 'set-cookie': 'session=1' }), origin);
    expect(error.message.length).toBeLessThan(400);
    const everything = JSON.stringify([error.message, error.details, String(error.cause)]);
    expect(everything).not.toMatch(/whole prompt|secret|session/);
  });

  it('names the variable of the key, and the wait', () => {
    expect(toModelError(apiError(401), { ...origin, keyName: 'OPENAI_API_KEY' }).details.next).toContain(
      'OPENAI_API_KEY',
    );
    expect(toModelError(apiError(429, '', { 'retry-after': '7' }), origin).details).toMatchObject({
      retryAfterSeconds: 7,
      next: expect.stringContaining('7 s'),
    });
  });

  it('tells a limit of a minute from a used-up quota by the wait that comes with it', () => {
    const body = {
      error: {
        code: 429,
        status: 'RESOURCE_EXHAUSTED',
        message: 'You exceeded your current quota.',
        details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '12.5s' }],
      },
    };
    expect(toModelError(apiError(429, body), origin).details).toMatchObject({
      class: 'rate_limit',
      retryable: true,
      retryAfterSeconds: 12.5,
    });
    expect(verdict(apiError(429, { error: { message: 'You exceeded your current quota.' } }))).toEqual([
      'quota',
      false,
    ]);
  });

  it.each<[string, unknown, string, string, boolean]>([
    [
      'a number of GLM for a balance',
      apiError(429, { error: { code: '1113', message: 'x' } }),
      'zhipu',
      'balance',
      false,
    ],
    [
      'a number of GLM for a rate',
      apiError(400, { error: { code: '1303', message: 'x' } }),
      'zhipu',
      'rate_limit',
      true,
    ],
    [
      'the same number of another',
      apiError(400, { error: { code: '1303', message: 'x' } }),
      'openai',
      'bad_request',
      false,
    ],
    [
      'a balance with a wait',
      apiError(400, { error: { message: 'Credit balance.' } }, { 'retry-after': '7' }),
      'openai',
      'balance',
      false,
    ],
    ['a payment with a wait', apiError(402, '', { 'retry-after': '7' }), 'openai', 'rate_limit', true],
    [
      'a spent quota with a wait',
      apiError(429, { error: { message: 'x', code: 'insufficient_quota' } }, { 'retry-after': '7' }),
      'openai',
      'quota',
      false,
    ],
    ['a status in a word', { code: '599', message: 'x' }, 'openai', 'bad_upstream', true],
    ['a word that is no status', { code: '59', message: 'x' }, 'openai', 'bad_upstream', true],
    ['a status that nobody knows', apiError(505), 'openai', 'bad_upstream', true],
    ['a limit of the platform', Object.assign(new Error('x'), { name: 'TimeoutError' }), 'openai', 'timeout', true],
  ])('%s', (_name, error, provider, kind, retryable) => {
    const { details } = toModelError(error, { ...origin, provider });
    expect([details.class, details.retryable]).toEqual([kind, retryable]);
  });

  it.each([
    ['599', 599],
    [100, 100],
    [99, undefined],
    [600, undefined],
    ['ok', undefined],
  ])('takes %s for the status %s', (status, expected) => {
    expect(readVendorError({ status, message: 'x' }).status).toBe(expected);
  });

  it.each<[string, unknown, string]>([
    ['a cause', Object.assign(new Error('fetch failed'), { cause: new Error('the reason') }), 'the reason'],
    ['no cause', new Error('fetch failed'), 'fetch failed'],
    ['words between marks', apiError(502, '<p>Bad</p><b>gateway<script>x()</script>now</b>'), 'Bad gateway now'],
    ['several refused fields', apiError(422, { detail: [{ msg: 'a' }, null, { loc: [] }, { msg: 'b' }] }), 'a; ; b'],
  ])('reads %s', (_name, error, said) => {
    expect(readVendorError(error).message).toBe(said);
  });

  it('obeys a vendor that says not to try again', () => {
    expect(verdict(apiError(500, '', { 'X-Should-Retry': 'false' }))).toEqual(['bad_upstream', false]);
  });

  it('keeps our own errors and adds where they happened', () => {
    const own = new AppError('config', 'not set', { code: 'CONFIG', class: 'config', next: 'set it' });
    const error = toModelError(own, origin);
    expect(error).toMatchObject({
      kind: 'config',
      message: 'not set',
      details: { code: 'CONFIG', next: 'set it', provider: 'openai', attempt: 2 },
    });
  });

  it('survives a cause that refers to itself', () => {
    const loop: Error & { cause?: unknown } = new Error('round');
    loop.cause = loop;
    expect(verdict(loop)).toEqual(['bad_upstream', true]);
  });
});

describe('a key in a long explanation', () => {
  const key = 'quince-marmalade-orchard';
  const pieces = Array.from({ length: key.length - 5 }, (_, at) => key.slice(at, at + 6));

  it.each([300, 1_200, 10_000, 12_000])('is not shown in part where one of %i characters is cut', length => {
    for (let at = 0; at < 60; at++) {
      const before = 'word '.repeat(length).slice(0, Math.floor(length * 0.6) - at);
      const after = 'word '.repeat(length).slice(0, Math.ceil(length * 0.4) + 60);
      const error = toModelError(apiError(400, openAi(`${before}${key}${after}`)), { ...origin, keys: [key] });
      const shown = inspect(error, { maxStringLength: null });
      expect(pieces.filter(piece => shown.includes(piece))).toEqual([]);
    }
  });
});

describe('withoutKeys', () => {
  it.each([
    'Incorrect API key provided: sk-proj-abc123def456.',
    'Incorrect API key provided: test-key.',
    'invalid x-api-key sk-ant-api03-AAAA-bbbb',
    'Authorization: Bearer abc.def.ghi failed',
    'GET https://me:test-key@host/v1 failed',
    'GET https://host/v1?key=test-key&x=1',
    'key AIzaSyA1234567890abcdefg is bad',
    'deadbeef0123456789deadbeef012345.AbCdEfGh12345678 rejected',
    '{"api_key": "test-key"}',
  ])('takes the key out of: %s', message => {
    expect(withoutKeys(message)).toContain('[removed]');
    expect(withoutKeys(message)).not.toMatch(/abc123|test-key|api03|abc\.def|AIzaSy|deadbeef|AbCdEf/);
  });

  it.each([
    "This model's maximum context length is 128000 tokens.",
    'The model claude-3-5-sonnet-20241022 does not exist',

    'max_tokens: 200000 > 64000, which is the maximum',
  ])('leaves alone: %s', message => {
    expect(withoutKeys(message)).toBe(message);
  });

  it.each(['a+', 'violat', 'exceededt', 'a://', 'key ', 'request too large '])(
    'takes no longer than an explanation of %j is',
    piece => {
      const before = ownTime();
      toModelError(apiError(400, openAi(piece.repeat(300_000 / piece.length))), origin);
      withoutKeys(piece.repeat(300_000 / piece.length));
      expect(ownTime() - before).toBeLessThan(1_000);
    },
  );
});
