import { generateText, jsonSchema, type ModelMessage, stepCountIs, streamText, tool } from 'ai';
import { describe, expect, it } from 'vitest';
import { vendorEnv } from '../../support/product.ts';
import type { RecordedRequest } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startDeepSeek } from '../../support/vendors/start-deepseek.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';
import { startGroq } from '../../support/vendors/start-groq.ts';
import { startMoonshot } from '../../support/vendors/start-moonshot.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { libraryRig } from './library-rig.ts';

const rig = libraryRig();

const starts = {
  anthropic: startAnthropic,
  deepseek: startDeepSeek,
  google: startGoogle,
  groq: startGroq,
  moonshot: startMoonshot,
  openai: startOpenAi,
};

const weatherThat = (tells: () => unknown) =>
  tool({
    inputSchema: jsonSchema<object>({ type: 'object', properties: { city: { type: 'string' } } }),
    execute: async () => tells(),
  });

const weather = weatherThat(() => ({ celsius: 20 }));

const steps = { tools: { weather }, stopWhen: stepCountIs(3), maxRetries: 0 };

const hasResult = ({ body }: RecordedRequest) =>
  /tool_result|functionResponse|"role":"tool"|_output"/.test(JSON.stringify(body));

describe('what a model thought before it called a tool of a program', () => {
  const [thought, base64] = ['hm, a hard one', Buffer.from('hm, a hard one').toString('base64')];

  it.each([
    ['moonshot:kimi-k3', 'moonshot', `"reasoning_content":"${thought}"`],
    ['moonshot:kimi-k2.5', 'moonshot', `"reasoning_content":"${thought}"`],
    ['moonshot:kimi-k2-thinking', 'moonshot', `"reasoning_content":"${thought}"`],
    ['deepseek:deepseek-reasoner', 'deepseek', `"reasoning_content":"${thought}"`],
    ['anthropic:claude-sonnet-4-5:high', 'anthropic', `-${base64}"`],
    ['google:gemini-3-pro-preview', 'google', '"thoughtSignature":"'],
    ['openai:gpt-5-mini', 'openai', `"encrypted_content":"${base64}"`],
  ] as const)('goes back to %s, from a stream and from JSON too', async (name, provider, sent) => {
    const vendor = await starts[provider]();
    try {
      const { languageModel } = await rig.open({ settings: vendorEnv({ [provider]: vendor.url }) });
      const model = languageModel(name);
      vendor.byDefault({
        reasoning: thought,
        calls: request => (hasResult(request) ? [] : [{ name: 'weather', args: { city: 'Bern' } }]),
        answer: request => (hasResult(request) ? 'Sunny.' : 'Let me look.'),
      });
      // Apart from ids, of which each answer has its own.
      const lastBody = () => JSON.stringify(vendor.requests.at(-1)?.body).replace(/_\d+|"id":"\w+"/g, '');
      const generated = await generateText({ model, prompt: 'Bern?', ...steps });
      expect([generated.text, generated.steps.length]).toEqual(['Sunny.', 2]);
      expect(lastBody()).toContain(sent);
      const asked = lastBody();
      const streamed = streamText({ model, prompt: 'Bern?', ...steps });
      expect([await streamed.text, (await streamed.steps).length]).toEqual(['Sunny.', 2]);
      expect(lastBody()).toBe(asked);
      // Another program stored the first step, or all but its thoughts.
      const [said, came] = generated.steps[0]?.response.messages ?? [];
      const stored: ModelMessage[] = JSON.parse(JSON.stringify([{ role: 'user', content: 'Bern?' }, said, came]));
      expect((await generateText({ model, messages: stored, ...steps })).text).toBe('Sunny.');
      expect(lastBody()).toBe(asked);
      const bare = stored.map(message => {
        if (message.role !== 'assistant' || typeof message.content === 'string') return message;
        const content = message.content.filter(({ type }) => type !== 'reasoning');
        return { ...message, content: content.map(part => ({ ...part, providerOptions: undefined })) };
      });
      if (provider === 'moonshot' || provider === 'deepseek')
        expect((await generateText({ model, messages: bare, ...steps })).text).toBe('Sunny.');
      expect(vendor.violations).toEqual([]);
    } finally {
      await vendor.close();
    }
  });

  it('is masked, and then goes back without a signature that would be none', async () => {
    const secret = `sk-proj-${'a1B2'.repeat(12)}`;
    const vendor = await startMoonshot();
    try {
      const { languageModel } = await rig.open({ settings: vendorEnv({ moonshot: vendor.url }) });
      vendor.script(
        { reasoning: `Is it ${secret}?`, calls: [{ name: 'weather', args: {} }] },
        { reasoning: 'No.', answer: 'It is not.' },
      );
      const { steps: all, text } = await generateText({ model: languageModel('kimi-k3'), prompt: 'Is it?', ...steps });
      expect(text).toBe('It is not.');
      expect(all[0]?.reasoningText).toMatch(/^Is it \[masked:.*\]\?$/);
      expect(JSON.stringify(all) + JSON.stringify(vendor.requests.at(-1)?.body)).not.toContain('a1B2');
    } finally {
      await vendor.close();
    }
  });
});

describe('what is too long for a model', () => {
  const groq = 'openai/gpt-oss-120b';

  it.each([
    ['groq', 'thread', groq, 131_072],
    ['groq', 'all that the program sends', groq, 131_072],
    ['anthropic', 'all that the program sends', 'claude-haiku-4-5', 200_000],
  ] as const)('loses its oldest turns, and rounds of one question (%s, %s)', async (provider, kept, id, window) => {
    const vendor = await starts[provider]({ models: [{ id, window }] });
    try {
      const { languageModel } = await rig.open({ settings: vendorEnv({ [provider]: vendor.url }) });
      const model = languageModel(`${provider}:${id}`, kept === 'thread' ? { thread: true } : {});
      const words = (at: number) => `number ${at} ${'ago '.repeat(20_000)}`;
      vendor.byDefault({ answer: 'Noted.' });
      const history = Array.from({ length: 24 }, (_, at): ModelMessage => {
        return at % 2 ? { role: 'assistant', content: 'Noted.' } : { role: 'user', content: words(at) };
      });
      const system = 'Be brief.';
      const question: ModelMessage = { role: 'user', content: 'And now?' };
      const { text, warnings } = await generateText({ model, system, messages: [...history, question], maxRetries: 0 });
      expect([text, warnings?.length]).toEqual(['Noted.', 1]);
      const sent = JSON.stringify(vendor.requests.at(-1)?.messages);
      expect(sent).toMatch(/Be brief[\s\S]*number 22 [\s\S]*And now\?/);
      expect(sent).not.toContain('number 0 ');
      let round = 0;
      vendor.byDefault({
        calls: () => (round++ < 12 ? [{ name: 'weather', args: { city: `${round}` } }] : []),
        answer: () => (round > 12 ? 'Done.' : ''),
      });
      const work = { tools: { weather: weatherThat(() => words(round)) }, stopWhen: stepCountIs(20), maxRetries: 0 };
      const done = await generateText({ model, prompt: 'What is it to be?', ...work });
      expect([done.text, done.steps.length]).toEqual(['Done.', 13]);
      const last = JSON.stringify(vendor.requests.at(-1)?.messages);
      expect(last).toMatch(/What is it to be\?[\s\S]*number 11 [\s\S]*number 12 /);
      expect(last).not.toContain('number 1 ');
      expect(vendor.violations).toEqual([]);
    } finally {
      await vendor.close();
    }
  });
});
