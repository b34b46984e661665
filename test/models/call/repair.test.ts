import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import { repairHistory, signerOf } from '../../../src/models/call/repair-history.ts';
import type { ProviderDefinition } from '../../../src/models/provider.ts';
import { anthropic } from '../../../src/providers/anthropic.ts';
import { custom } from '../../../src/providers/custom.ts';
import { google } from '../../../src/providers/google/google.ts';
import { openai } from '../../../src/providers/openai.ts';
import { seededRandom } from '../../support/random.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { modelInfo } from '../scripted-model.ts';

const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const signers = ['anthropic', 'google', 'openai', 'custom'];
type Part = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number];

const text = (said: string) => ({ type: 'text' as const, text: said });
const call = (id: string, signer?: string) => ({
  type: 'tool-call' as const,
  toolCallId: id,
  toolName: 'look',
  input: { at: id },
  ...(signer && { providerOptions: { [signer]: { thoughtSignature: `${signer}-1` } } }),
});
const result = (id: string) => ({
  type: 'tool-result' as const,
  toolCallId: id,
  toolName: 'look',
  output: { type: 'text' as const, value: `seen ${id}` },
});
const thought = (signer?: string) => ({
  type: 'reasoning' as const,
  text: 'Let me think.',
  ...(signer && { providerOptions: { [signer]: { signature: `${signer}-1` } } }),
});
const user = (...content: Extract<LanguageModelV4Message, { role: 'user' }>['content']): LanguageModelV4Message => ({
  role: 'user',
  content,
});
const assistant = (...content: Part[]): LanguageModelV4Message => ({ role: 'assistant', content });
const tool = (...ids: string[]): LanguageModelV4Message => ({ role: 'tool', content: ids.map(result) });

const look = { type: 'function' as const, name: 'look', inputSchema: { type: 'object' as const, properties: {} } };

/** A history as it may come out of a crash, a cut stream, a hand-over or a fork: anything after anything. */
function randomHistory(seed: number): LanguageModelV4Prompt {
  const random = seededRandom(seed);
  const pick = <Choice>(...choices: Choice[]) => choices[Math.floor(random.fraction() * choices.length)]!;
  const id = () => `call_${Math.floor(random.fraction() * 6)}`;
  const makers: (() => LanguageModelV4Message)[] = [
    () => user(text(pick('', ' \n', 'What is it?'))),
    () => user(text('Look.'), { type: 'file', mediaType: 'image/png', data: { type: 'data', data: pixel } }),
    () => assistant(text(pick('', '  ', 'It is a gate.'))),
    () => assistant(thought(pick(undefined, ...signers)), text('So it is.'), call(id(), pick(undefined, ...signers))),
    () => assistant(call(id()), call(id())),
    () => assistant(thought(pick(...signers))),
    () => tool(id()),
    () => tool(id(), id()),
    () => user(text('And now?')),
  ];
  const length = 1 + Math.floor(random.fraction() * 14);
  return [{ role: 'system', content: 'You help.' }, ...Array.from({ length }, () => pick(...makers)())];
}

const vendors: Record<string, { definition: ProviderDefinition; start: () => Promise<FakeVendor>; id: string }> = {
  anthropic: { definition: anthropic, start: startAnthropic, id: 'claude-sonnet-4-5' },
  google: { definition: google, start: startGoogle, id: 'gemini-2.5-flash' },
  openai: { definition: openai, start: startOpenAi, id: 'gpt-5' },
  custom: { definition: custom, start: startOpenAi, id: 'gpt-4o' },
};

