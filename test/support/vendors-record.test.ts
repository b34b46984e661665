import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tailHeading } from '../../src/core/message.ts';
import { type Asked, askVendors, type Wire } from './ask-vendors.ts';
import { ownTime } from './own-time.ts';
import type { FakeVendor } from './vendors/fake-vendor.ts';
import { o200kTokens } from './vendors/o200k-tokens.ts';

let asked: Asked;
beforeEach(async () => {
  asked = await askVendors();
});
afterEach(() => asked.close());

describe('what is recorded', () => {
  const turns = [
    { role: 'user', content: 'First question.' },
    { role: 'assistant', content: 'First answer.' },
    { role: 'user', content: 'Second question.' },
  ];
  const tail = { role: 'user', content: `${tailHeading}\nAnswer in JSON.` };
  const canonical = (vendor: FakeVendor) => vendor.requests.map(request => request.canonical);

  it('the canonical form of a longer conversation starts with that of the shorter one', async () => {
    await asked.responses({ input: [{ role: 'developer', content: 'Be brief.' }, turns[0], tail] });
    await asked.responses({ instructions: 'Be brief.', input: [...turns, { ...tail, role: 'developer' }] });
    const [first, second] = canonical(asked.openAi);
    expect(first).toBe('system:Be brief.\n[user]\nFirst question.');
    expect(second).toBe(`${first}\n[assistant]\nFirst answer.\n[user]\nSecond question.`);
    expect(asked.openAi.requests[0]?.messages.at(-1)).toEqual({ role: 'user', text: tail.content });
  });

  it('is the same for the same conversation in every dialect', async () => {
    const system = 'Be brief.';
    await asked.responses({ instructions: system, input: [...turns, tail] });
    await asked.chat({ messages: [{ role: 'system', content: system }, ...turns, tail] });
    const marked = { type: 'text', text: system, cache_control: { type: 'ephemeral' } };
    await asked.claude({ system: [marked], messages: [...turns, tail] });
    expect(new Set([...canonical(asked.openAi), ...canonical(asked.anthropic)]).size).toBe(1);
    expect(new Set([...asked.openAi.requests, ...asked.anthropic.requests].map(request => request.tokens)).size).toBe(
      1,
    );
  });

  it('leaves out all that follows the heading of the tail, in whatever part it stands', async () => {
    const content = ['Stable.', `${tailHeading}\n`, 'More of the tail.'].map(text => ({ type: 'text', text }));
    await asked.claude({ messages: [{ role: 'user', content }] });
    expect(canonical(asked.anthropic)).toEqual(['system:\n[user]\nStable.']);
  });

  it('tools stand before the system text, images have a place and no bytes', async () => {
    const tools = [{ type: 'function', name: 'look', parameters: {} }];
    const content = [
      { type: 'input_text', text: 'See' },
      { type: 'input_image', image_url: 'data:image/png;base64,AQID' },
    ];
    await asked.responses({ tools, input: [{ role: 'user', content }] });
    expect(canonical(asked.openAi)).toEqual([`tools:${JSON.stringify(tools)}\nsystem:\n[user]\nSee\n[image]`]);
  });

  it('the parameters change with what caches are keyed on and with nothing else', async () => {
    await asked.responses({ reasoning: { effort: 'low', summary: 'auto' } });
    await asked.responses({ reasoning: { summary: 'auto', effort: 'low' }, input: 'Other', prompt_cache_key: 'x' });
    await asked.responses({ reasoning: { effort: 'high' } });
    const [first, same, other] = asked.openAi.requests.map(request => request.parameters);
    expect(same).toBe(first);
    expect(other).not.toBe(first);
  });
});

describe('the caches', () => {
  const text = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => `line ${from + index}: something is said here.\n`).join('');
  const cachedOf = async (response: Response) =>
    ((await response.json()) as Wire).usage.input_tokens_details.cached_tokens as number;

  it('OpenAI reuses the common beginning within one key, in steps of 128 from 1,024 on', async () => {
    const ask = (input: string, key: string) => asked.responses({ input, prompt_cache_key: key }).then(cachedOf);
    expect(await ask(text(0, 300), 'a')).toBe(0);
    const common = await ask(text(0, 300) + text(900, 950), 'a');
    const whole = o200kTokens(text(0, 300)).length;
    expect(common % 128).toBe(0);
    expect(whole - common).toBeLessThan(129);
    expect(await ask(text(0, 300), 'b')).toBe(0);
    expect(await ask(text(500, 800), 'a')).toBe(0);
    expect(await ask(text(0, 50), 'a')).toBe(0);
  });

  it('Anthropic reads and writes what the marks say', async () => {
    const mark = { cache_control: { type: 'ephemeral' } };
    const block = (from: number, to: number, marked = true) => ({
      type: 'text',
      text: text(from, to),
      ...(marked && mark),
    });
    const tokens = (from: number, to: number) => o200kTokens(text(from, to)).length;
    const ask = async (...content: unknown[]) => {
      const { usage } = (await (await asked.claude({ messages: [{ role: 'user', content }] })).json()) as Wire;
      return [usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.input_tokens];
    };
    expect(await ask(block(0, 300), block(300, 310, false))).toEqual([0, tokens(0, 300), tokens(300, 310)]);
    expect(await ask(block(0, 300), block(300, 310))).toEqual([tokens(0, 300), tokens(300, 310), 0]);
    expect(await ask(block(0, 300, false), block(300, 310, false))).toEqual([0, 0, tokens(0, 300) + tokens(300, 310)]);
    expect(await ask(block(1, 300))).toEqual([0, tokens(1, 300), 0]);
    expect(await ask(block(400, 420))).toEqual([0, 0, tokens(400, 420)]);
  });
});

describe('the token count', () => {
  it('takes special tokens as the text that they are', () => {
    expect(o200kTokens('<|endoftext|>').length).toBeGreaterThan(1);
  });

  it('stays quick on runs that never end', () => {
    const started = ownTime();
    expect(o200kTokens('a'.repeat(200_000)).length).toBeGreaterThan(20_000);
    expect(o200kTokens(`${' '.repeat(100_000)}${'漢'.repeat(20_000)}`).length).toBeGreaterThan(10_000);
    expect(ownTime() - started).toBeLessThan(5_000);
  });
});
