import { spawnSync } from 'node:child_process';
import { readFile, symlink } from 'node:fs/promises';
import { resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startEveryVendor } from '../support/every-vendor.ts';
import { pdfFile } from '../support/office-files.ts';
import { type PackedPackage, packedPackage } from '../support/packed-package.ts';
import { vendorEnv } from '../support/product.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { startZhipu } from '../support/vendors/start-zhipu.ts';

let packed: PackedPackage;

beforeAll(async () => {
  packed = await packedPackage();
});
afterAll(() => packed.dispose());

const offline = { OFFLINE: 'on' };

describe('the packed library in a folder of its own', () => {
  it('is an MCP server that "npx -y polylogue" starts with nothing else', () => {
    const hello = {
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
    };
    const { stdout } = spawnSync('npx', ['-y', 'polylogue'], {
      cwd: packed.root,
      env: { PATH: process.env.PATH ?? '', HOME: packed.path('.user') },
      input: `${JSON.stringify({ jsonrpc: '2.0', id: 1, ...hello })}\n`,
      encoding: 'utf8',
    });
    expect(JSON.parse(stdout)).toMatchObject({ id: 1, result: { serverInfo: { name: 'polylogue' } } });
  });

  it.each(['package.json', undefined])('runs the snippet of the README without git, with %s', async file => {
    const readme = await readFile('README.md', 'utf8');
    const [, snippet = ''] = /^```ts\n(import[\s\S]*?)^```$/m.exec(readme) ?? [];
    const elsewhere = file === undefined ? "process.chdir('empty');\n" : '';
    await packed.write('empty/.keep', '');
    await packed.remove(file === undefined ? 'package.json' : 'none');
    await packed.write('readme.mjs', `${snippet.replace(/^import.*/, line => `${line}\n${elsewhere}`)}`);
    const { code, stdout, stderr } = await packed.run('readme.mjs', offline);
    expect(stderr).toBe('');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/\S/)]);
  });
});

describe('a conversation that grows', () => {
  let vendor: FakeVendor;
  afterEach(async () => {
    expect(vendor.violations).toEqual([]);
    await vendor.close();
  });

  it('goes on for 200 turns, far beyond the window of its model, and keeps its beginning for many of them', async () => {
    vendor = await startOpenAi({ models: [{ id: 'small', window: 16_000 }] });
    vendor.byDefault({ answer: 'Noted.' });
    const { turns, trims } = await packed.answer<{ turns: number; trims: number }>(
      `const polylogue = await createPolylogue();
      const conversation = polylogue.createConversation({ model: 'custom:small' });
      let trims = 0;
      polylogue.on('trim', () => void trims++);
      for (let turn = 1; turn <= 200; turn++) await conversation.send('Turn ' + turn + '. ' + 'ago '.repeat(150));
      console.log(JSON.stringify({ turns: conversation.turns.length, trims }));
      await polylogue.cleanup();`,
      { CUSTOM_API_URL: vendor.url, CUSTOM_API_KEY: 'test-key', CUSTOM_MODEL_NAME: 'small' },
    );
    expect(turns).toBe(400);
    expect(trims).toBeGreaterThan(100);
    const asked = vendor.requests.filter(({ dialect }) => dialect !== 'models');
    const first = asked.map(({ messages }) => messages.find(({ role }) => role === 'user')?.text);
    expect(first).toHaveLength(200);
    expect(new Set(first).size).toBeLessThan(60);
    expect(vendor.requests.at(-1)?.messages.at(-1)?.text).toContain('Turn 200.');
  });

  it.each(['claude-haiku-4-5', 'gpt-5-mini'])('is trimmed before %s would refuse it', async model => {
    vendor = await (model.startsWith('claude') ? startAnthropic() : startOpenAi());
    vendor.byDefault({ answer: 'Noted.' });
    const { turns } = await packed.answer<{ turns: number }>(
      `const polylogue = await createPolylogue();
      const said = (role, text) => ({ role, section: 'turn', parts: [{ type: 'text', text }] });
      const history = Array.from({ length: 120 }, (_, at) => said(at % 2 ? 'assistant' : 'user', at + ' ' + 'ago '.repeat(8_000)));
      const conversation = polylogue.createConversation({ model: '${model}', history });
      await conversation.send('One.');
      await conversation.send('Two.');
      console.log(JSON.stringify({ turns: conversation.turns.length }));
      await polylogue.cleanup();`,
      vendorEnv(model.startsWith('claude') ? { anthropic: vendor.url } : { openai: vendor.url }),
    );
    expect(turns).toBe(124);
    for (const { messages } of vendor.requests)
      expect(messages.find(({ role }) => role === 'user' || role === 'assistant')?.role).toBe('user');
  });
});

