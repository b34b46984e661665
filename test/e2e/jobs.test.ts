import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clockAhead, type Era, type McpSession, startSession } from '../support/mcp-session.ts';
import { vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { startRawServer } from './raw-server.ts';

let project: TempProject;
const homes: TempProject[] = [];
const vendors: FakeVendor[] = [];

beforeAll(async () => {
  project = await tempProject();
});

afterAll(async () => {
  expect(vendors.flatMap(({ violations }) => violations)).toEqual([]);
  await Promise.all([...vendors.map(vendor => vendor.close()), ...[project, ...homes].map(each => each.dispose())]);
});

/** A data folder and a vendor that no other test has. */
async function newPlace(): Promise<{ home: string; vendor: FakeVendor }> {
  const [home, vendor] = await Promise.all([tempProject(), startOpenAi()]);
  homes.push(home);
  vendors.push(vendor);
  return { home: home.root, vendor };
}

type Place = Awaited<ReturnType<typeof newPlace>>;
const envFor = ({ vendor }: Place) => ({ ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' });

function start(place: Place, era: Era, env: Record<string, string> = {}, nodeArgs: string[] = []): Promise<McpSession> {
  const all = { ...envFor(place), DETACHED_GRACE_SECONDS: '1', ...env };
  return startSession({ root: project.root, home: place.home, env: all, nodeArgs }, era);
}

/** Only where a call is to outlast it: on a busy machine any call may. */
const impatient = { CALL_PATIENCE_SECONDS: '1' };

// They mostly wait, so they run at the same time.
describe.concurrent.each<Era>(['legacy', 'modern'])('a client of the %s era', era => {
  /** For what only reads, or changes threads of its own, one test after the other. */
  let place: Place;
  let session: McpSession;
  const afterTheOther = { concurrent: false };
  beforeAll(async () => {
    place = await newPlace();
    session = await start(place, era);
  });
  afterAll(() => session.close());

  it('comes back for a long call, and cancels one down to the vendor’s socket', async test => {
    const own = await newPlace();
    const session = await start(own, era, impatient);
    const { vendor } = own;
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'At last.', when: promise });
    const { job_id, status } = await session.call('chat', { prompt: 'Slowly.' });
    expect(status).toBe('running');
    resolve();
    const wait = () => session.call('job', { job_id, wait_ms: 1_000 });
    await test.expect.poll(wait).toMatchObject({ content: 'At last.', isError: false });
    const before = vendor.requests.length;
    vendor.script({ fault: 'hang_after_headers' });
    const hanging = await session.call('chat', { prompt: 'Hang.' });
    expect(await session.call('job', { job_id: hanging.job_id, action: 'cancel' })).toMatchObject({
      status: 'cancelled',
    });
    await vendor.requests[before]!.aborted;
    await session.close();
  });

  it('learns that a job was interrupted when its server was killed', async () => {
    const own = await newPlace();
    const { vendor } = own;
    const first = await start(own, era, impatient);
    const before = vendor.requests.length;
    vendor.script({ fault: 'hang_after_headers' });
    const { job_id } = await first.call('chat', { prompt: 'Hang.' });
    const alive = await start(own, era);
    expect(await alive.call('job', { job_id })).toMatchObject({ status: 'running' });
    await alive.close();
    await first.kill();
    await vendor.requests[before]!.aborted;
    const next = await start(own, era, {}, clockAhead(15_000));
    const told = await next.call('job', { job_id });
    expect(told).toMatchObject({ status: 'interrupted', isError: true, error: { code: 'INTERRUPTED' } });
    expect(told.error.data).toMatchObject({ job_id, tool_name: 'chat' });
    await next.close();
  });

  it('finds commands, their arguments, and what can be read', afterTheOther, async () => {
    const { client } = session;
    place.vendor.script({ answer: 'A door is a hinge with ambitions.' });
    const reply = await session.call('chat', { prompt: 'What is a door?' });
    const id = reply.continuation_offer.continuation_id;

    const { prompts } = await client.listPrompts();
    expect(prompts.map(prompt => prompt.name)).toEqual(expect.arrayContaining(['chat', 'review', 'continue']));
    const got = await client.getPrompt({ name: 'chat:gpt-5-mini', arguments: { request: 'Hello.' } });
    expect(JSON.stringify(got.messages)).toContain('gpt-5-mini');
    await expect(client.getPrompt({ name: 'no-such-command' })).rejects.toThrow(/Unknown prompt/);

    const completed = async (ref: { type: 'ref/prompt'; name: string }, name: string, value: string) =>
      (await client.complete({ ref, argument: { name, value } })).completion.values;
    const chat = { type: 'ref/prompt', name: 'chat' } as const;
    expect(await completed(chat, 'model', 'gpt-5-m')).toContain('gpt-5-mini');
    expect(await completed(chat, 'continuation_id', '')).toEqual(['last', id]);
    expect(await completed(chat, 'request', 'x')).toEqual([]);

    const { resources } = await client.listResources();
    expect(resources.map(({ uri }) => uri)).toEqual(['polylogue://models', `polylogue://threads/${id}`]);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toContain('polylogue://threads/{id}/turns/{seq}');
    const read = async (uri: string) => JSON.stringify((await client.readResource({ uri })).contents);
    expect(await read(`polylogue://threads/${id}`)).toContain('What is a door?');
    expect(await read(`polylogue://threads/${id}/turns/2`)).toContain('A door is a hinge with ambitions.');
    expect(await read('polylogue://models')).toContain('openai:gpt-5-mini');
    for (const path of [
      'threads/last',
      `threads/${id}/turns/9`,
      `jobs/${id}`,
      'models/x',
      '../x',
      `threads/${id}/x/1`,
    ]) {
      await expect(client.readResource({ uri: `polylogue://${path}` }), path).rejects.toThrow();
    }
  });

  it('hears of a change of what it asked for, and of nothing else', afterTheOther, async test => {
    const { client } = session;
    const opening = await session.call('chat', { prompt: 'One?' });
    const other = await session.call('chat', { prompt: 'Another?' });
    const idOf = (reply: typeof opening): string => reply.continuation_offer.continuation_id;
    const uri = `polylogue://threads/${idOf(opening)}`;
    const heard: string[] = [];
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => void heard.push(params.uri));
    const listening = era === 'modern' ? await client.listen({ resourceSubscriptions: [uri] }) : undefined;
    if (!listening) await client.subscribeResource({ uri });
    await session.call('chat', { prompt: 'More?', continuation_id: idOf(other) });
    await session.call('chat', { prompt: 'More?', continuation_id: idOf(opening) });
    await test.expect.poll(() => heard).toEqual([uri]);
    await (listening ? listening.close() : client.unsubscribeResource({ uri }));
  });

  it('hears of a change that another process made, until it wants to hear no more', afterTheOther, async test => {
    const other = await start(place, era);
    const { client } = session;
    const opening = await session.call('chat', { prompt: 'One?' });
    const { continuation_id } = opening.continuation_offer;
    const uri = `polylogue://threads/${continuation_id}`;
    const heard: string[] = [];
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => void heard.push(params.uri));
    const listening = era === 'modern' ? await client.listen({ resourceSubscriptions: [uri] }) : undefined;
    if (!listening) await client.subscribeResource({ uri });
    await other.call('chat', { prompt: 'Two?', continuation_id });
    await test.expect.poll(() => heard).toContain(uri);
    const read = JSON.stringify((await client.readResource({ uri })).contents);
    expect(read).toContain('Two?');
    await (listening ? listening.close() : client.unsubscribeResource({ uri }));
    // A change of the client's own would be told at once.
    const before = heard.length;
    await session.call('chat', { prompt: 'Three?', continuation_id });
    expect(heard).toHaveLength(before);
    await other.close();
  });
});

