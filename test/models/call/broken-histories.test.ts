import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import { repairHistory, signerOf } from '../../../src/models/call/repair-history.ts';
import type { ProviderDefinition } from '../../../src/models/provider.ts';
import { anthropic } from '../../../src/providers/anthropic.ts';
import { deepseek } from '../../../src/providers/deepseek.ts';
import { google } from '../../../src/providers/google/google.ts';
import { openai } from '../../../src/providers/openai.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startDeepSeek } from '../../support/vendors/start-deepseek.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { modelInfo } from '../scripted-model.ts';

type Part = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number];

const text = (said: string) => ({ type: 'text' as const, text: said });
const call = (id: string, change: Record<string, unknown> = {}): Part => ({
  type: 'tool-call',
  toolCallId: id,
  toolName: 'look',
  input: { at: id },
  ...change,
});
const result = (id: string, value = `seen ${id}`, toolName = 'look') => ({
  type: 'tool-result' as const,
  toolCallId: id,
  toolName,
  output: { type: 'text' as const, value },
});
const thought = (signer?: string): Part => ({
  type: 'reasoning',
  text: 'Let me think.',
  ...(signer && {
    providerOptions: { [signer]: { signature: `${signer}-1`, itemId: 'rs_1', reasoningEncryptedContent: 'c2VhbGVk' } },
  }),
});
const user = (...said: string[]): LanguageModelV4Message => ({ role: 'user', content: said.map(text) });
const assistant = (...content: Part[]): LanguageModelV4Message => ({ role: 'assistant', content });
const tool = (...results: ReturnType<typeof result>[]): LanguageModelV4Message => ({ role: 'tool', content: results });
const system: LanguageModelV4Message = { role: 'system', content: 'You look at things.' };
const ask = user('Look.');
const end = [assistant(text('It is a gate.')), user('Thanks. And now?')];

const broken: Record<string, LanguageModelV4Prompt> = {
  'a call without a result': [ask, assistant(call('a')), ...end],
  'a call at the very end': [ask, assistant(call('a'))],
  'two calls, the second without a result': [ask, assistant(call('a'), call('b')), tool(result('a')), ...end],
  'two calls, the first without a result': [ask, assistant(call('a'), call('b')), tool(result('b')), ...end],
  'results in the other order': [ask, assistant(call('a'), call('b')), tool(result('b'), result('a')), ...end],
  'results in two messages': [ask, assistant(call('a'), call('b')), tool(result('a')), tool(result('b')), ...end],
  'a result twice': [ask, assistant(call('a')), tool(result('a'), result('a')), ...end],
  'a result twice, in two messages': [ask, assistant(call('a')), tool(result('a')), tool(result('a')), ...end],
  'a result without a call': [ask, tool(result('nobody')), ...end],
  'a result before its call': [ask, tool(result('a')), assistant(call('a')), ...end],
  'a result after a question': [ask, assistant(call('a')), user('Wait.'), tool(result('a')), ...end],
  'a result after an answer': [ask, assistant(call('a')), assistant(text('Hm.')), tool(result('a')), ...end],
  'only a result': [tool(result('a'))],
  'a call twice in one message': [ask, assistant(call('a'), call('a')), tool(result('a')), ...end],
  'an id that two calls have': [
    ask,
    assistant(call('a')),
    tool(result('a')),
    assistant(call('a')),
    tool(result('a')),
    ...end,
  ],
  'an id with dots, colons and blanks': [ask, assistant(call('f.look:0 x')), tool(result('f.look:0 x')), ...end],
  'an id that is too long': [ask, assistant(call('x'.repeat(200))), tool(result('x'.repeat(200))), ...end],
  'an empty id': [ask, assistant(call('')), tool(result('')), ...end],
  'a tool with a name that none has': [
    ask,
    assistant(call('a', { toolName: 'look.at/it!' })),
    tool(result('a', 'seen', 'look.at/it!')),
    ...end,
  ],
  'a tool without a name': [ask, assistant(call('a', { toolName: '' })), tool(result('a', 'seen', '')), ...end],
  'a tool with a name that is too long': [
    ask,
    assistant(call('a', { toolName: 'y'.repeat(150) })),
    tool(result('a')),
    ...end,
  ],
  'arguments that are a text': [ask, assistant(call('a', { input: '{"at": ' })), tool(result('a')), ...end],
  'arguments that are a list': [ask, assistant(call('a', { input: [1] })), tool(result('a')), ...end],
  'arguments that are nothing': [ask, assistant(call('a', { input: null })), tool(result('a')), ...end],
  'a blank result': [ask, assistant(call('a')), tool(result('a', ' \n')), ...end],
  'a blank text beside a call': [ask, assistant(text(' '), call('a')), tool(result('a')), ...end],
  'a blank answer': [ask, assistant(text('')), user('Well?')],
  'a blank question': [user(' '), assistant(text('What?')), user('Nothing.')],
  'an answer at the beginning': [assistant(text('Hello.')), ask],
  'a call at the beginning': [assistant(call('a')), tool(result('a')), ...end],
  'an answer at the end': [ask, assistant(text('It is a gate. '))],
  'answers in a row': [ask, assistant(text('One.')), assistant(text('Two.')), user('Three?')],
  'questions in a row': [ask, user('Do look.'), user('Now.')],
  'thoughts of another vendor': [ask, assistant(thought('nobody'), call('a')), tool(result('a')), ...end],
  'thoughts that nobody signed': [ask, assistant(thought(), call('a')), tool(result('a')), ...end],
  'thoughts and nothing else': [ask, assistant(thought('anthropic')), user('Well?')],
  'a signature of another vendor on a call': [
    ask,
    assistant(call('a', { providerOptions: { nobody: { thoughtSignature: 'x' } } })),
    tool(result('a')),
    ...end,
  ],
  'nothing at all': [],
  'a message without parts': [ask, { role: 'assistant', content: [] }, user('Well?')],
};