describe.each(Object.entries(vendors))('a history in any state, for %s', (_name, { definition, start, id }) => {
  it('is taken once it was repaired, and many are not before', async () => {
    const vendor = await start();
    try {
      const settings = { apiKey: 'test-key', baseUrl: vendor.url, apiUrl: vendor.url, modelName: id };
      const connection = await definition.connect(settings);
      const model = connection.languageModel(modelInfo({ provider: definition.id, id, reasoning: false }));
      const ask = async (prompt: LanguageModelV4Prompt) => {
        const { stream } = await model.doStream({ prompt, maxOutputTokens: 100, tools: [look] });
        for await (const part of stream) expect(part.type).not.toBe('error');
      };
      for (let seed = 1; seed <= 60; seed++) await ask(repairHistory(randomHistory(seed), signerOf(model)));
      expect(vendor.violations).toEqual([]);
      expect(vendor.requests).toHaveLength(60);
      for (let seed = 1; seed <= 60; seed++) await ask(randomHistory(seed)).catch(() => undefined);
      expect(vendor.violations.length).toBeGreaterThan(10);
    } finally {
      await vendor.close();
    }
  });
});

describe('a repaired history', () => {
  it('is the same when it was sound, and repairing it again changes nothing', () => {
    const sound = [
      user(text('Look.')),
      assistant(thought('anthropic'), text('I look.'), call('a'), call('b')),
      tool('a', 'b'),
      assistant(text('It is a gate.')),
      user(text('Thanks.')),
    ];
    expect(repairHistory(sound, 'anthropic')).toEqual(sound);
    for (let seed = 1; seed <= 200; seed++) {
      const once = repairHistory(randomHistory(seed), 'google');
      expect(repairHistory(once, 'google')).toEqual(once);
    }
  });

  it('keeps every text and image that is not blank, in order', () => {
    const kept = (prompt: LanguageModelV4Prompt) =>
      prompt.flatMap(message =>
        message.role === 'system' || message.role === 'tool'
          ? []
          : message.content.flatMap(part =>
              part.type === 'text'
                ? part.text.trim() === ''
                  ? []
                  : [part.text]
                : part.type === 'file'
                  ? ['image']
                  : [],
            ),
      );
    for (let seed = 1; seed <= 200; seed++) {
      const history = randomHistory(seed);
      const added = ['(The conversation began before this.)', 'Go on.'];
      expect(kept(repairHistory(history, 'openai')).filter(said => !added.includes(said))).toEqual(kept(history));
    }
  });

  it('loses results without calls, and says of calls without a result that they have none', () => {
    const history = [
      user(text('Look.')),
      tool('nobody'),
      assistant(text('I look.'), thought('anthropic'), call('a')),
      user(text('Wait.')),
      tool('a'),
      assistant(call('b'), call('b'), call('c')),
      tool('b'),
      tool('b'),
    ];
    const missing = (id: string) => ({
      ...result(id),
      output: { type: 'error-text' as const, value: 'There is no result: the call was interrupted.' },
    });
    expect(repairHistory(history, 'anthropic')).toEqual([
      user(text('Look.')),
      assistant(text('I look.'), thought('anthropic'), call('a')),
      { role: 'tool', content: [missing('a')] },
      user(text('Wait.')),
      assistant(call('b'), call('c')),
      { role: 'tool', content: [result('b'), missing('c')] },
    ]);
  });

  it('has no reasoning and no signature of another vendor, nor unsigned reasoning', () => {
    const history = [
      user(text('Look.')),
      assistant(thought('google'), thought('anthropic'), thought(), text('I look.'), call('a', 'google')),
      tool('a'),
      user(text('So?')),
    ];
    const [, answer] = repairHistory(history, 'anthropic');
    expect(answer).toEqual(
      assistant(thought('anthropic'), text('I look.'), { ...call('a'), providerOptions: undefined }),
    );
    expect(repairHistory(history, 'google')[1]).toEqual(
      assistant(thought('google'), text('I look.'), call('a', 'google')),
    );
  });

  it('begins and ends with a question', () => {
    expect(repairHistory([assistant(text('So it is.'))], 'google').map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'user',
    ]);
  });

  it('of a longer history begins with that of the shorter one, but for its end', () => {
    for (let seed = 1; seed <= 100; seed++) {
      const shorter = [...randomHistory(seed), user(text('One question.'))];
      const longer = [...shorter, assistant(text('One answer.')), user(text('One more.'))];
      const [short, long] = [repairHistory(shorter, 'openai'), repairHistory(longer, 'openai')];
      expect(long.slice(0, short.length)).toEqual(short);
    }
  });
});
