import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { type AgentTool, isAppError, z } from '../../../src/index.ts';
import { vendorEnv } from '../../support/product.ts';
import { libraryRig } from './library-rig.ts';

const rig = libraryRig();

describe('send', () => {
  it('sends layers, context, files and message in their order, and answers with what it took', async () => {
    const { send, tokenStats } = await rig.open();
    rig.vendor().script({ answer: 'Two.' });
    const result = await send({
      system: { base: 'BASE', projectMarker: 'AGENTS.md', custom: 'CUSTOM' },
      context: 'CONTEXT',
      message: 'What is two?',
      files: ['src/a.ts:2-2', 'none.ts'],
    });
    expect(result).toMatchObject({ text: 'Two.', stopReason: 'done', model: 'openai:gpt-5-mini', toolCalls: [] });
    expect(result.skipped).toMatchObject([{ path: 'none.ts', code: 'not_found' }]);
    expect(result.usage.input).toBeGreaterThan(10);
    const order = ['BASE', 'House rule 7.', 'CUSTOM', 'CONTEXT', '2│ export const two = 2;', 'What is two?'];
    const places = order.map(text => rig.asked().indexOf(text));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places).not.toContain(-1);
    expect(rig.asked()).not.toContain('export const one');
    expect(tokenStats()).toMatchObject({ answers: 1, byModel: { 'openai:gpt-5-mini': { usage: result.usage } } });
  });

  it('takes defaults, which a request overrides member by member', async () => {
    const { send, setDefaults, getDefaults } = await rig.open();
    setDefaults({ system: { custom: 'ALWAYS', useDefaultBase: false }, params: { maxTokens: 1_000 } });
    await send({ message: 'one' });
    expect(rig.asked()).not.toContain('senior engineer');
    expect(rig.asked()).toContain('ALWAYS');
    await send({ message: 'two', system: { custom: 'ONCE' } });
    expect(rig.asked()).toContain('ONCE');
    expect(rig.asked()).not.toContain('ALWAYS');
    expect(getDefaults()).toEqual({
      system: { custom: 'ALWAYS', useDefaultBase: false },
      params: { maxTokens: 1_000 },
    });
    expect(rig.vendor().requests.at(-1)?.body).toMatchObject({ max_output_tokens: 1_000 });
    setDefaults({ model: 'gpt-5-nano' });
    await send({ message: 'three', model: undefined });
    expect(rig.vendor().requests.at(-1)?.body).toMatchObject({ model: 'gpt-5-nano' });
  });

  it('keeps defaults that a request leaves undefined, and is changed by nothing that a program does to them', async () => {
    const { send, setDefaults, getDefaults } = await rig.open();
    const given = { system: { custom: 'ALWAYS' }, params: { maxTokens: 1_000 } };
    setDefaults(given);
    given.params.maxTokens = 5;
    getDefaults().params!.maxTokens = 6;
    await send({ message: 'x', system: { custom: undefined }, params: { maxTokens: undefined } });
    expect(rig.asked()).toContain('ALWAYS');
    expect(rig.vendor().requests.at(-1)?.body).toMatchObject({ max_output_tokens: 1_000 });
  });

  it('passes text on as it arrives, and nothing with stream: false', async () => {
    const { send } = await rig.open();
    const chunks: string[] = [];
    rig.vendor().script({ answer: 'one two three four five', chunks: 5 }, { answer: 'quiet' });
    await send({ message: 'a', onChunk: text => void chunks.push(text) });
    expect(chunks.length).toBeGreaterThan(1);
    expect(chunks.join('')).toBe('one two three four five');
    await send({ message: 'b', stream: false, onChunk: text => void chunks.push(text) });
    expect(chunks.join('')).not.toContain('quiet');
  });

  it('goes on when a listener of the request fails, and rejects with its own error', async () => {
    const { send } = await rig.open();
    const fails = () => {
      throw new Error('of the listener');
    };
    rig.vendor().script({ answer: 'one two three', chunks: 3 });
    expect(await send({ message: 'a', onChunk: fails })).toMatchObject({ text: 'one two three', stopReason: 'done' });
    await expect(send({ message: ' ', onError: fails })).rejects.toMatchObject({ kind: 'input' });
  });

  it('masks secrets in all that it sends', async () => {
    const token = `ghp_${'aB3dE5fG7hJ9'.repeat(3)}`;
    await rig.project().write('.npmrc.txt', `token=${token}\n`);
    const { send } = await rig.open();
    await send({
      message: `m ${token}`,
      context: `c ${token}`,
      files: ['.npmrc.txt'],
      system: { custom: `s ${token}` },
    });
    expect(JSON.stringify(rig.vendor().requests)).not.toContain(token);
  });

  it('rejects with an error that says what to do, and tells who listens', async () => {
    const polylogue = await rig.open();
    const told: unknown[] = [];
    polylogue.on('error', ({ error }) => told.push(error));
    const failed = await polylogue.send({ message: ' ', onError: error => told.push(error) }).catch(error => error);
    expect(isAppError(failed) && failed.details).toMatchObject({ code: 'MISSING_PARAMETER' });
    expect(told).toEqual([failed, failed]);
    const wrong = polylogue.createConversation().send({ message: 5 } as never);
    const refused = await wrong.catch(error => error);
    expect(refused.message).toContain('conversation.send got invalid arguments: message');
    expect(told.at(-1)).toBe(refused);
    await expect(polylogue.send({ message: 'x', baseDir: '/etc' })).rejects.toMatchObject({ kind: 'security' });
    await expect(polylogue.send({ message: 'x', model: 'nobody-has-this' })).rejects.toMatchObject({
      details: { code: 'MODEL_NOT_FOUND' },
    });
  });

  it('ends with its signal', async () => {
    const { send } = await rig.open();
    rig.vendor().script({ fault: 'hang_before_headers' });
    const stop = new AbortController();
    const sent = send({ message: 'x', signal: stop.signal });
    setTimeout(() => stop.abort(), 100);
    await expect(sent).rejects.toMatchObject({ kind: 'cancelled' });
    await expect.poll(() => rig.vendor().openSockets()).toBe(0);
  });

  it('ends with its signal while a search of the program never answers', async () => {
    const { send } = await rig.open();
    const stop = new AbortController();
    const retrieve = () => {
      stop.abort(new Error('mine'));
      return new Promise<never>(() => {});
    };
    const sent = send({ message: 'x', signal: stop.signal, rag: { retrieve } });
    await expect(sent).rejects.toMatchObject({ kind: 'cancelled', details: { code: 'CANCELLED' } });
  });

  it('leaves out a cost that nobody knows', async () => {
    const url = rig.vendor().url;
    const custom = { CUSTOM_API_URL: url, CUSTOM_API_KEY: vendorEnv({ openai: url }).OPENAI_API_KEY };
    const { send } = await rig.open({ settings: { ...custom, CUSTOM_MODEL_NAME: 'mine' } });
    expect(await send({ message: 'x', model: 'custom:mine' })).not.toHaveProperty('costUsd');
  });
});