it('marks tools, system and context for the cache of Claude, which the next send with other words reuses', async () => {
  const vendor = await startAnthropic();
  vendor.byDefault({ answer: 'Noted.' });
  const usage = await packed.answer<{ cacheRead: number; cacheWrite: number }[]>(
    `const { send, cleanup } = await createPolylogue();
    const words = (what, count) => (what + ' ago ').repeat(count);
    const tool = (name) => ({ name, description: words(name, 3_000), inputSchema: { type: 'object', properties: {} }, effect: 'read', run: async () => 'done' });
    const base = { model: 'claude-sonnet-4-5', tools: [tool('one'), tool('two')] };
    const all = { ...base, system: { custom: words('system', 3_000) }, context: words('context', 3_000) };
    const usage = [];
    for (const request of [
      { ...all, message: 'First.' },
      { ...all, message: 'Second.' },
      { ...all, context: words('another', 3_000), message: 'Third.' },
      { ...all, system: { custom: words('another', 3_000) }, message: 'Fourth.' },
    ]) usage.push((await send(request)).usage);
    console.log(JSON.stringify(usage));
    await cleanup();`,
    vendorEnv({ anthropic: vendor.url }),
  );
  expect(vendor.violations).toEqual([]);
  await vendor.close();
  const [first, sameContext, sameSystem, sameTools] = usage.map(({ cacheRead }) => cacheRead);
  expect(first).toBe(0);
  expect(sameTools).toBeGreaterThan(10_000);
  expect(sameSystem).toBeGreaterThan((sameTools ?? 0) + 5_000);
  expect(sameContext).toBeGreaterThan((sameSystem ?? 0) + 5_000);
});

