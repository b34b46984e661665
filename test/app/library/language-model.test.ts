import { readFile } from 'node:fs/promises';
import { generateText, type ModelMessage, Output, stepCountIs, streamText, tool } from 'ai';
import { describe, expect, it } from 'vitest';
import { type LanguageModelOptions, type Polylogue, z } from '../../../src/index.ts';
import { vendorEnv } from '../../support/product.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { libraryRig } from './library-rig.ts';

const rig = libraryRig();

type Metadata = Record<string, Record<string, unknown>> | undefined;

function idIn(metadata: Metadata): string {
  return String(metadata?.polylogue?.continuation_id);
}

/** What of a thread is stored, as `role: text`. */
async function storedIn({ callTool }: Polylogue, id: string): Promise<string[]> {
  const { transcript } = z
    .object({ transcript: z.array(z.object({ role: z.string(), content: z.string() })) })
    .parse(await callTool('threads', { action: 'read', continuation_id: id }));
  return transcript.map(({ role, content }) => `${role}: ${content}`);
}

/** How often a text stands in the last request. */
const times = (text: string) => rig.asked().split(text).length - 1;

const user = (content: string): ModelMessage => ({ role: 'user', content });
const assistant = (content: string): ModelMessage => ({ role: 'assistant', content });

async function ask(
  { languageModel }: Polylogue,
  options: LanguageModelOptions | undefined,
  messages: ModelMessage[],
): Promise<string> {
  const { providerMetadata } = await generateText({
    model: languageModel('gpt-5-mini', options),
    messages,
    maxRetries: 0,
  });
  return idIn(providerMetadata);
}

