import { readFile } from 'node:fs/promises';
import { generateText, type ModelMessage, Output, stepCountIs, streamText, tool } from 'ai';
import { describe, expect, it } from 'vitest';
import { type LanguageModelOptions, type Polylogue, z } from '../../../src/index.ts';
import { vendorEnv } from '../../support/product.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { waitUntil } from '../../support/wait-until.ts';
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

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);

const file = (mediaType: string, data: string | Buffer) => ({
  type: 'file' as const,
  mediaType,
  data: Buffer.from(data),
});

/** A picture of a tool. */
const shot: ModelMessage[] = [
  user('Look.'),
  { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'a', toolName: 'shot', input: {} }] },
  {
    role: 'tool',
    content: [
      {
        ...{ type: 'tool-result', toolCallId: 'a', toolName: 'shot' },
        output: {
          type: 'content',
          value: [
            { type: 'text', text: 'The page.' },
            { type: 'file', mediaType: 'image/png', data: { type: 'data', data: png.toString('base64') } },
          ],
        },
      },
    ],
  },
];

const handle = () => {
  const controller = new AbortController();
  return { signal: controller.signal, abort: (reason?: unknown) => controller.abort(reason) };
};

type Question = Omit<Parameters<typeof generateText>[0], 'model' | 'prompt'>;

