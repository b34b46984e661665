import { readFile, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ToolReply, ToolRequest, UserAnswer } from '../../../../src/core/tool-host.ts';
import { manualClock } from '../../../support/clock.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../../support/product.ts';
import { type TempProject, tempProject } from '../../../support/temp-project.ts';
import type { FakeVendor } from '../../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../../support/vendors/start-anthropic.ts';

const model = 'anthropic:claude-sonnet-4-5';
const writing = (path: string) => ({ calls: [{ name: 'write_file', args: { path, content: 'after\n' } }] });
const allow: UserAnswer = { action: 'accept', content: { decision: 'allow' } };
const clock = manualClock();

let project: TempProject;
let vendor: FakeVendor;
let polylogue: TestProduct;
beforeEach(async () => {
  project = await tempProject({ 'a.txt': 'before\n' });
  vendor = await startAnthropic();
});
afterEach(async () => {
  await polylogue.close();
  expect(vendor.violations).toEqual([]);
  await vendor.close();
  await project.dispose();
});

async function start(env: Record<string, string> = { AGENT_APPROVE: 'all' }) {
  const own = { ...vendorEnv({ anthropic: vendor.url }), POLYLOGUE_TOOLSETS: 'core,agent,ops', ...env };
  polylogue = await testProduct({ root: project.root, env: own, clock });
}

/** A call of a client that can be asked between two calls. */
async function ask(args: Document, answers: [string, UserAnswer][] = [], more: Partial<ToolRequest> = {}) {
  const principal = { owner: 'local', root: polylogue.product.root };
  const request = { name: 'agent', arguments: { model, ...args }, principal, answers: new Map(answers), ...more };
  return polylogue.product.host.call(request, more.onProgress ? stop.signal : new AbortController().signal);
}
let stop = new AbortController();

const agent = (task: string, more: Document = {}) => polylogue.call('agent', { task, model, ...more });
const chat = (prompt: string, id: string) => polylogue.call('chat', { prompt, model, continuation_id: id });
const idOf = ({ continuation_offer: offer }: Document): string => offer.continuation_id;
const keyOf = ({ questions }: ToolReply) => questions?.[0]?.key ?? 'none';
const last = () =>
  vendor.requests
    .at(-1)!
    .messages.map(({ text }) => text)
    .join('\n');
const newest = async () => (await polylogue.call('threads', { action: 'list' })).threads[0].continuation_id;
const read = (id: string) => polylogue.call('threads', { action: 'read', continuation_id: id });
/** Role and status of each turn, oldest first. */
const turnsOf = async (id: string) =>
  (await read(id)).transcript.map(({ role, status }: Document) => `${role} ${status}`);

describe('one conversation through the agent and the other tools', () => {
  it('goes on with what was said before, and is told of what the run did and wrote', async () => {
    await start();
    vendor.script({ answer: 'Blue is best.' }, writing('a.txt'), { answer: 'It is painted.' }, { answer: 'I know.' });
    const first = await polylogue.call('chat', { prompt: 'Which colour?', model, absolute_file_paths: ['a.txt'] });
    const run = await agent('Paint it.', { continuation_id: idOf(first), files: ['a.txt'] });
    expect(run).toMatchObject({ content: 'It is painted.', status: 'success', stop_reason: 'done' });
    expect(idOf(run)).toBe(idOf(first));
    const began = vendor.requests[1]!.messages.map(({ text }) => text).join('\n');
    expect(began).toMatch(/Which colour\?[\s\S]*Blue is best\.[\s\S]*Paint it\.[\s\S]*FILE UNCHANGED/);
    expect(began.match(/│ ?before/g)).toHaveLength(1);
    expect(last()).toContain('Blue is best.');
    const reply = await chat('What was done?', idOf(run));
    expect(last()).toMatch(/Paint it\.[\s\S]*It is painted\.[\s\S]*a\.txt[\s\S]*the answer above: agent by anthropic/);
    // The file is another now, by the hand of the agent.
    expect(last()).toMatch(/after[\s\S]*What was done\?|What was done\?[\s\S]*after/);
    expect(idOf(reply)).toBe(idOf(first));
    expect(reply.metadata.thread_total.tokens).toBeGreaterThan(run.metadata.usage.input);
  });

  it('begins a thread where none is named, of its owner alone', async () => {
    await start();
    vendor.script({ answer: 'Looked.' }, { answer: 'And again.' });
    const run = await agent('Look around.');
    const { threads } = await polylogue.call('threads', { action: 'list' });
    expect(threads[0]).toMatchObject({ continuation_id: idOf(run), title: 'Look around.' });
    const theirs = { owner: 'other' };
    const args = { task: 'And?', model, continuation_id: idOf(run) };
    expect(await polylogue.call('agent', args, theirs)).toMatchObject({ error: { code: 'THREAD_NOT_FOUND' } });
    await clock.advance(721 * 3_600_000);
    expect(await polylogue.call('agent', args)).toMatchObject({ error: { code: 'THREAD_EXPIRED' } });
    expect(vendor.requests).toHaveLength(1);
  });

  it('masks a secret the same in both, and writes it back', async () => {
    await start();
    const token = `ghp_${'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'}`;
    await writeFile(project.path('a.txt'), `token = ${token}\n`);
    const seen = () => /\[masked:\w+:[0-9a-f]{8}\]/.exec(last())?.[0];
    vendor.script(
      { answer: 'Seen.' },
      { calls: [{ name: 'read_file', args: { path: 'a.txt' } }] },
      { calls: () => [{ name: 'write_file', args: { path: 'a.txt', content: `new = ${before}\n` } }] },
      { answer: 'Done.' },
    );
    const first = await polylogue.call('chat', { prompt: 'See.', model, absolute_file_paths: ['a.txt'] });
    const before = seen();
    const run = await agent('Rename it.', { continuation_id: idOf(first) });
    expect(run.tool_calls.map(({ outcome }: Document) => outcome)).toEqual(['ok', 'ok']);
    expect(await readFile(project.path('a.txt'), 'utf8')).toBe(`new = ${token}\n`);
    const sent = JSON.stringify(vendor.requests.map(({ body }) => body));
    expect(sent).not.toContain(token);
    expect(new Set(sent.match(/\[masked:\w+:[0-9a-f]{8}\]/g))).toEqual(new Set([before]));
  });
});

