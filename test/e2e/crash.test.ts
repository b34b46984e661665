import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { clockAhead, type McpSession, startSession } from '../support/mcp-session.ts';
import { vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { BrokenStep, FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

let vendor: FakeVendor;
let project: TempProject;
let home: TempProject;
let sessions: McpSession[];

/** A dead server holds its thread for ten seconds; a clock that is ahead spares a test the wait. */
async function start(nodeArgs: string[] = []): Promise<McpSession> {
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' };
  const session = await startSession({ root: project.root, home: home.root, env, nodeArgs });
  sessions.push(session);
  return session;
}

beforeEach(async () => {
  sessions = [];
  [vendor, home] = await Promise.all([startOpenAi(), tempProject()]);
  project = await tempProject({ 'notes.md': 'The notes have one line.\n' });
});

afterEach(async () => {
  for (const session of sessions) await session.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose(), home.dispose()]);
});

interface StoredTurn {
  role: string;
  content: string;
  status: string;
}
async function turnsOf(session: McpSession, continuation_id: string): Promise<string[]> {
  const { transcript } = await session.call('threads', { action: 'read', continuation_id });
  return transcript.map(({ role, content, status }: StoredTurn) => `${role} ${status}: ${content}`);
}

const hangs: BrokenStep[] = [{ fault: 'hang_before_headers' }, { fault: 'hang_mid_stream' }];

describe('a server that is killed while a model is asked', () => {
  it.each(hangs)('loses nothing that was acknowledged, and the thread goes on ($fault)', async step => {
    const first = await start();
    vendor.script({ answer: 'One.' }, { answer: 'Two.' }, step);
    const opening = { prompt: 'First?', absolute_file_paths: ['notes.md'] };
    const { continuation_offer } = await first.call('chat', opening);
    const { continuation_id } = continuation_offer;
    await first.call('chat', { prompt: 'Second?', continuation_id });
    const lost = first.call('chat', { prompt: 'Third?', continuation_id }).catch(error => error);
    await expect.poll(() => vendor.requests.length).toBe(3);
    await first.kill();
    expect(await lost).toBeInstanceOf(Error);
    await vendor.requests[2]!.aborted;

    const next = await start(clockAhead(15_000));
    const acknowledged = ['user done: First?', 'assistant done: One.', 'user done: Second?', 'assistant done: Two.'];
    expect((await turnsOf(next, continuation_id)).slice(0, 4)).toEqual(acknowledged);

    vendor.script({ answer: 'Four.' });
    const reply = await next.call('chat', { prompt: 'Fourth?', continuation_id: 'last' });
    expect(reply).toMatchObject({ isError: false, content: 'Four.', continuation_offer: { continuation_id } });
    expect(await turnsOf(next, continuation_id)).toEqual([
      ...acknowledged,
      'user interrupted: Third?',
      'user done: Fourth?',
      'assistant done: Four.',
    ]);

    const [, second, , fourth] = vendor.requests;
    expect(fourth!.canonical.startsWith(second!.canonical)).toBe(true);
    expect(fourth!.canonical).toContain('Two.');
    expect(fourth!.canonical).not.toContain('Third?');
    expect(fourth!.canonical.split('The notes have one line.')).toHaveLength(2);
    const sent = await next.call('threads', { action: 'sent', continuation_id });
    expect(sent.sent.map(({ to }: { to: string }) => to)).toEqual([
      'openai:gpt-5-mini',
      'openai:gpt-5-mini',
      'interrupted',
      'openai:gpt-5-mini',
    ]);
  });

  it('does not hold up its thread: the lease of a dead process falls at once', async () => {
    const first = await start();
    vendor.script({ answer: 'One.' }, { fault: 'hang_after_headers' });
    const { continuation_offer } = await first.call('chat', { prompt: 'First?' });
    const { continuation_id } = continuation_offer;
    first.call('chat', { prompt: 'Second?', continuation_id }).catch(() => {});
    await expect.poll(() => vendor.requests.length).toBe(2);
    await first.kill();

    const next = await start();
    const began = performance.now();
    const reply = await next.call('chat', { prompt: 'Third?', continuation_id });
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(reply).toMatchObject({ isError: false, continuation_offer: { continuation_id } });
  });

  it('keeps the steps of a workflow: the last one is sent again and reaches the expert', async () => {
    const first = await start();
    const step = { total_steps: 2, relevant_files: ['notes.md'] };
    const pause = { ...step, step: 'Read the notes.', step_number: 1, next_step_required: true, findings: 'ONE LINE.' };
    const { continuation_id } = await first.call('analyze', pause);
    const last = { ...step, step: 'Done.', step_number: 2, next_step_required: false, findings: 'ENOUGH.' };
    vendor.script({ fault: 'hang_after_headers' });
    const lost = first.call('analyze', { ...last, continuation_id }).catch(error => error);
    await expect.poll(() => vendor.requests.length).toBe(1);
    await first.kill();
    expect(await lost).toBeInstanceOf(Error);

    const next = await start(clockAhead(15_000));
    vendor.script({ answer: 'Agreed.' });
    // Nobody knows what the vendor said: that is told before he is asked, and paid, a second time.
    const told = await next.call('analyze', { ...last, continuation_id });
    expect(told).toMatchObject({ status: 'interrupted', isError: true, continuation_id });
    expect(vendor.requests).toHaveLength(1);
    const reply = await next.call('analyze', { ...last, continuation_id });
    expect(reply).toMatchObject({ isError: false, analysis_complete: true, continuation_id });
    expect(reply.expert_analysis.raw_analysis).toBe('Agreed.');
    expect(reply.complete_analysis.work_summary).toContain('ONE LINE.');
    expect(await turnsOf(next, continuation_id)).toEqual([
      expect.stringMatching(/^user done: Step 1 of 2/),
      expect.stringMatching(/^user interrupted: Step 2 of 2/),
      expect.stringMatching(/^user done: Step 2 of 2/),
      'assistant done: Agreed.',
    ]);
    expect(vendor.requests[1]!.canonical.split('ENOUGH.')).toHaveLength(2);
  });
});