it('refuses unknown options and values out of range, as callTool does, and arguments of tools by their schema', async () => {
  const vendor = await startOpenAi();
  const weather = (city: unknown) => ({ calls: [{ name: 'weather', args: { city } }] });
  vendor.script(weather(7), { answer: 'Well.' }, weather('Bern'), { answer: 'Never.' });
  const told = await packed.answer<Record<string, (string | number)[]>>(
    `const polylogue = await createPolylogue();
    const { send, createConversation, setDefaults, summarizeFile, analyzeError, callTool, on, listModels, commsLog } = polylogue;
    const calls = {
      createPolylogue: () => createPolylogue({ setings: {} }),
      setting: () => createPolylogue({ settings: { DEFAULT_MODLE: 'x' } }),
      stream: async () => { for await (const event of polylogue.stream()) return event; },
      settings: () => createPolylogue({ settings: { MAX_TOKENS: 5 } }),
      nothing: () => send(),
      misspelt: () => send({ mesage: 'x' }),
      temperature: () => send({ message: 'x', params: { temperature: 3 } }),
      topP: () => send({ message: 'x', params: { topP: 0 } }),
      inner: () => send({ message: 'x', params: { temprature: 1 } }),
      files: () => send({ message: 'x', files: 'src/a.ts' }),
      tools: () => send({ message: 'x', tools: [{ name: 'a b' }] }),
      callback: () => send({ message: 'x', onChunk: 'loud' }),
      conversation: () => createConversation({ sytem: {} }),
      turn: () => createConversation().send({ message: 'x', modle: 'y' }),
      setDefaults: () => setDefaults({ params: { maxTokens: -1 } }),
      summarizeFile: () => summarizeFile('a.ts', { maxWords: 0 }),
      analyzeError: () => analyzeError({ stdErr: 'x' }),
      callTool: () => callTool('chat', 'hello'),
      on: () => on('tool-call', () => {}),
      listModels: () => listModels({ fresh: 'yes' }),
      commsLog: () => commsLog.read({ limit: 0 }),
    };
    const told = {};
    for (const [name, call] of Object.entries(calls)) {
      try {
        await call();
        told[name] = ['accepted'];
      } catch ({ kind, message, details }) {
        told[name] = [kind, message, details?.next ?? ''];
      }
    }
    const run = async () => 'sunny';
    const inputSchema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const { toolCalls } = await send({ message: 'Bern?', model: 'gpt-5-mini', tools: [{ name: 'weather', description: 'Weather.', inputSchema, effect: 'read', run }] });
    told.arguments = [toolCalls[0].outcome, toolCalls[0].result];
    let ran = 0;
    const gated = [{ name: 'weather', description: 'Weather.', inputSchema, effect: 'write', run: async () => String(++ran) }];
    const slip = () => ({ action: 'dney', reason: 'No.' });
    const refused = await send({ message: 'Bern?', model: 'gpt-5-mini', tools: gated, onToolCall: slip }).catch(error => error);
    told.gate = [refused.kind, refused.message, ran];
    console.log(JSON.stringify(told));
    await polylogue.cleanup();`,
    vendorEnv({ openai: vendor.url }),
  );
  await vendor.close();
  const { arguments: args, gate, ...refused } = told;
  expect(gate).toEqual(['input', expect.stringMatching(/^onToolCall returned something else/), 0]);
  for (const [name, [kind]] of Object.entries(refused)) expect([name, kind]).toEqual([name, 'input']);
  expect(told.misspelt?.[1]).toMatch(/mesage: unknown option \(did you mean "message"/);
  expect(told.inner?.[1]).toMatch(/params\.temprature: unknown option \(did you mean "temperature"/);
  expect(told.temperature?.[1]).toMatch(/params\.temperature: .*2/);
  expect(told.on?.[1]).toContain('tool_call');
  expect(args).toEqual(['invalid', expect.stringContaining('city: ')]);
});

it('takes a search of the program, answers questions of the model, counts tokens and keeps what it is told', async () => {
  const vendor = await startOpenAi();
  vendor.script(
    { calls: [{ name: 'ask_question', args: { question: 'Which city?', options: ['Bern', 'Basel'] } }] },
    { answer: 'Bern.' },
    { calls: [{ name: 'fails', args: {} }] },
    { answer: 'The disk may be full.' },
    { answer: 'Done.' },
    { fault: 'status', status: 400 },
    { fault: 'status', status: 400 },
  );
  const told = await packed.answer<Record<string, unknown>>(
    `import { estimateTokens } from 'polylogue';
    const polylogue = await createPolylogue();
    const { send, commsLog } = polylogue;
    const asked = [];
    const retrieve = (message, { signal }) => [message + ' found', { source: 'wiki', text: 'Bern is a city. sk-proj-' + 'a1B2'.repeat(12) }];
    const onQuestion = ({ question, options }) => { asked.push([question, options]); return options[0]; };
    const first = await send({ message: 'Where?', rag: { retrieve }, onQuestion });
    const fails = { name: 'fails', description: 'Fails.', inputSchema: { type: 'object' }, effect: 'read', run: async () => { throw new Error('no space left'); } };
    await send({ message: 'Try.', tools: [fails] });
    const { cause, message } = await send({ message: 'x' }).catch(error => error);
    const failed = await polylogue.callTool('chat', { prompt: 'x', model: 'gpt-5-mini' }).catch(error => error);
    await commsLog.append({ payload: { note: 'by hand' }, tool: 'mine' });
    const kept = await commsLog.read({ tool: 'mine' });
    const counts = ['gpt-5', 'claude-sonnet-4-5', 'anthropic:claude-sonnet-4-5', 'sonnet', 'sonnet:high', undefined].map(model => estimateTokens('Ten words that a model may count, more or less, today.', model));
    await polylogue.cleanup();
    const after = await Promise.all([send({ message: 'x' }), polylogue.callTool('version', {}), polylogue.listModels()].map(each => each.then(() => 'done', ({ message, details }) => message + ' ' + details?.next)));
    console.log(JSON.stringify({ text: first.text, asked, cause: { name: cause?.name, message: cause?.message, statusCode: cause?.statusCode }, message, failed: { message: failed.cause?.message, statusCode: failed.cause?.statusCode }, kept, counts, after }));`,
    {
      ...vendorEnv({ openai: vendor.url }),
      DEFAULT_MODEL: 'gpt-5-mini',
      AGENT_TRIAGE_MODEL: 'gpt-5-mini',
      COMMS_LOG: 'on',
    },
  );
  await vendor.close();
  expect(told).toMatchObject({ text: 'Bern.', asked: [['Which city?', ['Bern', 'Basel']]] });
  const [first, second] = vendor.requests.map(({ body }) => JSON.stringify(body));
  expect(first).toMatch(/Where\? found[\s\S]*BEGIN FOUND: wiki[\s\S]*Bern is a city\./);
  expect(first).not.toContain('a1B2a1B2');
  expect(second).toContain('Bern');
  expect(JSON.stringify(vendor.requests[4]?.body)).toContain('The disk may be full.');
  expect(told.cause).toMatchObject({ statusCode: 400, message: expect.stringMatching(/\S/) });
  expect(told.kept).toMatchObject([{ tool: 'mine', lines: [{ payload: { note: 'by hand' } }] }]);
  expect(told.failed).toEqual({ statusCode: 400, message: expect.stringMatching(/\S/) });
  const [gpt, claude, named, alias, withEffort, plain] = told.counts as number[];
  expect([named, alias, withEffort, plain]).toEqual([claude, claude, claude, gpt]);
  expect(claude).toBeGreaterThan(gpt ?? 0);
  for (const each of told.after as string[]) expect(each).toMatch(/closed by cleanup.*createPolylogue/);
});

it('finds git in an empty environment, lends the tools of keys, and counts what the model of a run saw', async () => {
  const [openai, zhipu] = [await startOpenAi(), await startZhipu()];
  const long = { calls: Array.from({ length: 4 }, (_, at) => ({ name: 'long', args: { at } })) };
  openai.script(long, long, long, { answer: 'Enough.' });
  const told = await packed.answer<{ names: string[]; stop: string; diff: string; rounds: number }>(
    `import { execFileSync } from 'node:child_process';
    import { mkdirSync } from 'node:fs';
    mkdirSync('repository');
    execFileSync('git', ['init', '-q'], { cwd: 'repository' });
    const long = { name: 'long', description: 'Long.', inputSchema: { type: 'object' }, effect: 'read', run: async () => 'x'.repeat(200_000) };
    const settings = ${JSON.stringify({ ...vendorEnv({ openai: openai.url, zhipu: zhipu.url }), DEFAULT_MODEL: 'gpt-5-mini' })};
    const polylogue = await createPolylogue({ env: {}, settings, root: process.cwd() + '/repository', home: process.cwd() + '/git-home' });
    const run = await polylogue.send({ message: 'Go.', tools: [long, 'all'] });
    const { content } = await polylogue.callTool('diagnose', { stderr: 'x' }).catch(() => ({}));
    const diff = await polylogue.callTool('precommit', { path: process.cwd() + '/repository', step: 'Look', step_number: 1, total_steps: 2, next_step_required: true, findings: '' });
    console.log(JSON.stringify({ stop: run.stopReason, diff: JSON.stringify(diff), rounds: run.toolCalls.at(-1).round }));
    await polylogue.cleanup();`,
  );
  await Promise.all([openai.close(), zhipu.close()]);
  const names = JSON.stringify(openai.requests[0]?.body);
  expect(names).toContain('glm_web_search');
  expect(told.stop).toBe('max_bytes');
  const seen = Buffer.byteLength(JSON.stringify(openai.requests.at(-1)?.body));
  expect(told.rounds).toBeLessThanOrEqual(2);
  expect(seen).toBeLessThan(600_000);
  expect(told.diff).not.toMatch(/git.{0,40}(not found|no absolute folder)/i);
});

it('streams text, calls, approvals and usage, and refuses what nobody answers', async () => {
  const vendor = await startOpenAi();
  const write = (path: string) => ({ calls: [{ name: 'write_file', args: { path, content: 'new' } }] });
  vendor.script(write('a.txt'), write('b.txt'), { answer: 'one two three', chunks: 3 });
  const told = await packed.answer<{ types: string[]; outcomes: string[]; text: string; error: string; left: string }>(
    `import { mkdirSync } from 'node:fs';
    mkdirSync('streamed');
    const polylogue = await createPolylogue({ root: process.cwd() + '/streamed' });
    const types = [];
    const outcomes = [];
    let text = '';
    for await (const event of polylogue.stream({ message: 'Go.', tools: ['all'] })) {
      types.push(event.type);
      if (event.type === 'approval' && event.call.args.path === 'a.txt') event.answer({ action: 'allow' });
      if (event.type === 'tool_result') outcomes.push(event.call.outcome);
      if (event.type === 'text') text += event.text;
    }
    let error = '';
    try {
      for await (const event of polylogue.stream({ message: ' ' })) types.push('never');
    } catch (thrown) {
      error = thrown.details.code;
    }
    const conversation = polylogue.createConversation();
    for await (const event of conversation.stream('Hi.')) if (event.type === 'text') break;
    const left = await conversation.send('Again.').then(({ text }) => text);
    console.log(JSON.stringify({ types, outcomes, text, error, left }));
    await polylogue.cleanup();`,
    { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' },
  );
  await vendor.close();
  expect(told).toMatchObject({ outcomes: ['ok', 'refused'], text: 'one two three', error: 'MISSING_PARAMETER' });
  expect(told.types.filter(type => type !== 'text')).toEqual([
    ...['usage', 'tool_call', 'approval', 'tool_result'],
    ...['usage', 'tool_call', 'approval', 'tool_result'],
    ...['usage', 'done'],
  ]);
  expect(told.left).toMatch(/\S/);
});

it('is a model of the AI SDK, with fallbacks, masks and the tools of its program', async () => {
  const vendor = await startOpenAi();
  vendor.script(
    { fault: 'status', status: 400 },
    { calls: [{ name: 'weather', args: { city: 'Bern' } }] },
    { answer: 'It rains in Bern.' },
    { answer: 'one two three', chunks: 3 },
  );
  await symlink(resolve('node_modules/ai'), packed.path('node_modules/ai'));
  const told = await packed.answer<{ text: string; used: unknown; streamed: string[]; input: number }>(
    `import { generateText, streamText, tool, stepCountIs } from 'ai';
    import { z } from 'polylogue';
    const polylogue = await createPolylogue();
    const weather = tool({ description: 'Weather.', inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => 'rain in ' + city });
    const prompt = 'Bern? My key is sk-proj-' + 'a1B2'.repeat(12);
    const failed = await generateText({ model: polylogue.languageModel('gpt-5-mini'), prompt: 'x', maxRetries: 0 }).catch(error => String(error));
    const { text, usage, providerMetadata } = await generateText({ model: polylogue.languageModel('gpt-5-mini'), system: 'Brief.', prompt, tools: { weather }, stopWhen: stepCountIs(3), maxRetries: 0 });
    const streamed = [];
    for await (const delta of streamText({ model: polylogue.languageModel('gpt-5-mini'), prompt: 'Go.' }).textStream) streamed.push(delta);
    console.log(JSON.stringify({ failed, text, used: providerMetadata.polylogue, streamed, input: usage.inputTokens }));
    await polylogue.cleanup();`,
    vendorEnv({ openai: vendor.url }),
  );
  await vendor.close();
  expect(vendor.violations).toEqual([]);
  expect(told).toMatchObject({ text: 'It rains in Bern.', used: { model: 'openai:gpt-5-mini' } });
  expect(told.streamed.join('')).toBe('one two three');
  expect(told.input).toBeGreaterThan(10);
  const sent = JSON.stringify(vendor.requests.map(({ body }) => body));
  expect(sent).toContain('rain in Bern');
  expect(sent).not.toContain('a1B2a1B2');
});

it('asks each vendor through what is left of its package, and reads a PDF', async () => {
  const vendors = await startEveryVendor();
  const pdf = pdfFile('The bridge of Ostrava closes on Friday.').toString('base64');
  const asked = vendors.map(({ id, model, env }) => ({ model: `${id}:${model}`, env }));
  const answers = await packed.answer<string[]>(
    `import { writeFileSync } from 'node:fs';
    writeFileSync('report.pdf', Buffer.from('${pdf}', 'base64'));
    const answers = [];
    for (const { model, env } of ${JSON.stringify(asked)}) {
      const { callTool, cleanup } = await createPolylogue({ env: { ...process.env, ...env }, root: process.cwd() });
      const args = { model, prompt: 'What closes?', absolute_file_paths: ['report.pdf'] };
      answers.push(await callTool('chat', args).then(({ content }) => content, String));
      await cleanup();
    }
    console.log(JSON.stringify(answers));`,
  );
  for (const [at, { id, fake }] of vendors.entries()) {
    expect([id, answers[at]]).toEqual([id, expect.not.stringContaining('Error')]);
    // The list of models is asked for a moment after a call.
    const sent = fake.requests.findLast(({ messages }) => messages.length > 0)?.messages.map(({ text }) => text);
    expect(sent?.join('\n'), id).toContain('The bridge of Ostrava closes on Friday.');
    expect(fake.violations.filter(said => !said.startsWith('GET '))).toEqual([]);
    await fake.close();
  }
});
