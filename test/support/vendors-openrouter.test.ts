import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FakeVendor } from './vendors/fake-vendor.ts';
import { startOpenRouter } from './vendors/start-openrouter.ts';

type Body = Record<string, unknown>;

const models = ['anthropic/claude-sonnet-4.5', 'openai/gpt-5', 'openai/gpt-5:nitro'].map(id => ({ id, window: 2_000 }));
let router: FakeVendor;

beforeAll(async () => {
  router = await startOpenRouter({ models });
});
afterAll(() => router.close());

const bearer = { authorization: 'Bearer test-key' };

async function post(body: unknown, headers: Record<string, string> = bearer) {
  const before = router.violations.length;
  const init = { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) };
  const response = await fetch(`${router.url}/chat/completions`, init);
  return { status: response.status, text: await response.text(), violations: router.violations.slice(before) };
}

const hello: Body = { model: 'openai/gpt-5', messages: [{ role: 'user', content: 'Hi' }] };
const marked = { type: 'text', text: 'x', cache_control: { type: 'ephemeral' } };
const user = (...content: unknown[]) => ({ messages: [{ role: 'user', content }] });

describe('the fake OpenRouter', () => {
  it.each<[string, Body]>([
    ['a plain question', {}],
    ['a route of a model', { model: 'openai/gpt-5:nitro' }],
    ['an effort', { reasoning: { effort: 'xhigh', exclude: true } }],
    ['a budget', { reasoning: { max_tokens: 2_000 }, max_tokens: 4_000 }],
    ['four marks', user(marked, marked, marked, marked)],
    ['what it no longer needs', { usage: { include: true }, stream_options: { include_usage: true }, stream: true }],
    ['a session', { session_id: 'thread' }],
  ])('takes %s', async (_name, change) => {
    const { status, violations } = await post({ ...hello, ...change });
    expect({ status, violations }).toEqual({ status: 200, violations: [] });
  });

  it.each<[string, unknown, number, RegExp]>([
    ['a model without a vendor', { ...hello, model: 'gpt-5' }, 400, /not a valid model ID/],
    ['an unknown model', { ...hello, model: 'openai/gpt-2' }, 404, /No endpoints found/],
    ['an unknown field', { ...hello, think: true }, 400, /Unrecognized key.*think/],
    ['another type', { ...hello, max_tokens: 'many' }, 400, /max_tokens/],
    ['an unknown effort', { ...hello, reasoning: { effort: 'ultra' } }, 400, /reasoning.effort/],
    ['effort and budget', { ...hello, reasoning: { effort: 'low', max_tokens: 2_000 } }, 400, /Only one/],
    [
      'a budget without room for an answer',
      { ...hello, reasoning: { max_tokens: 2_000 }, max_tokens: 2_000 },
      400,
      /max_tokens/,
    ],
    ['a budget that is too small', { ...hello, reasoning: { max_tokens: 100 }, max_tokens: 2_000 }, 400, /1024/],
    ['no messages', { ...hello, messages: [] }, 400, /at least 1 token/],
    ['five marks', { ...hello, ...user(marked, marked, marked, marked, marked) }, 400, /maximum of 4/],
    ['blank text', { ...hello, ...user({ type: 'text', text: ' ' }) }, 400, /non-empty/],
    ['an unknown part', { ...hello, ...user({ type: 'input_text', text: 'x' }) }, 400, /Invalid input/],
    [
      'a prompt that is too long',
      { ...hello, ...user({ type: 'text', text: 'word '.repeat(2_100) }) },
      400,
      /prompt is too long/,
    ],
    ['broken JSON', '{', 400, /JSON/],
  ])('refuses %s', async (_name, body, status, message) => {
    const answer = await post(body);
    expect(answer.status).toBe(status);
    expect(answer.text).toMatch(message);
    expect(JSON.parse(answer.text)).toMatchObject({ error: { code: status, message: expect.any(String) } });
    expect(answer.violations).toHaveLength(1);
  });

  it.each<Record<string, string>>([{}, { authorization: 'Bearer other' }, { authorization: 'test-key' }])(
    'wants its key: %j',
    async headers => {
      expect((await post(hello, headers)).status).toBe(401);
    },
  );

  it('streams with comments between, and the cost at the end', async () => {
    router.script({ answer: 'Yes.', reasoning: 'hm', usage: { input: 100, output: 50 } });
    const { text } = await post({ ...hello, stream: true });
    expect(text.match(/^: OPENROUTER PROCESSING$/gm)).toHaveLength(2);
    const events = text
      .split('\n')
      .filter(line => line.startsWith('data: {'))
      .map(line => JSON.parse(line.slice(6)));
    expect(events.map(event => event.choices[0].delta.reasoning).join('')).toBe('hm');
    expect(events.map(event => event.choices[0].delta.content).join('')).toBe('Yes.');
    expect(events.at(-1).usage).toMatchObject({ prompt_tokens: 100, completion_tokens: 50, cost: 0.0003 });
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
  });

  it('lists its models with their windows', async () => {
    const { data } = JSON.parse(await (await fetch(`${router.url}/models`, { headers: bearer })).text());
    expect(data).toMatchObject(models.map(({ id }) => ({ id, context_length: 2_000 })));
  });
});
