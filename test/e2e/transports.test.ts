import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isRecord } from '../../src/core/json.ts';
import { testDaemon } from '../support/daemon.ts';
import { type DoorClient, doorNames, type OpenDoor, openDoor } from '../support/doors.ts';
import { helloFrames } from '../support/frame-client.ts';
import { type Document, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor, Step } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

let vendor: FakeVendor;
let project: TempProject;
let env: Record<string, string>;
/** What the first door answered. */
let expected: string[];

beforeAll(async () => {
  [vendor, project] = await Promise.all([
    startOpenAi(),
    tempProject({ 'src/door.ts': 'export const door = "ajar";\n', 'notes.md': 'It squeaks.\n' }),
  ]);
  env = {
    ...vendorEnv({ openai: vendor.url }),
    DEFAULT_MODEL: 'gpt-5-mini',
    AI_MANAGER: 'rules',
    DETACHED_GRACE_SECONDS: '5',
    LOG_LEVEL: 'error',
  };
});

afterAll(async () => {
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose()]);
});

interface ScriptedCall {
  name: string;
  /** With what the replies before said. */
  args(replies: readonly Document[]): Record<string, unknown>;
  /** What the vendor does. */
  steps?: readonly Step[];
}

const threadOf = (reply: Document): string => reply.continuation_id ?? reply.continuation_offer.continuation_id;
const step = { total_steps: 2, step: 'Find out how the door works.', findings: 'It is ajar.' };
const only = { step_number: 1, total_steps: 1, next_step_required: false, step: 'It squeaks.', findings: 'The hinge.' };

/** Each kind of reply there is: models, workflows, panels, threads, refusals and failures. */
const script: readonly ScriptedCall[] = [
  { name: 'version', args: () => ({}) },
  { name: 'listmodels', args: () => ({}) },
  { name: 'chat', args: () => ({ prompt: 'What is a door?' }), steps: [{ answer: 'A hole with a lid – “ajar”, 門.' }] },
  {
    name: 'chat',
    args: ([, , chat]) => ({
      prompt: 'And this one?',
      absolute_file_paths: ['src/door.ts'],
      continuation_id: threadOf(chat),
    }),
    steps: [{ answer: 'It is ajar.' }],
  },
  { name: 'chat', args: () => ({ prompt: 'Go on.', continuation_id: 'last' }), steps: [{ answer: 'On it goes.' }] },
  {
    name: 'analyze',
    args: () => ({ ...step, step_number: 1, next_step_required: true, relevant_files: ['src/door.ts'] }),
  },
  {
    name: 'analyze',
    args: replies => ({ ...step, step_number: 2, next_step_required: false, continuation_id: threadOf(replies[5]) }),
    steps: [{ answer: 'The door should be closed.' }],
  },
  {
    name: 'debug',
    args: () => ({ ...only, relevant_files: ['notes.md'] }),
    steps: [{ answer: '{"status": "analysis_complete", "summary": "The hinge."}' }],
  },
  { name: 'planner', args: () => ({ ...only, findings: undefined }) },
  { name: 'challenge', args: () => ({ prompt: 'The door is green.' }) },
  { name: 'apilookup', args: () => ({ prompt: 'The hinge library.' }) },
  { name: 'threads', args: () => ({ action: 'list' }) },
  { name: 'threads', args: () => ({ action: 'search', query: 'lid' }) },
  { name: 'threads', args: ([, , chat]) => ({ action: 'read', continuation_id: threadOf(chat) }) },
  { name: 'threads', args: ([, , chat]) => ({ action: 'fork', continuation_id: threadOf(chat), turn: 2 }) },
  { name: 'threads', args: replies => ({ action: 'delete', continuation_id: threadOf(replies[14]), confirm: true }) },
  { name: 'job', args: () => ({ action: 'read', job_id: '00000000-0000-4000-8000-000000000000' }) },
  { name: 'chat', args: () => ({ prompt: 'Hello?', model: 'no-such-model' }) },
  { name: 'chat', args: () => ({ prompt: 7, temprature: 1 }) },
  { name: 'chat', args: () => ({ prompt: 'Read it.', absolute_file_paths: ['/etc/passwd'] }) },
  { name: 'chat', args: () => ({ prompt: 'Refused.' }), steps: [{ answer: '', finish: 'content_filter' }] },
];

async function replay(client: DoorClient): Promise<Document[]> {
  const replies: Document[] = [];
  for (const { name, args, steps = [] } of script) {
    vendor.script(...steps);
    replies.push(await client.call(name, args(replies)));
  }
  return replies;
}