const vendors: Record<string, { definition: ProviderDefinition; start: () => Promise<FakeVendor>; id: string }> = {
  openai: { definition: openai, start: startOpenAi, id: 'gpt-5' },
  anthropic: { definition: anthropic, start: startAnthropic, id: 'claude-sonnet-4-5' },
  google: { definition: google, start: startGoogle, id: 'gemini-3.1-pro-preview' },
  deepseek: { definition: deepseek, start: startDeepSeek, id: 'deepseek-v4-pro' },
};
const look = { type: 'function' as const, name: 'look', inputSchema: { type: 'object' as const, properties: {} } };

describe.each(Object.entries(vendors))('a broken history, at %s', (_name, { definition, start, id }) => {
  const asked = async (
    use: (send: (prompt: LanguageModelV4Prompt) => Promise<void>, vendor: FakeVendor, signer: string) => Promise<void>,
  ) => {
    const vendor = await start();
    try {
      const connection = await definition.connect({ apiKey: 'test-key', baseUrl: vendor.url });
      const info = modelInfo({ provider: definition.id, id });
      const model = connection.languageModel(info);
      const providerOptions = connection.providerOptions({ model: info, maxOutputTokens: 1_000 });
      const send = async (prompt: LanguageModelV4Prompt) => {
        const { stream } = await model.doStream({ prompt, maxOutputTokens: 1_000, tools: [look], providerOptions });
        for await (const part of stream) expect(part.type).not.toBe('error');
      };
      await use(send, vendor, signerOf(model));
    } finally {
      await vendor.close();
    }
  };

  it('is taken once it was repaired, however it was broken', async () => {
    expect(Object.keys(broken).length).toBeGreaterThanOrEqual(30);
    await asked(async (send, vendor, signer) => {
      for (const [name, history] of Object.entries(broken)) {
        await send(repairHistory([system, ...history], signer)).catch(error => {
          throw new Error(`${name}: ${vendor.violations.at(-1) ?? error}`);
        });
      }
      expect(vendor.violations).toEqual([]);
      expect(vendor.requests).toHaveLength(Object.keys(broken).length);
    });
  });

  it('is refused in many cases as it was', async () => {
    await asked(async (send, vendor) => {
      for (const history of Object.values(broken)) await send([system, ...history]).catch(() => undefined);
      expect(vendor.violations.length).toBeGreaterThan(6);
    });
  });

  it('is left as it is when it is none', async () => {
    await asked(async (send, vendor, signer) => {
      const sound = [
        system,
        ask,
        assistant(thought(signer), text('I look.'), call('a'), call('b')),
        tool(result('a'), result('b')),
        assistant(call('c')),
        tool(result('c')),
        ...end,
      ];
      const kept = repairHistory(sound, signer);
      expect(kept).toEqual(sound);
      for (const [index, message] of kept.entries()) expect(message).toBe(sound[index]);
      await send(kept);
      expect(vendor.violations).toEqual([]);
    });
  });
});