describe('what is left out of a question', () => {
  const tools = { shot: tool({ inputSchema: z.object({}), strict: true, inputExamples: [{ input: {} }] }) };

  it.each<[string[], Partial<Question>]>([
    [['seed is not supported'], { seed: 7 }],
    [['topK', 'presencePenalty', 'frequencyPenalty'], { topK: 3, presencePenalty: 0.5, frequencyPenalty: 0.5 }],
    [['headers', 'reasoning'], { headers: { 'X-Mine': '1' }, reasoning: 'high' }],
    [['providerOptions.openai'], { providerOptions: { openai: { user: 'me' } } }],
    [['file application/pdf'], { messages: [{ role: 'user', content: [file('application/pdf', '%PDF-1.7')] }] }],
    [[], { messages: [{ role: 'user', content: [file('text/csv', 'a;b'), { type: 'image', image: png }] }] }],
    [
      [],
      {
        messages: [{ role: 'user', content: [file('application/json', '{}'), file('application/vnd.x+xml', '<a/>')] }],
      },
    ],
    [
      ['reasoning of another'],
      { messages: [user('Go.'), { role: 'assistant', content: [{ type: 'reasoning', text: 'Hm.' }] }] },
    ],
    [['file image/png', 'strict', 'examples'], { messages: shot, tools, toolChoice: 'required' }],
  ])('is told, of an answer and of a stream: %j', async (told, given) => {
    const { languageModel } = await rig.open();
    rig.vendor().byDefault({ answer: 'Noted.', calls: given.tools ? [{ name: 'shot', args: {} }] : [] });
    const question = { model: languageModel('gpt-5-mini'), messages: [user('Go.')], maxRetries: 0, ...given };
    const generated = await generateText(question);
    expect(rig.asked()).not.toContain(png.toString('base64').slice(0, 40));
    if (given.tools) expect(rig.asked()).toMatch(/The page\.[\s\S]*A file \(image\/png\) was left out/);
    const streamed = streamText(question);
    await streamed.text;
    for (const warnings of [
      (generated.warnings ?? []).map(each => JSON.stringify(each)),
      ((await streamed.warnings) ?? []).map(each => JSON.stringify(each)),
      generated.providerMetadata?.polylogue?.warnings,
      (await streamed.providerMetadata)?.polylogue?.warnings,
    ]) {
      expect(warnings).toHaveLength(told.length);
      for (const one of told) expect(warnings).toContainEqual(expect.stringContaining(one));
    }
  });

  it('is no call that the program wants to have made', async () => {
    const { languageModel } = await rig.open();
    rig.vendor().byDefault({ calls: [{ name: 'shot', args: {} }] });
    const question = { model: languageModel('gpt-5-mini'), prompt: 'Go.', tools, maxRetries: 0 };
    for (const [toolChoice, sent] of [
      ['required', 'required'],
      [
        { type: 'tool', toolName: 'shot' },
        { type: 'function', name: 'shot' },
      ],
      ['auto', undefined],
    ] as const) {
      await generateText({ ...question, toolChoice });
      expect(Object(rig.vendor().requests.at(-1)?.body).tool_choice).toEqual(sent);
    }
    const offline = { ...question, model: languageModel('echo-east'), toolChoice: 'required' } as const;
    await expect(generateText(offline)).rejects.toThrow();
  });

  it('is told at the end of a stream where it was not known before', async () => {
    const { languageModel } = await rig.open();
    rig.vendor().byDefault({ fault: 'cut_mid_stream', answer: 'Half of an answer that breaks off. '.repeat(8) });
    const { text, providerMetadata } = streamText({ model: languageModel('gpt-5-mini'), prompt: 'Go.', maxRetries: 0 });
    expect(await text).toContain('Half of an answer');
    expect(JSON.stringify((await providerMetadata)?.polylogue?.warnings)).toContain('The answer broke off');
  });

  it.each([
    [{ continuationId: 'x' }, /continuationId: unknown option \(did you mean "continuation_id"/],
    [{ continuation_id: 7 }, /continuation_id: .*expected string/],
    [{ continuation_id: null }, /continuation_id: .*expected string/],
  ])('is nothing of providerOptions.polylogue: %j is refused', async (polylogue, why) => {
    const { languageModel } = await rig.open();
    const asked = generateText({
      ...{ model: languageModel('gpt-5-mini'), prompt: 'Who?', maxRetries: 0 },
      providerOptions: { polylogue },
    });
    await expect(asked).rejects.toThrow(why);
    expect(rig.vendor().requests).toEqual([]);
  });
});

describe('an end before the answer', () => {
  it('is told as the program knows it, and ends the request of the vendor', async () => {
    const { languageModel } = await rig.open();
    rig.vendor().byDefault({ answer: 'slow '.repeat(50), chunkDelayMs: 200, chunks: 40 });
    const last = () => rig.vendor().requests.at(-1);
    for (const thread of [undefined, true] as const) {
      const model = languageModel('gpt-5-mini', thread && { thread });
      for (const reason of [undefined, new Error('Enough.')]) {
        const { signal, abort } = handle();
        const before = rig.vendor().requests.length;
        const answer = generateText({ model, prompt: 'Go.', abortSignal: signal, maxRetries: 0 });
        const failed = expect(answer).rejects.toMatchObject(reason ?? { name: 'AbortError' });
        await waitUntil('it was asked', () => rig.vendor().requests.length > before);
        abort(reason);
        await failed;
        await last()?.aborted;
      }
      if (typeof model === 'string' || model.specificationVersion !== 'v4')
        throw new Error('It is of another version.');
      const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Go.' }] }];
      await expect(model.doStream({ prompt, abortSignal: AbortSignal.abort() })).rejects.toThrow(/aborted/);
      const { signal, abort } = handle();
      const aborted = (await model.doStream({ prompt, abortSignal: signal })).stream.getReader();
      expect((await aborted.read()).value?.type).toBe('stream-start');
      abort();
      const rest = (async () => {
        while (!(await aborted.read()).done);
      })();
      await expect(rest).rejects.toMatchObject({ name: 'AbortError' });
      await last()?.aborted;
      const reader = (await model.doStream({ prompt })).stream.getReader();
      expect((await reader.read()).value?.type).toBe('stream-start');
      await reader.cancel();
      await last()?.aborted;
      expect(last()?.wasAborted()).toBe(true);
    }
  });

  it.each([undefined, true] as const)('by cleanup() says so (thread: %s)', async thread => {
    const { languageModel, cleanup } = await rig.open();
    const model = languageModel('gpt-5-mini', thread && { thread });
    rig.vendor().byDefault({ answer: 'slow '.repeat(50), chunkDelayMs: 200, chunks: 40 });
    const under = expect(generateText({ model, prompt: 'Go.', maxRetries: 0 })).rejects.toThrow(/closed by cleanup/);
    await waitUntil('it was asked', () => rig.vendor().requests.length > 0);
    await cleanup();
    await under;
    const after = generateText({ model, prompt: 'Go.', maxRetries: 0 });
    await expect(after).rejects.toThrow('This Polylogue was closed by cleanup()');
  });
});