/** Without what is another one with each run: ids, times, latencies, and where the data of the product lie. */
function comparable(replies: readonly Document[]): string[] {
  const ids = new Map<string, string>();
  const idOf = (id: string) => ids.get(id) ?? ids.set(id, `id ${ids.size}`).get(id) ?? '';
  const moving = /_ms$|^expires_at$|_at$|^timestamp$|^latency|^uptime|^age/;
  // MCP has a reply in parts, so that its fields come in another order.
  const inOrder = (value: unknown) =>
    isRecord(value) ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => a.localeCompare(b))) : value;
  return replies.map(reply => {
    const text = JSON.stringify(reply, (key, value) => (moving.test(key) ? undefined : inOrder(value)));
    return text
      .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, idOf)
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'at some time')
      .replaceAll(/\/[^ "\\]*\/threads\.sqlite/g, 'the store');
  });
}

describe.each(doorNames)('through %s', name => {
  let door: OpenDoor;
  let client: DoorClient;
  const asked = (times: number) => expect.poll(() => vendor.requests.length).toBe(times);

  beforeAll(async () => {
    door = await openDoor(name, { root: project.root, env });
    client = await door.connect();
  });
  afterAll(() => door.close());

  it('the same calls give the same replies as through every other door', async () => {
    expect(script.length).toBeGreaterThanOrEqual(20);
    const replies = comparable(await replay(client));
    expected ??= replies;
    expect(replies.join()).toContain('門');
    for (const [index, reply] of replies.entries())
      expect(reply, `${script[index]!.name}, call ${index}`).toBe(expected[index]);
  });

  it('a cancelled call ends down to the vendor’s socket, and is interrupted in its thread', async () => {
    const before = vendor.requests.length;
    vendor.script({ answer: 'word '.repeat(400), chunks: 400, chunkDelayMs: 20 });
    const stop = new AbortController();
    const call = client.call('chat', { prompt: 'A long story.' }, { signal: stop.signal }).catch(error => error);
    await asked(before + 1);
    stop.abort();
    await vendor.requests[before]!.aborted;
    expect(await call).toBeInstanceOf(Error);
    const turns = async () => {
      const { transcript } = await client.call('threads', { action: 'read', continuation_id: 'last' });
      return transcript.map(({ status }: Document) => status);
    };
    await expect.poll(turns).toEqual(['interrupted']);
  });

  it('a lost connection ends what only it could tell, and nothing else', async () => {
    const before = vendor.requests.length;
    const prompt = { prompt: 'What else is a door?' };
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'A way out.', when: promise, delayMs: 500 });
    const call = client.call('chat', prompt).catch(error => error);
    await asked(before + 1);
    // Some doors only end once their server has answered.
    const cut = door.cut();
    resolve();
    await cut;
    // Only there a request is its connection.
    if (name === 'HTTP 2026') return vendor.requests[before]!.aborted;
    // Who has a session comes back to it by himself; for others the same call, sent again, is the same one.
    const comesBack = ['HTTP 2025', 'frames', 'bridge 2025', 'bridge 2026'].includes(name);
    const reply = comesBack ? await call : await (await door.connect()).call('chat', prompt);
    expect(reply).toMatchObject({ isError: false, content: 'A way out.' });
    expect(vendor.requests).toHaveLength(before + 1);
    expect(vendor.requests[before]!.wasAborted()).toBe(false);
  });
});

it('a frame client that comes back gets the result that was finished while it was away', async () => {
  const daemon = await testDaemon({ root: project.root, env });
  const url = `${daemon.url.replace('http', 'ws')}/ws`;
  try {
    const first = await helloFrames(url);
    const before = vendor.requests.length;
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'Finished alone.', when: promise });
    first.call('the-call', 'chat', { prompt: 'What is a door?' });
    await expect.poll(() => vendor.requests.length).toBe(before + 1);
    first.socket.terminate();
    resolve();
    await expect.poll(() => daemon.daemon.load().callsRunning).toBe(0);
    const again = await helloFrames(url, { session: first.ack.session_id! });
    expect(again.ack).toMatchObject({ ok: true, resumed: true });
    expect((await again.result('the-call')).document).toMatchObject({ content: 'Finished alone.' });
    expect(vendor.requests).toHaveLength(before + 1);
    await again.close();
  } finally {
    await daemon.close();
  }
});