describe('the thread of a run', () => {
  it('is free while the user is asked; what others said then stands before the turn of the run', async () => {
    await start({});
    vendor.script(writing('a.txt'), { answer: 'Meanwhile.' }, { answer: 'Done.' }, { answer: 'Last.' });
    const asked = await ask({ task: 'Change it.' });
    const id = await newest();
    expect(asked.document.continuation_id).toBe(id);
    expect(await turnsOf(id)).toEqual(['user pending']);
    expect((await chat('Are you there?', id)).content).toBe('Meanwhile.');
    // What is not over stands in no prompt.
    expect(last()).not.toContain('Change it.');
    const reply = await ask({ run_id: asked.document.run_id }, [[keyOf(asked), allow]]);
    expect(reply.document).toMatchObject({ content: 'Done.', continuation_offer: { continuation_id: id } });
    const done = ['user done', 'assistant done'];
    expect(await turnsOf(id)).toEqual(['user interrupted', ...done, ...done]);
    await chat('And?', id);
    expect(last()).toMatch(/Are you there\?[\s\S]*Meanwhile\.[\s\S]*Change it\.[\s\S]*Done\.[\s\S]*And\?/);
    expect(last().split('Change it.').length).toBe(2);
  });

  it('has one exchange of a run that was asked and refused, and that nobody disturbed', async () => {
    await start({});
    vendor.script(writing('a.txt'), { answer: 'Nothing was done.' });
    const asked = await ask({ task: 'Change it.' });
    await ask({ run_id: asked.document.run_id }, [[keyOf(asked), { action: 'decline' }]]);
    expect(await turnsOf(await newest())).toEqual(['user done', 'assistant done']);
  });

  it('says of a run that failed, was cancelled, or waited too long that it did not end', async () => {
    await start({});
    vendor.script({ fault: 'status', status: 400 });
    const failed = await agent('Fail.');
    expect(failed).toMatchObject({ isError: true, continuation_id: idOf(failed) });
    expect(await turnsOf(idOf(failed))).toEqual(['user failed']);
    vendor.script(writing('a.txt'));
    await ask({ task: 'Wait.', continuation_id: idOf(failed) });
    expect(await turnsOf(idOf(failed))).toEqual(['user failed', 'user pending']);
    await clock.advance(600_001);
    await expect.poll(() => turnsOf(idOf(failed)), { timeout: 15_000 }).toEqual(['user failed', 'user interrupted']);
    vendor.script({ fault: 'hang_before_headers' });
    stop = new AbortController();
    const cut = ask({ task: 'Hang.', continuation_id: idOf(failed) }, [], { onProgress() {} });
    await expect.poll(() => vendor.requests.length, { timeout: 15_000 }).toBe(3);
    stop.abort();
    expect((await cut).document).toMatchObject({ error: { code: 'CANCELLED' } });
    expect(await turnsOf(idOf(failed))).toEqual(['user failed', 'user interrupted', 'user interrupted']);
  });
});
