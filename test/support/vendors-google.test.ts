import { createGoogle } from '@ai-sdk/google';
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FakeVendor, multibyteAnswer } from './vendors/fake-vendor.ts';
import { o200kTokens } from './vendors/o200k-tokens.ts';
import { startGoogle } from './vendors/start-google.ts';

type Body = Record<string, unknown>;

let vendor: FakeVendor;
beforeEach(async () => {
  vendor = await startGoogle({ window: 100 });
});
afterEach(() => vendor.close());

const flash = 'gemini-2.5-flash';
const says = (text: string, role = 'user') => ({ role, parts: [{ text }] });
const sound: Body = { contents: [says('Hi')] };
const thinks = (thinkingConfig: Body) => ({ generationConfig: { thinkingConfig } });
const parts = (...list: unknown[]) => ({ contents: [{ role: 'user', parts: list }] });
const image = (mimeType: string, data = 'AQID') => ({ inlineData: { mimeType, data } });

interface Manner {
  model?: string;
  method?: string;
  headers?: Record<string, string>;
}

function post(body: unknown, { model = flash, method = 'generateContent', headers }: Manner = {}) {
  return fetch(`${vendor.url}/models/${model}:${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-goog-api-key': 'test-key', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

async function refusal(response: Response) {
  const { error } = (await response.json()) as { error: Body };
  expect(error.code).toBe(response.status);
  expect(vendor.violations).toHaveLength(1);
  return error;
}

describe('the Gemini API', () => {
  it.each<[string, Body, string?]>([
    ['a plain question', {}],
    ['a message without a role', { contents: [{ parts: [{ text: 'Hi' }] }] }],
    ['messages of one role in a row', { contents: [says('Hi'), says('there'), says('Yes?', 'model'), says('Go on')] }],
    ['instructions beside the conversation', { systemInstruction: { parts: [{ text: 'Be brief.' }] } }],
    ['an image', parts({ text: 'See' }, image('image/png'))],
    ['a budget', thinks({ thinkingBudget: 24_576, includeThoughts: true })],
    ['no thinking', thinks({ thinkingBudget: 0 })],
    ['whatever the model thinks best', thinks({ thinkingBudget: -1 })],
    ['a level, in capitals too', thinks({ thinkingLevel: 'HIGH' }), 'gemini-3.1-pro-preview'],
    ['a budget of a newer model', thinks({ thinkingBudget: 2_000 }), 'gemini-3-flash-preview'],
    ['a temperature beside thinking', { generationConfig: { temperature: 0.2, maxOutputTokens: 50, topK: 3 } }],
  ])('takes %s', async (_name, change, model = flash) => {
    const response = await post({ ...sound, ...change }, { model });
    expect({ status: response.status, violations: vendor.violations }).toEqual({ status: 200, violations: [] });
  });

  it.each<[string, Body, RegExp, string?]>([
    ['an unknown field', { messages: [] }, /Unknown name "messages": Cannot find field/],
    ['the model in the body', { model: flash }, /Unknown name "model"/],
    ['an unknown setting', { generationConfig: { max_tokens: 5 } }, /"max_tokens" at 'generation_config'/],
    ['an unknown field of a message', { contents: [{ ...says('Hi'), content: 'Hi' }] }, /"content" at 'contents\[0\]'/],
    ['an unknown field of a part', parts({ type: 'text', text: 'Hi' }), /"type" at 'contents\[0\].parts\[0\]'/],
    ['a wrong type', { contents: 'Hi' }, /Invalid value at 'contents'/],
    ['a limit in words', { generationConfig: { maxOutputTokens: 'all' } }, /'generation_config.max_output_tokens'/],
    ['a limit of none', { generationConfig: { maxOutputTokens: 0 } }, /must be positive/],
    ['too high a temperature', { generationConfig: { temperature: 2.5 } }, /\[0\.0, 2\.0\]/],
    ['too likely words', { generationConfig: { topP: 2 } }, /top_p must be in the range/],
    [
      'a search beside functions, from an older model',
      { tools: [{ googleSearch: {} }, { functionDeclarations: [{ name: 'look' }] }] },
      /Tool use with function calling is unsupported/,
    ],
    ['no contents', { contents: undefined }, /contents is not specified/],
    ['empty contents', { contents: [] }, /contents is not specified/],
    ['empty parts', parts(), /contents\[0\]\.parts: contents\.parts must not be empty/],
    ['an empty text', parts({ text: '' }), /required oneof field 'data'/],
    ['a part of nothing', parts({ thought: true }), /required oneof field 'data'/],
    ['a part of two things', parts({ text: 'Hi', ...image('image/png') }), /already set/],
    ['a text that is a number', parts({ text: 5 }), /TYPE_STRING/],
    ['instructions within the conversation', { contents: [says('Be brief.', 'system')] }, /valid role: user, model/],
    ['an assistant', { contents: [says('Hi', 'assistant'), says('Hi')] }, /valid role/],
    ['empty instructions', { systemInstruction: { parts: [{ text: '' }] } }, /system_instruction/],
    ['an image that is none', parts(image('image/png', 'no bytes!')), /Base64 decoding failed/],
    ['a kind of image that it does not see', parts(image('image/gif')), /Unsupported MIME type: image\/gif/],
    ['a level beside a budget', thinks({ thinkingLevel: 'low', thinkingBudget: 500 }), /only one of/],
    ['a level of an older model', thinks({ thinkingLevel: 'low' }), /level is not supported/],
    ['a level of other models', thinks({ thinkingLevel: 'minimal' }), /MINIMAL is not/, 'gemini-3.8-flash'],
    ['a level nobody knows', thinks({ thinkingLevel: 'max' }), /thinking_level/, 'gemini-3.8-flash'],
    ['an unknown field of thinking', thinks({ effort: 'low' }), /'generation_config.thinking_config'/],
    ['too large a budget', thinks({ thinkingBudget: 30_000 }), /budget 30000 is invalid/],
    ['no thinking where it always thinks', thinks({ thinkingBudget: 0 }), /Budget 0/, 'gemini-2.5-pro'],
    ['thoughts without thinking', thinks({ thinkingBudget: 0, includeThoughts: true }), /include_thoughts/],
    ['thinking of a plain model', thinks({ thinkingBudget: 500 }), /not enabled/, 'gemini-2.0-flash'],
    ['instructions where there are none', { systemInstruction: says('Hi') }, /not enabled/, 'gemma-3-27b-it'],
    ['more than the window', { contents: [says('word '.repeat(200))] }, /token count \(\d+\) exceeds the maximum/],
  ])('refuses %s', async (_name, change, message, model = flash) => {
    const response = await post({ ...sound, ...change }, { model });
    expect(response.status).toBe(400);
    expect(await refusal(response)).toMatchObject({
      status: 'INVALID_ARGUMENT',
      message: expect.stringMatching(message),
    });
  });

  it('refuses what is no JSON', async () => {
    expect(await refusal(await post('{"contents"'))).toMatchObject({ status: 'INVALID_ARGUMENT' });
  });

  it.each([
    ['a missing key', '', 403, { status: 'PERMISSION_DENIED' }],
    ['a wrong key', 'stolen', 400, { details: [{ reason: 'API_KEY_INVALID' }, {}] }],
  ])('refuses %s', async (_name, key, status, error) => {
    const response = await post(sound, { headers: { 'x-goog-api-key': key } });
    expect(response.status).toBe(status);
    expect(await refusal(response)).toMatchObject(error);
  });

  it.each(['streamGenerateContent', 'embedContent'])('does not serve %s', async method => {
    expect(await refusal(await post(sound, { method }))).toMatchObject({ status: 'NOT_FOUND' });
  });

  it('refuses a model that it does not list', async () => {
    await vendor.close();
    vendor = await startGoogle({ models: [{ id: flash }] });
    expect((await post(sound)).status).toBe(200);
    expect(await refusal(await post(sound, { model: 'gemini-9' }))).toMatchObject({
      status: 'NOT_FOUND',
      message: expect.stringContaining('models/gemini-9 is not found'),
    });
  });

  it('records system texts first, then the conversation, without the tail', async () => {
    await post({
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [
        { role: 'user', parts: [{ text: 'See' }, image('image/png')] },
        says('A dot.', 'model'),
        { role: 'user', parts: [{ text: 'And?' }, { text: '=== WHAT TO DO NOW ===\nAnswer.' }] },
      ],
    });
    expect(vendor.requests[0]).toMatchObject({
      dialect: 'generate',
      path: '/v1beta/models/gemini-2.5-flash:generateContent',
      canonical: 'system:Be brief.\n[user]\nSee\n[image]\n[model]\nA dot.\n[user]\nAnd?',
      parameters: expect.stringContaining(flash),
    });
    expect(vendor.requests[0]?.messages.map(({ role }) => role)).toEqual(['system', 'user', 'model', 'user']);
  });

  it('answers whole, thoughts only where they were asked for', async () => {
    vendor.byDefault({ answer: 'Four.', reasoning: 'Two and two.' });
    const thought = o200kTokens('Two and two.').length;
    const shown = await (await post({ ...sound, ...thinks({ includeThoughts: true }) })).json();
    expect(shown).toMatchObject({
      candidates: [{ content: { parts: [{ thought: true }, { text: 'Four.' }] }, finishReason: 'STOP' }],
      usageMetadata: {
        promptTokenCount: 1,
        candidatesTokenCount: o200kTokens('Four.').length,
        thoughtsTokenCount: thought,
        totalTokenCount: 1 + o200kTokens('Four.').length + thought,
      },
    });
    expect(JSON.stringify(await (await post(sound)).json())).not.toContain('Two and two.');
  });

  it('streams bare data, the end of it in the last event alone', async () => {
    vendor.script({ answer: 'One two three.', chunks: 3 });
    const response = await post(sound, { method: 'streamGenerateContent?alt=sse' });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    const events = (await response.text()).split('\n\n').filter(event => event !== '');
    const read = events.map(event => JSON.parse(event.replace(/^data: /, '')));
    expect(read.map(({ candidates: [{ finishReason }] }) => finishReason)).toEqual([
      ...[undefined, undefined, undefined],
      'STOP',
    ]);
    expect(read.map(({ candidates: [{ content }] }) => content.parts[0].text).join('')).toBe('One two three.');
  });

  it('answers a blocked prompt without a candidate and a cut one with its reason', async () => {
    vendor.script({ answer: '', finish: 'content_filter' }, { answer: 'one two three four' });
    const blocked = await (await post(sound)).json();
    expect(blocked).toMatchObject({ promptFeedback: { blockReason: 'SAFETY' } });
    expect(blocked).not.toHaveProperty('candidates');
    expect(await (await post({ ...sound, generationConfig: { maxOutputTokens: 2 } })).json()).toMatchObject({
      candidates: [{ finishReason: 'MAX_TOKENS' }],
    });
  });

  it.each([
    [429, 'RESOURCE_EXHAUSTED'],
    [500, 'INTERNAL'],
    [503, 'UNAVAILABLE'],
  ])('fails with %s as %s', async (status, word) => {
    vendor.script({ fault: 'status', status });
    expect(await (await post(sound)).json()).toMatchObject({ error: { code: status, status: word } });
  });

  it('reads long prompts of one model from its cache, from its own least size on', async () => {
    await vendor.close();
    vendor = await startGoogle();
    const cached = async (words: number, model: string) => {
      await post({ contents: [says(`${model} ${'word '.repeat(words)}`)] }, { model });
      const again = await post({ contents: [says(`${model} ${'word '.repeat(words)}`), says('More')] }, { model });
      return ((await again.json()) as { usageMetadata: Body }).usageMetadata.cachedContentTokenCount;
    };
    expect(await cached(1_500, flash)).toBeUndefined();
    expect(await cached(3_000, flash)).toBeGreaterThan(2_800);
    expect(await cached(3_000, 'gemini-3.8-flash')).toBeUndefined();
    expect(await cached(5_000, 'gemini-3.8-flash')).toBeGreaterThan(4_800);
  });

  it('lists its models page by page', async () => {
    await vendor.close();
    vendor = await startGoogle({ models: [{ id: 'a' }, { id: 'b', window: 5 }, { id: 'embedding-1' }] });
    const page = async (query: string) =>
      (await fetch(`${vendor.url}/models${query}`, { headers: { 'x-goog-api-key': 'test-key' } })).json();
    expect(await page('?pageSize=2')).toMatchObject({
      models: [{ name: 'models/a' }, { name: 'models/b', inputTokenLimit: 5 }],
      nextPageToken: '2',
    });
    const rest = await page('?pageSize=2&pageToken=2');
    expect(rest).toMatchObject({ models: [{ supportedGenerationMethods: ['embedContent', 'countTokens'] }] });
    expect(rest).not.toHaveProperty('nextPageToken');
  });
});

describe('the AI SDK over the Gemini API', () => {
  const ask = async (model = flash, thinkingConfig: { thinkingLevel?: 'high'; thinkingBudget?: number } = {}) => {
    const { stream } = await createGoogle({ baseURL: vendor.url, apiKey: 'test-key' })(model).doStream({
      prompt: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array([1, 2, 3]) } },
          ],
        },
        { role: 'assistant', content: [{ type: 'text', text: 'An image.' }] },
        { role: 'user', content: [{ type: 'text', text: 'And now?' }] },
      ],
      maxOutputTokens: 2_000,
      providerOptions: { google: { thinkingConfig: { ...thinkingConfig, includeThoughts: true } } },
    });
    const got: LanguageModelV4StreamPart[] = [];
    for await (const part of stream) got.push(part);
    return got;
  };
  const textOf = (got: LanguageModelV4StreamPart[]) =>
    got.map(part => (part.type === 'text-delta' ? part.delta : '')).join('');
  const finishOf = (got: LanguageModelV4StreamPart[]) => got.find(part => part.type === 'finish');

  it.each([
    [flash, { thinkingBudget: 1_000 }],
    ['gemini-4-argon', { thinkingLevel: 'high' as const }],
  ])('gets text, finish and usage of %s, and breaks no rule', async (model, thinking) => {
    vendor.script({ answer: 'It is a test.', reasoning: 'Hm, let me see.' });
    const got = await ask(model, thinking);
    expect(textOf(got)).toBe('It is a test.');
    expect(got.map(part => (part.type === 'reasoning-delta' ? part.delta : '')).join('')).toBe('Hm, let me see.');
    expect(finishOf(got)).toMatchObject({
      finishReason: { unified: 'stop', raw: 'STOP' },
      usage: { inputTokens: { total: vendor.requests[0]?.tokens }, outputTokens: { total: 5 + 6, reasoning: 6 } },
    });
    expect(vendor.violations).toEqual([]);
  });

  it.each(['crlf', 'split_utf8'] as const)('reads a %s stream whole', async fault => {
    vendor.script({ fault });
    expect(textOf(await ask())).toBe(multibyteAnswer);
  });

  it.each(['end_mid_stream', 'error_in_stream', 'html', 'empty', 'whitespace_and_comments'] as const)(
    'never takes %s for a finished answer',
    async fault => {
      vendor.script({ fault });
      expect(['error', 'interrupted', undefined]).toContain(finishOf(await ask())?.finishReason.unified);
    },
  );
});
