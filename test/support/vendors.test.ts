import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FakeVendor } from './vendors/fake-vendor.ts';
import { startAnthropic } from './vendors/start-anthropic.ts';
import { startOpenAi } from './vendors/start-open-ai.ts';

type Body = Record<string, unknown>;

const models = ['gpt-5.2', 'gpt-5', 'gpt-6-astra', 'o3', 'gpt-4o', 'llama3:8b'].map(id => ({ id }));
let openAi: FakeVendor;
let anthropic: FakeVendor;

beforeAll(async () => {
  openAi = await startOpenAi({ models, window: 50 });
  anthropic = await startAnthropic({ window: 50 });
});
afterAll(async () => {
  await openAi.close();
  await anthropic.close();
});

async function post(vendor: FakeVendor, path: string, body: unknown, headers: Record<string, string>) {
  const before = vendor.violations.length;
  const response = await fetch(`${vendor.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const answer: unknown = await response.json();
  return { status: response.status, answer, violations: vendor.violations.slice(before) };
}

const bearer = { authorization: 'Bearer test-key' };
const claude = { 'x-api-key': 'test-key', 'anthropic-version': '2023-06-01' };
const image = 'data:image/png;base64,AQID';
const long = 'word '.repeat(60);

const responses: Body = { model: 'gpt-5.2', input: [{ role: 'user', content: 'Hi' }] };
const chat: Body = { model: 'gpt-5.2', messages: [{ role: 'user', content: 'Hi' }] };
const messages: Body = { model: 'claude-sonnet-4-5', max_tokens: 2_000, messages: [{ role: 'user', content: 'Hi' }] };
const marked = (text: string, ttl?: string) => ({ type: 'text', text, cache_control: { type: 'ephemeral', ttl } });
const user = (...content: unknown[]) => ({ messages: [{ role: 'user', content }] });

describe('OpenAI Responses', () => {
  it.each<[string, Body]>([
    ['a plain text', { input: 'Hi' }],
    ['all roles', { input: ['system', 'developer', 'user'].map(role => ({ role, content: 'Hi' })) }],
    ['an image', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: image }] }] }],
    ['an effort of the model', { reasoning: { effort: 'xhigh', summary: 'auto' } }],
    ['a temperature while it does not reason', { reasoning: { effort: 'none' }, temperature: 0.5 }],
    ['a temperature of a plain model', { model: 'gpt-4o', temperature: 0.5 }],
    ['what a cache wants to know', { store: false, prompt_cache_key: 'thread', instructions: 'Be brief.' }],
  ])('takes %s', async (_name, change) => {
    const { status, violations } = await post(openAi, '/responses', { ...responses, ...change }, bearer);
    expect({ status, violations }).toEqual({ status: 200, violations: [] });
  });

  it.each<[string, Body, Body]>([
    ['an unknown field', { max_tokens: 50 }, { param: 'max_tokens', code: 'unknown_parameter' }],
    ['a wrong type', { store: 'no' }, { param: 'store', code: 'invalid_type' }],
    ['a temperature while it reasons', { temperature: 0.5 }, { param: 'temperature', code: 'unsupported_parameter' }],
    ['a temperature of an o model', { model: 'o3', temperature: 1 }, { param: 'temperature' }],
    ['a temperature of gpt-6', { model: 'gpt-6-astra', temperature: 0 }, { param: 'temperature' }],
    [
      'an effort nobody knows',
      { reasoning: { effort: 'ultra' } },
      { param: 'reasoning.effort', code: 'invalid_value' },
    ],
    ['an effort of other models', { reasoning: { effort: 'minimal' } }, { code: 'unsupported_value' }],
    ['an effort of a plain model', { model: 'gpt-4o', reasoning: { effort: 'low' } }, { param: 'reasoning.effort' }],
    ['an empty input', { input: [] }, { param: 'input' }],
    ['an empty text', { input: '' }, { param: 'input' }],
    ['no input', { input: undefined }, { param: 'input', code: 'missing_required_parameter' }],
    ['an unknown role', { input: [{ role: 'tool', content: 'Hi' }] }, { param: 'input[0].role' }],
    [
      'an assistant that asks',
      { input: [{ role: 'assistant', content: [{ type: 'input_text', text: 'Hi' }] }] },
      { param: 'input[0].content[0].type' },
    ],
    [
      'an image that is none',
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:text/plain;base64,AQID' }] }] },
      { param: 'input[0].content[0].image_url' },
    ],
    ['stream options without a stream', { stream_options: {} }, { param: 'stream_options' }],
    ['to include what nobody knows', { include: ['thoughts'] }, { param: 'include[0]', code: 'invalid_value' }],
    [
      'sealed thoughts of a plain model',
      { model: 'gpt-4o', include: ['reasoning.encrypted_content'] },
      { param: 'include' },
    ],
    ['too likely words', { model: 'gpt-4o', top_p: 1.5 }, { param: 'top_p' }],
    ['a verbosity nobody knows', { text: { verbosity: 'chatty' } }, { param: 'text.verbosity' }],
    ['too small a limit', { max_output_tokens: 5 }, { code: 'integer_below_min_value' }],
    ['a conversation that was not kept', { previous_response_id: 'resp_1' }, { code: 'previous_response_not_found' }],
    ['an unknown model', { model: 'gpt-9' }, { code: 'model_not_found', status: 404 }],
    ['more than the window', { input: long }, { code: 'context_length_exceeded' }],
  ])('refuses %s', async (_name, change, { status = 400, ...about }) => {
    const refused = await post(openAi, '/responses', { ...responses, ...change }, bearer);
    expect(refused.status).toBe(status);
    expect(refused.answer).toEqual({
      error: expect.objectContaining({ message: expect.any(String), type: 'invalid_request_error', ...about }),
    });
    expect(refused.violations).toEqual([expect.stringMatching(/^POST \/v1\/responses: \d{3} ./)]);
  });
});

describe('OpenAI Chat Completions', () => {
  it.each<[string, Body]>([
    ['a plain question', { max_completion_tokens: 50, reasoning_effort: 'high' }],
    ['the old limit from models that do not reason', { model: 'llama3:8b', max_tokens: 50, temperature: 0.2 }],
    ['the temperature that is so anyway', { temperature: 1 }],
  ])('takes %s', async (_name, change) => {
    const { status, violations } = await post(openAi, '/chat/completions', { ...chat, ...change }, bearer);
    expect({ status, violations }).toEqual({ status: 200, violations: [] });
  });

  it.each<[string, Body, Body]>([
    ['an unknown field', { max_output_tokens: 50 }, { param: null }],
    [
      'the old limit on a model that reasons',
      { max_tokens: 50 },
      { param: 'max_tokens', code: 'unsupported_parameter' },
    ],
    ['a temperature of a model that reasons', { temperature: 0.2 }, { code: 'unsupported_value' }],
    ['an effort nobody knows', { reasoning_effort: 'ultra' }, { param: 'reasoning_effort', code: 'invalid_value' }],
    ['stream options without a stream', { stream_options: { include_usage: true } }, { param: 'stream_options' }],
    ['no messages', { messages: [] }, { param: 'messages', code: 'empty_array' }],
    ['an unknown role', { messages: [{ role: 'model', content: 'Hi' }] }, { param: 'messages[0].role' }],
    ['a part of another dialect', user({ type: 'input_text', text: 'Hi' }), { param: 'messages[0].content[0].type' }],
    ['more than the window', user({ type: 'text', text: long }), { code: 'context_length_exceeded' }],
  ])('refuses %s', async (_name, change, about) => {
    const refused = await post(openAi, '/chat/completions', { ...chat, ...change }, bearer);
    expect(refused.status).toBe(400);
    expect(refused.answer).toEqual({ error: expect.objectContaining({ type: 'invalid_request_error', ...about }) });
    expect(refused.violations).toHaveLength(1);
  });
});

describe('Anthropic Messages', () => {
  const thinking = { type: 'enabled', budget_tokens: 1_024 };

  it.each<[string, Body]>([
    ['a plain question', { temperature: 0.5 }],
    ['thinking within the limit', { thinking, temperature: 1 }],
    ['adaptive thinking', { model: 'claude-opus-5', thinking: { type: 'adaptive' }, output_config: { effort: 'max' } }],
    ['four marks', user(...['a', 'b', 'c', 'd'].map(text => marked(text)))],
    ['an image', user({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AQID' } })],
    [
      'system text at the end, from a newer model',
      {
        model: 'claude-opus-5',
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'system', content: 'Now.' },
        ],
      },
    ],
  ])('takes %s', async (_name, change) => {
    const { status, violations } = await post(anthropic, '/messages', { ...messages, ...change }, claude);
    expect({ status, violations }).toEqual({ status: 200, violations: [] });
  });

  it.each<[string, Body, string]>([
    ['no limit', { max_tokens: undefined }, 'max_tokens: Field required'],
    ['a limit above the model', { max_tokens: 64_001 }, 'maximum allowed number of output tokens'],
    ['an unknown field', { store: false }, 'store: Extra inputs are not permitted'],
    ['a field of a beta', { context_management: {} }, 'Extra inputs are not permitted'],
    ['a wrong type', { max_tokens: '50' }, 'valid integer'],
    ['no messages', { messages: [] }, 'at least one message'],
    ['an answer first', { messages: [{ role: 'assistant', content: 'Hi' }] }, 'first message must use the "user" role'],
    ['an unknown role', { messages: [{ role: 'developer', content: 'Hi' }] }, 'messages.0.role'],
    ['an empty message', { messages: [{ role: 'user', content: '' }] }, 'non-empty'],
    ['an empty text', user({ type: 'text', text: '' }), 'text content blocks must be non-empty'],
    ['a blank text', user({ type: 'text', text: ' \n' }), 'non-whitespace'],
    ['an empty system text', { system: [{ type: 'text', text: '' }] }, 'system: text content blocks'],
    ['five marks', { ...user(...['a', 'b', 'c', 'd'].map(text => marked(text))), system: [marked('e')] }, 'Found 5'],
    ['a mark of no kind', user({ ...marked('a'), cache_control: { type: 'forever' } }), "should be 'ephemeral'"],
    ['a long mark after a short one', user(marked('a'), marked('b', '1h')), "ttl='1h'"],
    ['a budget at the limit', { thinking: { ...thinking, budget_tokens: 2_000 } }, 'must be greater than'],
    ['a budget below the least', { thinking: { ...thinking, budget_tokens: 100 } }, 'greater than or equal to 1024'],
    ['a temperature while it thinks', { thinking, temperature: 0.5 }, 'may only be set to 1'],
    ['both samplings', { temperature: 0.5, top_p: 0.9 }, 'cannot both be specified'],
    ['strange metadata', { metadata: { thread: 'x' } }, 'metadata.thread: Extra inputs are not permitted'],
    ['a temperature of a newer model', { model: 'claude-opus-5', temperature: 0.5 }, 'deprecated'],
    ['a budget of a newer model', { model: 'claude-opus-5', thinking }, 'thinking.type.adaptive'],
    ['an effort of a model without', { output_config: { effort: 'high' } }, 'does not support the effort'],
    ['an effort nobody knows', { model: 'claude-opus-5', output_config: { effort: 'ultra' } }, 'output_config.effort'],
    [
      'system text at the end, from an older model',
      {
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'system', content: 'Now.' },
        ],
      },
      "role 'system' is not supported on this model",
    ],
    [
      'system text before a question',
      { model: 'claude-opus-5', messages: ['user', 'system', 'user'].map(role => ({ role, content: 'Hi' })) },
      "must precede an 'assistant' message",
    ],
    [
      'the beginning of its answer',
      { model: 'claude-opus-5', messages: ['user', 'assistant'].map(role => ({ role, content: 'Hi' })) },
      'prefill',
    ],
    [
      'an image that is none',
      user({ type: 'image', source: { type: 'base64', media_type: 'image/bmp', data: 'AQID' } }),
      'media_type',
    ],
    [
      'more than the window',
      { messages: [{ role: 'user', content: long }] },
      'prompt is too long: 61 tokens > 50 maximum',
    ],
  ])('refuses %s', async (_name, change, message) => {
    const refused = await post(anthropic, '/messages', { ...messages, ...change }, claude);
    expect(refused.status).toBe(400);
    expect(refused.answer).toEqual({
      type: 'error',
      error: { type: 'invalid_request_error', message: expect.stringContaining(message) },
      request_id: expect.stringMatching(/^req_/),
    });
    expect(refused.violations).toEqual([expect.stringContaining(message)]);
  });
});

describe('both vendors', () => {
  it.each<[string, Record<string, string>, Body]>([
    ['no key', {}, { code: null }],
    ['a wrong key', { authorization: 'Bearer sk-1234567890abcdefgh' }, { code: 'invalid_api_key' }],
  ])('OpenAI refuses %s with its 401', async (_name, headers, about) => {
    const refused = await post(openAi, '/responses', responses, headers);
    expect(refused.status).toBe(401);
    expect(refused.answer).toEqual({ error: expect.objectContaining(about) });
    expect(JSON.stringify(refused)).not.toContain('1234567890');
  });

  it.each<[string, Record<string, string>, number, string]>([
    ['no key', { 'anthropic-version': '2023-06-01' }, 401, 'authentication_error'],
    ['a wrong key', { ...claude, 'x-api-key': 'other' }, 401, 'authentication_error'],
    ['no version', { 'x-api-key': 'test-key' }, 400, 'invalid_request_error'],
    ['a wrong version', { ...claude, 'anthropic-version': '1' }, 400, 'invalid_request_error'],
  ])('Anthropic refuses %s', async (_name, headers, status, type) => {
    const refused = await post(anthropic, '/messages', messages, headers);
    expect(refused).toMatchObject({ status, answer: { type: 'error', error: { type } } });
    expect(refused.violations).toHaveLength(1);
  });

  it('refuse a body that is no JSON, and other addresses', async () => {
    expect(await post(openAi, '/responses', '{"model":', bearer)).toMatchObject({ status: 400 });
    expect(await post(anthropic, '/messages', '[1]', claude)).toMatchObject({ status: 400 });
    expect(await post(openAi, '/completions', {}, bearer)).toMatchObject({ status: 404 });
    expect(await post(anthropic, '/complete', {}, claude)).toMatchObject({ status: 404 });
  });

  it('record what they refuse and keep the scripted steps for what they answer', async () => {
    const vendor = await startOpenAi();
    vendor.script({ answer: 'scripted' });
    await post(vendor, '/responses', { ...responses, store: 'no' }, bearer);
    const { answer } = await post(vendor, '/responses', responses, bearer);
    await vendor.close();
    expect(vendor.requests.map(request => request.tokens)).toEqual([1, 1]);
    expect(vendor.violations).toHaveLength(1);
    expect(JSON.stringify(answer)).toContain('scripted');
  });

  it('keep the scripted steps about some words for a request that has them', async () => {
    const vendor = await startOpenAi();
    vendor.script({ answer: 'about doors', about: 'door' }, { answer: 'about anything' });
    const asked = (input: string) => post(vendor, '/responses', { ...responses, input }, bearer);
    const answers = [await asked('A wall?'), await asked('A door?'), await asked('A door?')];
    await vendor.close();
    expect(JSON.stringify(answers.map(({ answer }) => answer))).toMatch(/about anything.*about doors.*Answer 3\./);
  });

  it('answer without any key when they ask for none', async () => {
    const vendor = await startOpenAi({ keys: [] });
    expect(await post(vendor, '/chat/completions', chat, {})).toMatchObject({ status: 200, violations: [] });
    await vendor.close();
  });
});