/** A server of one's own, of whose models only the names are known. */
const custom = (url = rig.vendor().url) => ({
  CUSTOM_API_URL: url,
  CUSTOM_MODEL_NAME: 'local-llm',
  CUSTOM_API_KEY: vendorEnv({ openai: url }).OPENAI_API_KEY,
});

describe('send with tools', () => {
  const call = (name: string, args: Record<string, unknown>) => ({ calls: [{ name, args }] });
  const weather: AgentTool = {
    name: 'weather',
    description: 'The weather of a city.',
    inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    effect: 'network',
    run: async ({ city }) => `rain in ${String(city)}`,
  };

  it('lets the model call a tool of the program, and tells of each step', async () => {
    const polylogue = await rig.open();
    const events: string[] = [];
    for (const name of ['request', 'response', 'tool_call', 'tool_result'] as const) {
      polylogue.on(name, event => events.push(`${event.type} ${event.round}`));
    }
    rig.vendor().script(call('weather', { city: 'Bern' }), { answer: 'It rains.' });
    const result = await polylogue.send({ message: 'Bern?', tools: [weather] });
    expect(result).toMatchObject({
      text: 'It rains.',
      toolCalls: [{ name: 'weather', outcome: 'ok', result: 'rain in Bern' }],
    });
    expect(events).toEqual(['request 1', 'response 1', 'tool_call 1', 'tool_result 1', 'request 2', 'response 2']);
  });

  it('keeps what the tools did when the model ends without a word, and goes on from there', async () => {
    const { createConversation } = await rig.open();
    const conversation = createConversation({ tools: [weather] });
    rig.vendor().script(call('weather', { city: 'Bern' }), { answer: '' }, { answer: 'Rain.' });
    expect(await conversation.send('Bern?')).toMatchObject({
      ...{ text: '(The model gave no closing answer.)', stopReason: 'done' },
      toolCalls: [{ result: 'rain in Bern' }],
    });
    expect(rig.vendor().requests).toHaveLength(2);
    expect(await conversation.send('So?')).toMatchObject({ text: 'Rain.' });
    expect(rig.asked()).toContain('no closing answer');
  });

  it('counts what a request used that fails later', async () => {
    const { send, tokenStats } = await rig.open();
    rig.vendor().script(call('weather', { city: 'Bern' }), { fault: 'status', status: 400 });
    await expect(send({ message: 'Bern?', tools: [weather] })).rejects.toThrow();
    expect(tokenStats()).toMatchObject({ answers: 1, byModel: { 'openai:gpt-5-mini': { answers: 1 } } });
    expect(tokenStats().usage.input).toBeGreaterThan(0);
    expect(tokenStats().costUsd).toBeGreaterThan(0);
  });

  it('runs what was checked, whatever those who look at a call do to it', async () => {
    const { send, on } = await rig.open();
    on('tool_call', event => Object.assign(event.args as object, { city: 5 }));
    rig.vendor().script(call('weather', { city: 'Bern' }), { answer: 'It rains.' });
    const { toolCalls } = await send({
      message: 'Bern?',
      tools: [weather],
      onToolCall(pending) {
        pending.args.city = { name: 'Rome' };
        return { action: 'allow' };
      },
    });
    expect(toolCalls).toMatchObject([{ args: { city: 'Bern' }, result: 'rain in Bern' }]);
  });

  it('asks onToolCall first', async () => {
    const { send } = await rig.open();
    rig.vendor().script(call('weather', { city: 'Bern' }), { answer: 'Well.' });
    const onToolCall = () => ({ action: 'deny', reason: 'no weather today' }) as const;
    const { toolCalls } = await send({ message: 'Bern?', tools: [weather], onToolCall });
    expect(toolCalls).toMatchObject([{ outcome: 'refused' }]);
    expect(JSON.stringify(rig.vendor().requests.at(-1)?.body)).toContain('no weather today');
  });

  it.each<[string, unknown, string]>([
    ['finds a problem', async () => ({ problem: 'No such city.' }), 'No such city. Correct'],
    ['rejects', async () => Promise.reject(new Error('no map')), 'no map'],
    ['answers nothing', () => undefined, 'check returned something else than it may'],
    ['answers that it is so', () => true, 'check returned something else than it may'],
  ])('runs no call whose check %s', async (_what, check, told) => {
    const { send } = await rig.open();
    const errors: Error[] = [];
    rig.vendor().script(call('weather', { city: 'Bern' }), { answer: 'Well.' });
    const tools = [{ ...weather, check, run: () => expect.unreachable() } as AgentTool];
    const { toolCalls } = await send({ message: 'Bern?', tools, onError: error => void errors.push(error) });
    expect(toolCalls).toMatchObject([{ outcome: 'invalid', result: expect.stringContaining(told) }]);
    expect(errors.map(error => told.includes(error.message) || error.message.includes(told))).toEqual(
      told.startsWith('No such') ? [] : [true],
    );
  });

  it.each<[string, Partial<AgentTool['inputSchema']>, Record<string, unknown>, string | undefined]>([
    ['a wrong type', {}, { city: 5 }, '#/city: Instance type "number" is invalid. Expected "string"'],
    ['one that is missing', {}, {}, 'required property "city"'],
    [
      'what a condition asks for',
      { if: { properties: { city: { const: 'Bern' } } }, else: { required: ['country'] } },
      { city: 'Rome' },
      'required property "country"',
    ],
    [
      'a condition that is kept',
      { if: { required: ['city'] }, else: { required: ['y'] } },
      { city: 'Bern' },
      undefined,
    ],
    [
      'alternatives of which one fits',
      { oneOf: [{ required: ['city'] }, { required: ['at'] }] },
      { city: 'Bern' },
      undefined,
    ],
    [
      'a part that refers to another',
      { $defs: { c: { minLength: 3 } }, allOf: [{ properties: { city: { $ref: '#/$defs/c' } } }] },
      { city: 'B' },
      'too short',
    ],
    ['a schema that refers to nothing', { allOf: [{ $ref: '#/$defs/none' }] }, { city: 'Bern' }, undefined],
  ])('checks arguments by the schema: %s', async (_what, more, args, problem) => {
    const { send } = await rig.open();
    rig.vendor().script(call('weather', args), { answer: 'Well.' });
    const tools = [{ ...weather, inputSchema: { ...weather.inputSchema, ...more } }];
    const { toolCalls } = await send({ message: 'Bern?', tools });
    const expected =
      problem === undefined ? { outcome: 'ok' } : { outcome: 'invalid', result: expect.stringContaining(problem) };
    expect(toolCalls).toMatchObject([expected]);
  });

  it('takes a schema as zod makes it, a result at once, and no iterator for a result', async () => {
    const described = {
      description: 'd',
      effect: 'read',
      inputSchema: z.toJSONSchema(z.object({ n: z.int() })),
    } as const;
    const quick: AgentTool = { ...described, name: 'quick', run: ({ n }) => `It is ${String(n)}.` };
    const pieces = { ...quick, name: 'pieces' };
    // A program without types may do this, as with other libraries.
    Object.assign(pieces, {
      async *run() {
        yield 'a';
      },
    });
    const { send } = await rig.open();
    const made = ['quick', 'quick', 'pieces'].map((name, at) => ({ name, args: { n: at === 1 ? 'two' : at } }));
    rig.vendor().script({ calls: made }, { answer: 'Done.' });
    const { toolCalls } = await send({ message: 'Go.', tools: [quick, pieces] });
    expect(toolCalls).toMatchObject([
      { outcome: 'ok', result: 'It is 0.' },
      { outcome: 'invalid', result: expect.stringContaining('integer') },
      { outcome: 'failed', result: expect.stringContaining('has to return a text') },
    ]);
  });

  it('tells what the models lack that may be asked', async () => {
    const { send } = await rig.open({ settings: { DEFAULT_MODEL: 'auto', OPENAI_API_KEY: undefined, ...custom() } });
    const asked = send({ message: 'Go.', tools: [weather] });
    await expect(asked).rejects.toThrow('No allowed model is known to call tools.');
  });

  it('takes a tool that is an instance of a class', async () => {
    class Counter {
      inputSchema = { type: 'object', properties: {} } as const;
      effect = 'read' as const;
      description = 'Counts.';
      #count = 0;
      get name() {
        return 'counter';
      }
      run() {
        return Promise.resolve(`call ${++this.#count}`);
      }
    }
    const { send } = await rig.open();
    rig.vendor().script(call('counter', {}), call('counter', {}), { answer: 'Two.' });
    const { toolCalls } = await send({ message: 'Count.', tools: [new Counter()] });
    expect(toolCalls.map(({ result }) => result)).toEqual(['call 1', 'call 2']);
  });

  it('has hands of its own: reading is free, writing needs the word of the program', async () => {
    const { send } = await rig.open();
    rig
      .vendor()
      .script(call('read_file', { path: 'src/a.ts' }), call('write_file', { path: 'b.txt', content: 'new' }), {
        answer: 'Done.',
      });
    const first = await send({ message: 'go', tools: ['all'] });
    expect(first.toolCalls.map(({ name, outcome }) => `${name} ${outcome}`)).toEqual([
      'read_file ok',
      'write_file refused',
    ]);
    const patched: string[] = [];
    rig.vendor().script(call('write_file', { path: 'b.txt', content: 'new' }), { answer: 'Done.' });
    await send({
      message: 'go',
      tools: ['read_file', 'write_file'],
      onToolCall: () => ({ action: 'allow' }),
      onPatch: ({ name }) => void patched.push(name),
    });
    expect(await readFile(rig.project().path('b.txt'), 'utf8')).toBe('new');
    expect(patched).toEqual(['write_file']);
    await expect(send({ message: 'go', tools: ['fly'] })).rejects.toMatchObject({ kind: 'input' });
  });
});