describe.concurrent('a client that knows tasks', () => {
  const meta = (extensions: object) => ({
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': { extensions },
  });
  const knowing = { _meta: meta({ 'io.modelcontextprotocol/tasks': {} }) };
  const unknowing = { _meta: meta({}) };

  it('gets a long call as a task, which is a job too, and a client that does not is not bothered', async () => {
    const own = await newPlace();
    const { vendor } = own;
    const server = startRawServer({ root: project.root, home: own.home, env: envFor(own) });
    const { result } = await server.request(1, 'server/discover', knowing);
    expect(result.capabilities.extensions).toHaveProperty(['io.modelcontextprotocol/tasks']);
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'At last.', when: promise }, { answer: 'At last too.', delayMs: 300 });
    const chat = { name: 'chat', arguments: { prompt: 'Slowly.' } };
    const task = (await server.request(2, 'tools/call', { ...chat, ...knowing })).result;
    expect(task).toMatchObject({ resultType: 'task', status: 'working', ttlMs: 86_400_000 });
    const { taskId } = task;
    expect((await server.request(3, 'tasks/get', { taskId, ...knowing })).result).toMatchObject({ status: 'working' });
    resolve();
    const whole = (await server.request(4, 'tools/call', { ...chat, ...unknowing })).result;
    expect(JSON.parse(whole.content[0].text)).toMatchObject({ status: 'continuation_available' });
    let done = (await server.request(5, 'tasks/get', { taskId, ...knowing })).result;
    while (done.status === 'working') done = (await server.request(5, 'tasks/get', { taskId, ...knowing })).result;
    expect(done).toMatchObject({ taskId, status: 'completed', result: { isError: false } });
    const job = { name: 'job', arguments: { job_id: taskId }, ...unknowing };
    const same = (await server.request(6, 'tools/call', job)).result;
    expect(same.content).toEqual(done.result.content);

    expect((await server.request(7, 'tasks/get', { taskId, ...unknowing })).error.code).toBe(-32021);
    expect((await server.request(8, 'tasks/get', { taskId: 'nothing', ...knowing })).error.code).toBe(-32602);
    expect((await server.request(9, 'tasks/list', knowing)).error.code).toBe(-32601);
    server.end();
    expect(await server.ended).toMatchObject({ code: 0 });
  });
});
