import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { tools } from '../../src/tools/index.gen.ts';
import { type Era, eraVersions, isRunning, type McpSession, startSession } from '../support/mcp-session.ts';
import { vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { initializeParams, type RawServer, startRawServer } from './raw-server.ts';

let openAi: FakeVendor;
let anthropic: FakeVendor;
let project: TempProject;
let env: Record<string, string>;

beforeAll(async () => {
  [openAi, anthropic, project] = await Promise.all([
    startOpenAi(),
    startAnthropic(),
    tempProject({ 'src/door.ts': 'export const door = "ajar";\n' }),
  ]);
  env = { ...vendorEnv({ openai: openAi.url, anthropic: anthropic.url }), DEFAULT_MODEL: 'gpt-5-mini' };
});

afterAll(async () => {
  expect([...openAi.violations, ...anthropic.violations]).toEqual([]);
  await Promise.all([openAi.close(), anthropic.close(), project.dispose()]);
});

/** Those that are offered unless the operator says otherwise. */
const names = tools.filter(({ toolset }) => ['core', 'code'].includes(toolset)).map(tool => tool.name);
const step = { step: 'Find out how the door works.', total_steps: 2, findings: 'It is ajar.' };

describe.each<Era>(['legacy', 'modern', 'auto'])('a client of the %s era', era => {
  let home: TempProject;
  let session: McpSession;

  beforeAll(async () => {
    home = await tempProject();
    session = await startSession({ root: project.root, home: home.root, env }, era);
  });

  afterAll(async () => {
    await session.close();
    expect(isRunning(session.pid)).toBe(false);
    await home.dispose();
  });

  it('learns who the server is and what its tools are for', () => {
    const { client } = session;
    expect(client.getNegotiatedProtocolVersion()).toBe(eraVersions[era === 'legacy' ? 'legacy' : 'modern']);
    expect(client.getServerVersion()).toMatchObject({ name: 'polylogue', title: 'Polylogue', version: '0.1.0' });
    const instructions = client.getInstructions() ?? '';
    expect(instructions).toContain('continuation_id');
    expect(Buffer.byteLength(instructions)).toBeLessThanOrEqual(2_048);
  });

  it('lists the tools in one order, with all annotations and without noise, the same every time', async () => {
    const list = () => session.client.listTools(undefined, { cacheMode: 'bypass' });
    const listed = await list();
    const { tools } = listed;
    expect(tools.map(tool => tool.name)).toEqual(names);
    for (const { title, description, inputSchema, annotations } of tools) {
      expect(title && description).toBeTruthy();
      expect(inputSchema.type).toBe('object');
      expect(JSON.stringify(inputSchema)).not.toContain('$schema');
      const ifItWrites = annotations?.readOnlyHint ? [] : ['idempotentHint'];
      const hints = ['destructiveHint', ...ifItWrites, 'openWorldHint', 'readOnlyHint'];
      expect(Object.keys(annotations ?? {}).toSorted()).toEqual(hints);
      expect(Object.values(annotations ?? {}).every(value => typeof value === 'boolean')).toBe(true);
    }
    const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]));
    expect(hints.analyze).toMatchObject({ readOnlyHint: true, openWorldHint: true });
    expect(hints.chat).toMatchObject({ readOnlyHint: true, destructiveHint: false, openWorldHint: true });
    expect(hints.threads).toMatchObject({ readOnlyHint: false, destructiveHint: true, openWorldHint: false });
    expect(JSON.stringify(await list())).toBe(JSON.stringify(listed));
  });

  it('gets an answer from every tool', async () => {
    const chat = await session.call('chat', { prompt: 'What is a door?', absolute_file_paths: ['src/door.ts'] });
    expect(chat).toMatchObject({ status: 'continuation_available', isError: false });
    expect(chat.metadata).toMatchObject({ provider_used: 'openai', model_used: 'gpt-5-mini' });

    const asked = openAi.requests.length + anthropic.requests.length;
    const first = { ...step, step_number: 1, next_step_required: true, relevant_files: ['src/door.ts'] };
    const pause = await session.call('analyze', first);
    expect(pause).toMatchObject({ status: 'pause_for_analysis', isError: false, step_number: 1 });
    expect(openAi.requests.length + anthropic.requests.length).toBe(asked);
    const id = pause.continuation_id;
    const last = { ...step, step_number: 2, next_step_required: false, continuation_id: id };
    anthropic.script({ answer: 'The door should be closed.' });
    const analysis = await session.call('analyze', { ...last, model: 'claude-sonnet-4-5' });
    expect(analysis).toMatchObject({ analysis_complete: true, continuation_id: id, isError: false });
    expect(analysis.expert_analysis.raw_analysis).toBe('The door should be closed.');

    openAi.script({ answer: '{"status": "analysis_complete", "summary": "The hinge."}' });
    const only = { step_number: 1, total_steps: 1, next_step_required: false, continuation_id: id };
    const debug = await session.call('debug', { ...only, step: 'It squeaks.', findings: 'At the hinge.' });
    expect(debug).toMatchObject({ investigation_complete: true, isError: false, continuation_id: id });
    expect(debug.expert_analysis).toMatchObject({ summary: 'The hinge.' });

    openAi.byDefault({ answer: 'Seen.' });
    const alone = { ...only, continuation_id: undefined, step: 'Look.', findings: 'Nothing odd.' };
    const complete: Record<string, string> = {
      thinkdeep: 'thinking_complete',
      codereview: 'code_review_complete',
      secaudit: 'security_audit_complete',
      refactor: 'refactoring_complete',
      testgen: 'test_generation_complete',
    };
    for (const [name, flag] of Object.entries(complete)) {
      const reply = await session.call(name, { ...alone, relevant_files: ['src/door.ts'] });
      expect(reply, name).toMatchObject({ [flag]: true, isError: false });
    }
    const plan = await session.call('planner', { ...alone, findings: undefined });
    expect(plan).toMatchObject({ status: 'planning_complete', isError: false });
    const challenge = await session.call('challenge', { prompt: 'The door is green.' });
    expect(challenge).toMatchObject({ status: 'challenge_accepted', original_statement: 'The door is green.' });

    expect((await session.call('listmodels')).content).toContain('gpt-5-mini');
    const version = await session.call('version');
    expect(version.metadata.tools).toEqual(names);
    expect(version.content).toContain('Client: polylogue-test');
  });

  it('gets an answer from every action of threads', async () => {
    const threads = (args: Record<string, unknown>) => session.call('threads', args);
    const seed = await session.call('chat', { prompt: 'Remember the word zeugma.' });
    const id = seed.continuation_offer.continuation_id;
    const listed = await threads({ action: 'list' });
    expect(listed.threads[0]).toMatchObject({ continuation_id: id, turns: 2 });
    const found = await threads({ action: 'search', query: 'zeugma' });
    expect(found.hits).toMatchObject([{ continuation_id: id, turn: 1 }]);
    const read = await threads({ action: 'read', continuation_id: id });
    expect(read.transcript).toMatchObject([
      { role: 'user', content: 'Remember the word zeugma.', status: 'done' },
      { role: 'assistant', model: 'openai:gpt-5-mini', status: 'done' },
    ]);
    const sent = await threads({ action: 'sent', continuation_id: 'last' });
    expect(sent.sent).toMatchObject([{ turn: 1, tool: 'chat', to: 'openai:gpt-5-mini' }]);
    const fork = await threads({ action: 'fork', continuation_id: id, turn: 2 });
    expect(fork).toMatchObject({ status: 'success', forked_from: { continuation_id: id, turn: 2 } });
    const gone = await threads({ action: 'delete', continuation_id: fork.continuation_id, confirm: true });
    expect(gone.deleted).toEqual([fork.continuation_id]);
    expect((await threads({ action: 'delete_all', confirm: true })).deleted).toContain(id);
    expect((await threads({ action: 'list' })).threads).toEqual([]);
  });

  it('is told the stages of a call when it asks for progress', async () => {
    openAi.script({ delayMs: 60 });
    const updates: { progress: number; message?: string }[] = [];
    const args = { prompt: 'Slowly.', absolute_file_paths: ['src/door.ts'] };
    await session.call('chat', args, { onprogress: update => updates.push(update) });
    expect(updates.map(update => update.message)).toEqual(['reading files', 'asking openai:gpt-5-mini']);
    expect(updates[1]!.progress).toBeGreaterThan(updates[0]!.progress);
  });

  it('ends a call in the middle, down to the vendor’s socket, and the thread shows it', async () => {
    const before = openAi.requests.length;
    openAi.script({ answer: 'word '.repeat(400), chunks: 400, chunkDelayMs: 20 });
    const stop = new AbortController();
    const call = session.call('chat', { prompt: 'A long story.' }, { signal: stop.signal }).catch(error => error);
    await expect.poll(() => openAi.requests.length).toBe(before + 1);
    await new Promise(resolve => setTimeout(resolve, 100));
    stop.abort();
    await openAi.requests[before]!.aborted;
    expect(await call).toBeInstanceOf(Error);
    const status = async () => {
      const { transcript } = await session.call('threads', { action: 'read', continuation_id: 'last' });
      return transcript.map((turn: { content: string; status: string }) => [turn.content, turn.status]);
    };
    await expect.poll(status).toEqual([['A long story.', 'interrupted']]);
    expect(openAi.openSockets()).toBe(0);
  });
});

