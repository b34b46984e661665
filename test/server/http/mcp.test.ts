import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import type { Era } from '../../support/mcp-session.ts';
import { vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

let vendor: FakeVendor;
let project: TempProject;
let daemon: TestDaemon;

beforeAll(async () => {
  [vendor, project] = await Promise.all([startOpenAi(), tempProject({ 'src/door.ts': 'export const door = 1;\n' })]);
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' };
  daemon = await testDaemon({ root: project.root, env });
});

afterAll(async () => {
  await daemon.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose()]);
});

describe.each<Era>(['legacy', 'modern', 'auto'])('a client of the %s era over HTTP', era => {
  it('lists, calls, goes on with a thread, reads resources and prompts', async () => {
    const session = await daemon.connect(era);
    const { tools } = await session.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(daemon.product.host.list().map(({ name }) => name));
    vendor.script({ answer: 'A hinge.' });
    const first = await session.call('chat', { prompt: 'What is it?', absolute_file_paths: ['src/door.ts'] });
    expect(first).toMatchObject({ status: 'continuation_available', content: expect.stringContaining('A hinge.') });
    const id = first.continuation_offer.continuation_id;
    vendor.script({ answer: 'Still a hinge.' });
    const second = await session.call('chat', { prompt: 'Sure?', continuation_id: id });
    expect(second).toMatchObject({ isError: false, content: expect.stringContaining('Still a hinge.') });
    expect(
      vendor.requests
        .at(-1)
        ?.messages.map(({ text }) => text)
        .join(),
    ).toContain('A hinge.');
    const { contents } = await session.client.readResource({ uri: `polylogue://threads/${id}` });
    expect(JSON.stringify(contents)).toContain('Still a hinge.');
    const { prompts } = await session.client.listPrompts();
    expect(prompts.length).toBeGreaterThan(3);
    await session.close();
  });

  it('hears of progress while a call runs', async () => {
    const session = await daemon.connect(era);
    const heard: string[] = [];
    vendor.script({ answer: 'Slowly.', delayMs: 50 });
    const onprogress = ({ message = '' }) => void heard.push(message);
    expect(await session.call('chat', { prompt: 'Tell me.' }, { onprogress })).toMatchObject({ isError: false });
    expect(heard.length).toBeGreaterThan(0);
    await session.close();
  });

  it('hears the answer as it is written, where the call asks for that, with its secrets masked', async () => {
    const session = await daemon.connect(era);
    const token = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`;
    const answer = `Once more: ${'word '.repeat(200)} ${token} and ${'then '.repeat(200)}the end.`;
    const updates: { progress: number; message?: string }[] = [];
    const chat = (_meta?: Record<string, unknown>) => {
      vendor.script({ answer, chunks: 60, chunkDelayMs: 5 });
      updates.length = 0;
      const call = { name: 'chat', arguments: { prompt: 'A story.', model: 'gpt-5' }, ...(_meta && { _meta }) };
      return session.client.callTool(call, { onprogress: update => updates.push(update) });
    };
    const { content } = await chat({ 'polylogue/partialText': true });
    const pieces = updates.flatMap(({ message }) => message ?? []);
    const whole = pieces.join('');
    expect(whole).toMatch(/^Once more: (word )+ .+ and (then )+the end\.$/);
    expect(JSON.stringify(content)).toContain(whole);
    expect(whole).not.toContain(token);
    expect(pieces.length).toBeGreaterThan(2);
    expect(pieces.length).toBeLessThan(60);
    // What is not the answer is told without a message, and every number is larger than the last.
    const steps = updates.map(({ progress }) => progress);
    expect(updates.length).toBeGreaterThan(pieces.length);
    expect(steps).toEqual(steps.toSorted((a, b) => a - b));
    for (const meta of [undefined, { 'polylogue/partialText': 'no' }]) {
      await chat(meta);
      expect(JSON.stringify(updates)).toContain('asking openai:gpt-5');
      expect(JSON.stringify(updates)).not.toContain('word');
    }
    await session.close();
  });

  it('cancels a call down to the vendor’s socket', async () => {
    const session = await daemon.connect(era);
    const before = vendor.requests.length;
    vendor.script({ fault: 'hang_after_headers' });
    const cancel = new AbortController();
    const failed = session.call('chat', { prompt: 'Hang.' }, { signal: cancel.signal }).catch(error => error);
    await expect.poll(() => vendor.requests.length).toBe(before + 1);
    cancel.abort('enough');
    await vendor.requests[before]!.aborted;
    expect(await failed).toBeInstanceOf(Error);
    await session.close();
  });

  it('pays again for a call that it makes again once it has the answer', async () => {
    const session = await daemon.connect(era);
    const before = vendor.requests.length;
    for (const answer of ['Once.', 'Twice.']) {
      vendor.script({ answer });
      expect(await session.call('chat', { prompt: `The same, by ${era}.` })).toMatchObject({
        content: expect.stringContaining(answer),
      });
    }
    expect(vendor.requests.length).toBe(before + 2);
    await session.close();
  });

  it('hears that a thread changed, by whichever client', async () => {
    const session = await daemon.connect(era);
    const { client } = session;
    const first = await session.call('chat', { prompt: `Watch, ${era}.` });
    const id = first.continuation_offer.continuation_id;
    const uri = `polylogue://threads/${id}`;
    const heard: string[] = [];
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => void heard.push(params.uri));
    if (era === 'legacy') await client.subscribeResource({ uri });
    else await client.listen({ resourceSubscriptions: [uri] });
    await daemon.ask('/api/tools/chat', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ prompt: 'A change.', continuation_id: id }),
    });
    await expect.poll(() => heard).toContain(uri);
    await session.close();
  });

  it('is told when a tool fails, and of methods that are not there', async () => {
    const session = await daemon.connect(era);
    expect(await session.call('nonsense')).toMatchObject({ isError: true, error: { code: 'TOOL_NOT_FOUND' } });
    await expect(session.client.getPrompt({ name: 'nonsense' })).rejects.toThrow(/Unknown prompt/);
    await session.close();
  });
});