describe('a thread of a program of the AI SDK', () => {
  it('remembers what a program does not send itself, across models, tools and processes', async () => {
    const polylogue = await rig.open();
    rig.vendor().script({ answer: 'Hello Ann.' }, { answer: 'Ann.' }, { answer: 'Twelve.' }, { answer: 'All three.' });
    const model = polylogue.languageModel('gpt-5-mini', { thread: true });
    const first = await generateText({ model, system: 'Be brief.', prompt: 'I am Ann.' });
    const id = idIn(first.providerMetadata);
    const { textStream, providerMetadata } = streamText({ model, prompt: 'Who am I?' });
    let streamed = '';
    for await (const delta of textStream) streamed += delta;
    expect([streamed, idIn(await providerMetadata)]).toEqual(['Ann.', id]);
    expect(rig.asked()).toMatch(/I am Ann\.[\s\S]*Hello Ann\.[\s\S]*Who am I\?/);
    await polylogue.callTool('chat', { prompt: 'How many months?', continuation_id: id, model: 'gpt-5-mini' });
    expect(rig.asked()).toMatch(/Who am I\?[\s\S]*Ann\.[\s\S]*How many months\?/);
    await polylogue.cleanup();
    const later = await rig.open();
    expect(await ask(later, { thread: 'last' }, [user('What was said?')])).toBe(id);
    expect(rig.asked()).toMatch(
      /I am Ann\.[\s\S]*Who am I\?[\s\S]*How many months\?[\s\S]*Twelve\.[\s\S]*What was said\?/,
    );
    expect(await storedIn(later, id)).toEqual([
      ...['user: I am Ann.', 'assistant: Hello Ann.', 'user: Who am I?', 'assistant: Ann.'],
      ...['user: How many months?', 'assistant: Twelve.', 'user: What was said?', 'assistant: All three.'],
    ]);
  });

  it('sends nothing twice to a program that sends its whole history, or the end of it', async () => {
    const polylogue = await rig.open();
    rig.vendor().byDefault({ answer: 'Noted.' });
    const all: ModelMessage[] = [user('Zero.'), assistant('None.'), user('One.')];
    const id = await ask(polylogue, { thread: true }, all);
    expect(await storedIn(polylogue, id)).toEqual([
      ...['user: Zero.', 'assistant: None.', 'user: One.', 'assistant: Noted.'],
    ]);
    rig.vendor().script({ answer: 'From a tool.' });
    await polylogue.callTool('chat', { prompt: 'Between.', continuation_id: id, model: 'gpt-5-mini' });
    const more = [...all, assistant(' Noted.\n'), user('Two.')];
    await ask(polylogue, { thread: id }, more);
    expect(['Zero.', 'None.', 'One.', 'Noted.', 'Between.', 'From a tool.', 'Two.'].map(times)).toEqual(
      Array(7).fill(1),
    );
    expect(rig.asked()).toMatch(/One\.[\s\S]*Noted\.[\s\S]*Between\.[\s\S]*From a tool\.[\s\S]*Two\./);
    // Asked again, and the end of the history alone.
    await ask(polylogue, { thread: id }, more);
    expect(times('Two.')).toBe(1);
    await ask(polylogue, { thread: id }, [user('Two.'), assistant('Noted.'), user('Three.')]);
    expect(['Zero.', 'None.', 'One.', 'Three.'].map(times)).toEqual([1, 1, 1, 1]);
    expect(rig.asked()).toMatch(/Zero\.[\s\S]*From a tool\.[\s\S]*Two\.[\s\S]*Three\./);
  });

  it('keeps the steps of a program with tools, as text that any model reads later', async () => {
    const polylogue = await rig.open();
    rig.vendor().script({ calls: [{ name: 'weather', args: { city: 'Bern' } }] }, { answer: 'It rains.' });
    const inputSchema = z.object({ city: z.string() });
    const weather = tool({ description: 'Weather.', inputSchema, execute: async ({ city }) => `rain in ${city}` });
    const { text, providerMetadata } = await generateText({
      model: polylogue.languageModel('gpt-5-mini', { thread: true }),
      ...{ prompt: 'Bern?', tools: { weather }, stopWhen: stepCountIs(3) },
    });
    expect(text).toBe('It rains.');
    expect(times('rain in Bern')).toBe(1);
    expect(await storedIn(polylogue, idIn(providerMetadata))).toEqual([
      ...['user: Bern?', 'assistant: [calls weather {"city":"Bern"}]'],
      ...['user: [weather answered] rain in Bern', 'assistant: It rains.'],
    ]);
  });

  it('stores the question before a vendor is paid, masked; a question that failed enters no prompt', async () => {
    const polylogue = await rig.open();
    const model = polylogue.languageModel('gpt-5-mini', { thread: true });
    const secret = `sk-proj-${'a1B2'.repeat(12)}`;
    rig.vendor().script({ fault: 'status', status: 400 }, { answer: 'Yes.' });
    await expect(generateText({ model, prompt: `Lost ${secret}`, maxRetries: 0 })).rejects.toThrow();
    // Questions of one model run one after the other.
    const [{ providerMetadata }] = await Promise.all([
      generateText({ model, prompt: `Is it ${secret}?` }),
      generateText({ model, prompt: 'And now?' }),
    ]);
    const stored = await storedIn(polylogue, idIn(providerMetadata));
    expect(stored).toEqual([
      ...[expect.stringContaining('user: Lost'), expect.stringContaining('user: Is it'), 'assistant: Yes.'],
      ...['user: And now?', expect.stringContaining('assistant: ')],
    ]);
    expect(JSON.stringify(stored)).not.toContain(secret);
    expect(rig.asked()).toMatch(/Is it[\s\S]*Yes\.[\s\S]*And now\?/);
    expect(rig.asked()).not.toMatch(/Lost|a1B2/);
  });

  it('asks the next vendor when the first fails, with the same memory', async () => {
    const other = await startAnthropic();
    try {
      const polylogue = await rig.open({ settings: { ...vendorEnv({ anthropic: other.url }), DEFAULT_MODEL: 'auto' } });
      const model = polylogue.languageModel('auto', { thread: true });
      const vendors = { openai: rig.vendor(), anthropic: other };
      const prompts = async (prompt: string) => {
        const { providerMetadata } = await generateText({ model, prompt, maxRetries: 0 });
        return String(providerMetadata?.polylogue?.model).split(':')[0] as keyof typeof vendors;
      };
      const first = await prompts('I am Ann.');
      const second = first === 'openai' ? 'anthropic' : 'openai';
      vendors[first].script({ fault: 'status', status: 401 });
      vendors[second].script({ answer: 'Ann.' });
      expect(await prompts('Who am I?')).toBe(second);
      expect(
        vendors[second].requests
          .at(-1)
          ?.messages.map(({ text }) => text)
          .join('\n'),
      ).toMatch(/I am Ann[\s\S]*Who am I/);
    } finally {
      await other.close();
    }
  });

  it('goes on when the thread is longer than the window, and takes a thread with each question', async () => {
    const polylogue = await rig.open();
    rig.vendor().byDefault({ answer: 'ago '.repeat(100) });
    const history = Array.from({ length: 120 }, (_, at) =>
      at % 2 ? assistant('Noted.') : user(`${at} ${'ago '.repeat(8_000)}`),
    );
    const id = await ask(polylogue, { thread: true }, [...history, user('One.')]);
    const { providerMetadata } = await generateText({
      model: polylogue.languageModel('gpt-5-mini'),
      prompt: 'Two.',
      providerOptions: { polylogue: { continuation_id: id } },
    });
    expect(idIn(providerMetadata)).toBe(id);
    expect(rig.asked()).toMatch(/118 ago [\s\S]*One\.[\s\S]*Two\./);
    expect(rig.asked()).not.toMatch(/\b0 ago/);
    expect(await ask(polylogue, undefined, [user('Three.')])).toBe('undefined');
    expect(rig.asked()).not.toContain('Two.');
  });

  it.each([
    [{ thread: 'nonsense' }, /Invalid continuation_id/],
    [{ thread: 'last' }, /project has no threads yet/],
  ])('refuses %j', async (options, why) => {
    const polylogue = await rig.open();
    await expect(ask(polylogue, options, [user('Who?')])).rejects.toThrow(why);
    expect(rig.vendor().requests.filter(({ dialect }) => dialect !== 'models')).toEqual([]);
  });

  it('refuses options that there are not', async () => {
    const { languageModel } = await rig.open();
    expect(() => languageModel('auto', JSON.parse('{"tread": true}'))).toThrow(/did you mean "thread"/);
    expect(() => languageModel('auto', JSON.parse('{"thread": false}'))).toThrow(/thread/);
  });
});