const words = { answer: 'word '.repeat(240), chunks: 60, chunkDelayMs: 95 };

/** What a client is told while a model of its own answers slowly, and the answer. */
async function slowly(era: Era): Promise<{ messages: string[]; content: string }> {
  const [vendor, home] = await Promise.all([startOpenAi(), tempProject()]);
  vendor.script(words);
  const own = { ...env, ...vendorEnv({ openai: vendor.url }) };
  const session = await startSession({ root: project.root, home: home.root, env: own }, era);
  const messages: string[] = [];
  const onprogress = ({ message = '' }) => void messages.push(message);
  const reply = await session.call('chat', { prompt: 'Slowly.' }, { onprogress });
  await session.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), home.dispose()]);
  return { messages, content: reply.content };
}

/** Begun before the other tests, as it takes seconds in which nothing else is to be done. */
let streamed: Promise<Awaited<ReturnType<typeof slowly>>[]>;
beforeAll(() => {
  streamed = Promise.all([slowly('legacy'), slowly('modern')]);
  // Its test tells what is wrong with it.
  streamed.catch(() => undefined);
});

it('tells the tokens that stream in while a slow model answers, in both eras', async () => {
  const told = await streamed;
  for (const { messages, content } of told) {
    expect(content).toBe(words.answer);
    const [reading, asking, streaming] = messages;
    expect([reading, asking]).toEqual(['reading files', 'asking openai:gpt-5-mini']);
    expect(streaming).toMatch(/^asking openai:gpt-5-mini: about \d+ tokens so far$/);
    expect(Number(/\d+(?= tokens)/.exec(streaming!)?.[0])).toBeGreaterThan(100);
  }
});

