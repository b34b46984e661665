import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { renderReply } from '../../src/calls/format-reply.ts';
import { testProduct } from '../support/product.ts';
import { step, workflowRig } from './workflow-rig.ts';

const rig = workflowRig();

/** What each step of a run is told to do. */
async function guides(tool: string, total: number, args: Record<string, unknown>): Promise<string[]> {
  const told: string[] = [];
  let continuation_id: string | undefined;
  for (let number = 1; number <= total; number++) {
    const more = { relevant_files: ['a.ts'], ...args, continuation_id, next_step_required: true };
    const reply = await rig.call(tool, step(number, total, more));
    ({ continuation_id } = reply);
    told.push(JSON.stringify(reply.required_actions));
  }
  return told;
}

describe('the guidance of steps', () => {
  it('of secaudit follows the focus, and leaves no topic out of a short run', async () => {
    const [, dependencies] = await guides('secaudit', 6, { audit_focus: 'dependencies' });
    expect(dependencies).toContain('Check dependencies');
    const [, signIn, rest] = await guides('secaudit', 3, {});
    expect(signIn).toContain('prove who they are');
    for (const topic of ['OWASP', 'dependencies', 'logged', 'frameworks', 'next_step_required'])
      expect(rest).toContain(topic);
  });

  it('of analyze follows the kind of analysis', async () => {
    for (const [kind, word] of [
      ['performance', 'hot path'],
      ['security', 'entry point'],
      ['quality', 'untested branches'],
      ['general', 'module boundaries'],
    ])
      expect((await guides('analyze', 3, { analysis_type: kind }))[1]).toContain(word);
  });

  it.each(['codereview', 'tracer', 'planner'])('of %s ends when its last planned step has come', async tool => {
    const own = tool === 'tracer' ? { trace_mode: 'dependencies', target_description: 'alpha' } : {};
    const told = await guides(tool, 4, own);
    expect(told.at(-1)).toContain('next_step_required to false');
    for (const before of told.slice(0, -1)) expect(before).not.toContain('next_step_required');
    expect(new Set(told).size).toBeGreaterThanOrEqual(tool === 'planner' ? 2 : 4);
  });

  it('says what to do where a step brought nothing new, and after the expert', async () => {
    const same = { findings: 'same', relevant_files: ['a.ts'] };
    const first = await rig.call('debug', step(1, 4, same));
    const { continuation_id } = first;
    const second = await rig.call('debug', step(2, 4, { ...same, continuation_id }));
    expect(second.next_steps).toContain('added nothing new');
    const third = await rig.call('debug', step(3, 4, { continuation_id, next_step_required: false }));
    expect(third.next_steps).toContain('run the reproduction');
    expect(first.next_steps).not.toContain('added nothing new');
  });

  it('says planner’s questions twice, not three times', async () => {
    const reply = await rig.call('planner', { ...step(1, 5), findings: undefined });
    expect(JSON.stringify(reply).split(reply.required_thinking[0]).length - 1).toBe(2);
  });

  it('does not say a one-shot thought again and again', async () => {
    rig.answers('Yes.');
    const reply = await rig.call('thinkdeep', { prompt: 'Is the CACHE-THOUGHT sound?' });
    expect(JSON.stringify(reply).split('CACHE-THOUGHT').length - 1).toBeLessThanOrEqual(2);
  });
});

describe('a reply as a page', () => {
  it('begins with the content', async () => {
    rig.answers('THE EXPERT VIEW');
    const { isError, ...document } = await rig.call('thinkdeep', { prompt: 'Sound?' });
    const { text } = renderReply({ isError, document }, 'markdown');
    expect(text.indexOf('THE EXPERT VIEW')).toBeLessThan(40);
    const pause = await rig.call('debug', step(1, 3));
    const page = renderReply({ isError: false, document: pause }, 'markdown').text;
    expect(page.indexOf('Search the code')).toBeLessThan(40);
  });
});

describe('listmodels', () => {
  it('shows what every word of its filter is in', async () => {
    const { content } = await rig.call('listmodels', { filter: 'OPENAI mini' });
    const rows = content.split('\n').filter((line: string) => line.startsWith('- '));
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows) expect(row).toContain('mini');
    const none = await rig.call('listmodels', { provider: 'no-such-vendor' });
    expect(none).toMatchObject({ isError: false, content: expect.stringContaining('without filter') });
    expect((await rig.call('listmodels', { filter: '' })).content).toContain('Not configured');
  });
});

describe('a project that nobody named', () => {
  it('is told of at the first step, as are files that are not there', async () => {
    const polylogue = await testProduct({ root: rig.root(), env: { PROJECT_ROOT: '' } });
    const bare = await polylogue.call('debug', step(1, 3));
    await polylogue.close();
    expect(JSON.stringify(bare.metadata.warnings)).toContain('POLYLOGUE_ROOTS');
    await writeFile(join(rig.root(), 'c.ts'), '');
    const named = await rig.call('debug', step(1, 3, { relevant_files: ['c.ts', 'gone.ts'] }));
    expect(named.files_not_found).toEqual(['gone.ts']);
    expect(named.metadata.warnings).toBeUndefined();
  });
});