describe('what a program of the AI SDK wants beside the words', () => {
  it('reaches the vendor: an answer as JSON of a schema, and what that vendor does not take is told', async () => {
    const { languageModel } = await rig.open();
    rig.vendor().script({ answer: '{"city":"Bern"}' }, { answer: 'Bern.' });
    const output = Output.object({ schema: z.object({ city: z.string() }) });
    const answer = await generateText({ model: languageModel('gpt-5-mini'), prompt: 'Which capital?', output });
    expect(answer.output).toEqual({ city: 'Bern' });
    const { text } = z.object({ text: z.looseObject({}) }).parse(rig.vendor().requests.at(-1)?.body);
    expect(text).toMatchObject({
      format: { type: 'json_schema', schema: { properties: { city: { type: 'string' } } } },
    });
    expect(answer.warnings ?? []).toEqual([]);
    const own = { stopSequences: ['.'], seed: 7, maxRetries: 0 };
    const { warnings = [] } = await generateText({ model: languageModel('gpt-5-mini'), prompt: 'Which?', ...own });
    expect(JSON.stringify(warnings)).toMatch(/stopSequences[\s\S]*seed|seed[\s\S]*stopSequences/);
    const offline = await rig.open({ settings: { POLYLOGUE_OFFLINE: 'true' } });
    const told = await generateText({ model: offline.languageModel('offline-east:echo-east'), prompt: '?', ...own });
    expect(JSON.stringify(told.warnings)).toMatch(/stopSequences[\s\S]*seed/);
  });

  it('is a call that logs show, as others are', async () => {
    const home = rig.project().path('.own-home');
    const { languageModel, cleanup } = await rig.open({ home });
    rig.vendor().byDefault({ answer: 'Bern.' });
    await generateText({ model: languageModel('gpt-5-mini'), prompt: 'Which capital?', maxRetries: 0 });
    await cleanup();
    const log = await readFile(`${home}/logs/activity.jsonl`, 'utf8');
    const lines = log.split('\n').filter(line => line.includes('"language_model"'));
    expect(lines.map(line => JSON.parse(line)).map(({ act, status }) => [act, status])).toEqual([
      ['begin', undefined],
      ['end', 'success'],
    ]);
  });
});