interface Started {
  server: RawServer;
  /** The only one that it asks. */
  vendor: FakeVendor;
  home: string;
}

// They mostly wait, so they run at the same time.
describe.concurrent('the process', () => {
  async function started({ onTestFinished }: TestContext): Promise<Started> {
    const [vendor, home] = await Promise.all([startOpenAi(), tempProject()]);
    const own = { ...env, ...vendorEnv({ openai: vendor.url }), DETACHED_GRACE_SECONDS: '1' };
    const server = startRawServer({ root: project.root, home: home.root, env: own });
    onTestFinished(async () => {
      server.signal('SIGKILL');
      await server.ended;
      await Promise.all([vendor.close(), home.dispose()]);
      expect(vendor.violations).toEqual([]);
    });
    await server.request(1, 'initialize', initializeParams);
    server.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    return { server, vendor, home: home.root };
  }
  const chat = (prompt: string) => ({ name: 'chat', arguments: { prompt } });

  it('writes nothing but JSON-RPC to its standard output, whatever it is sent', async test => {
    const { server, vendor } = await started(test);
    const [one, two] = [await server.request(2, 'tools/list', {}), await server.request(3, 'tools/list', {})];
    expect(JSON.stringify(one.result)).toBe(JSON.stringify(two.result));
    server.write('this is not JSON\n');
    server.write('{"jsonrpc":"2.0","method":"notifications/unheard-of"}\n');
    vendor.script({ answer: '', finish: 'content_filter' });
    expect((await server.request(4, 'tools/call', chat('Refused.'))).result.isError).toBe(true);
    expect((await server.request(5, 'tools/call', chat('Answered.'))).result.isError).toBe(false);
    expect((await server.request(6, 'tools/call', { name: 'chta', arguments: {} })).result.isError).toBe(true);
    expect((await server.request(7, 'no/such/method', {})).error.code).toBe(-32601);
    server.end();
    const { code, errors } = await server.ended;
    expect(code).toBe(0);
    expect(errors).toContain('chat: continuation_available');
    expect(errors).not.toContain('test-key');
    for (const line of server.lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' });
    expect(server.lines).toHaveLength(8);
  });

  it.for(['a client that is gone', 'SIGTERM', 'SIGINT'] as const)(
    'ends in order on %s, in the middle of a call too, and leaves nothing open',
    async (how, test) => {
      const { server, vendor, home } = await started(test);
      await server.request(2, 'tools/call', chat('Answered.'));
      const before = vendor.requests.length;
      vendor.script({ fault: 'hang_after_headers' });
      void server.request(3, 'tools/call', chat('Never answered.'));
      await test.expect.poll(() => vendor.requests.length).toBe(before + 1);
      const began = performance.now();
      if (how === 'a client that is gone') {
        server.end();
        server.deafen();
      } else server.signal(how);
      expect(await server.ended).toMatchObject({ code: 0, signal: null });
      expect(performance.now() - began).toBeLessThan(20_000);
      expect(isRunning(server.pid)).toBe(false);
      await vendor.requests[before]!.aborted;
      expect(vendor.openSockets()).toBe(0);
      const left = await readdir(home);
      expect(left.filter(name => /-wal$|-shm$|-journal$|\.tmp$/.test(name))).toEqual([]);

      const next = await startSession({ root: project.root, home, env });
      const { threads } = await next.call('threads', { action: 'list' });
      const readings = threads.map(({ continuation_id }: { continuation_id: string }) =>
        next.call('threads', { action: 'read', continuation_id }),
      );
      const statuses = (await Promise.all(readings)).flatMap(({ transcript }) =>
        transcript.map((turn: { content: string; status: string }) => `${turn.content} ${turn.status}`),
      );
      expect(statuses).toContain('Answered. done');
      expect(statuses).toContain('Never answered. interrupted');
      await next.close();
    },
  );

  it('ends in order when nobody reads its output any more', async test => {
    const { server, home } = await started(test);
    server.deafen();
    void server.request(2, 'tools/call', chat('Nobody hears.'));
    const { code, signal, errors } = await server.ended;
    expect({ code, signal }).toEqual({ code: 0, signal: null });
    expect(errors).toContain('chat: continuation_available');
    expect((await readdir(home)).filter(name => /-wal$|-shm$/.test(name))).toEqual([]);
  });

  it('ends on a signal also when a client that stays reads nothing of what waits for it', async test => {
    const { server } = await started(test);
    server.ignore();
    for (let id = 2; id < 42; id += 1) void server.request(id, 'tools/list', {});
    void server.request(50, 'tools/call', chat('Nobody reads.'));
    await test.expect.poll(server.told, { timeout: 15_000 }).toContain('chat: continuation_available');
    server.signal('SIGTERM');
    await test.expect.poll(() => isRunning(server.pid), { timeout: 15_000 }).toBe(false);
    server.deafen();
    expect(await server.ended).toMatchObject({ code: 0, signal: null });
  });

  it('refuses a text of nine megabytes, and a message of thirty-four by its id', async test => {
    const { server, vendor } = await started(test);
    const asked = vendor.requests.length;
    const { result } = await server.request(2, 'tools/call', chat('x'.repeat(9_000_000)));
    expect(JSON.parse(result.content[0].text).error).toMatchObject({ code: 'LIMIT', class: 'size' });
    const { error } = await server.request(3, 'tools/call', chat('x'.repeat(34_000_000)));
    expect(error).toMatchObject({ code: -32_600, message: expect.stringContaining('33554432') });
    expect((await server.request(4, 'ping', {})).result).toEqual({});
    server.end();
    expect(await server.ended).toMatchObject({ code: 0, signal: null });
    expect(vendor.requests.length).toBe(asked);
  });
});
