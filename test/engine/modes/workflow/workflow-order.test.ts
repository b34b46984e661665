import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stepOf } from '../../../../src/calls/tool.ts';
import { jsonOf } from '../../../../src/core/json.ts';
import { advance, readProgress } from '../../../../src/engine/modes/workflow/step-progress.ts';
import { step, workflowRig } from '../../../tools/workflow-rig.ts';

const rig = workflowRig();

describe('the order of steps', () => {
  it('allows a step again that says which one it revises', async () => {
    const first = await rig.call('debug', step(1, 3));
    const id = { continuation_id: first.continuation_id };
    await rig.call('debug', step(2, 3, id));
    const revised = await rig.call('debug', step(2, 3, { ...id, revises_step: 2, findings: 'rather this' }));
    expect(revised).toMatchObject({
      status: 'pause_for_investigation',
      next_steps: expect.stringContaining('step_number 3'),
    });
    const last = await rig.call('debug', step(3, 3, id));
    expect(last.complete_investigation).toMatchObject({ steps_taken: 3, initial_request: 'work of step 1' });
    expect(last.complete_investigation.work_summary).toContain('(revises step 2)');
  });

  it('does not begin anew when step 1 is revised', async () => {
    const first = await rig.call('debug', step(1, 3, { relevant_files: ['a.ts'] }));
    const id = { continuation_id: first.continuation_id };
    const revised = await rig.call('debug', step(1, 3, { ...id, revises_step: 1 }));
    expect(revised.investigation_status.relevant_files).toBe(1);
    const anew = await rig.call('debug', step(1, 3, id));
    expect(anew.investigation_status.relevant_files).toBe(0);
  });

  it('replaces the hypothesis of a step that is revised', async () => {
    const first = await rig.call('debug', step(1, 2, { hypothesis: 'the cache' }));
    const id = { continuation_id: first.continuation_id };
    await rig.call('debug', step(1, 2, { ...id, revises_step: 1, hypothesis: 'the clock' }));
    const last = await rig.call('debug', step(2, 2, { ...id, hypothesis: 'the clock indeed' }));
    expect(last.investigation_status.hypotheses_formed).toBe(2);
    expect(rig.tail()).not.toContain('the cache');
  });

  it('replaces what a revised step gave: task, files, issues; what it does not name stays', async () => {
    const issue = { severity: 'high', description: 'a leak' };
    const given = {
      step: 'Find the leak',
      relevant_files: ['a.ts'],
      relevant_context: ['alpha'],
      issues_found: [issue],
    };
    const first = await rig.call('debug', step(1, 2, given));
    const id = { continuation_id: first.continuation_id };
    const better = { step: 'Find the crash', relevant_files: ['b.ts'], revises_step: 1 };
    await rig.call('debug', step(1, 2, { ...id, ...better }));
    const last = await rig.call('debug', step(2, 2, id));
    expect(last.complete_investigation).toMatchObject({
      initial_request: 'Find the crash',
      relevant_files: ['b.ts'],
      relevant_context: ['alpha'],
      issues_found: [],
    });
    expect(rig.tail()).toContain('The task, as it was given: Find the crash');
    expect(rig.prompt()).toContain('beta');
    expect(rig.prompt()).not.toContain('export const alpha');
  });

  it('goes on with what a thread of an earlier version had gathered, and revises what came since', () => {
    const { steps: _unknown, ...stored } = advance(undefined, stepOf(step(1, 4, { relevant_files: ['a.ts'] })), 0);
    const later = advance(readProgress(jsonOf(stored), {}), stepOf(step(2, 4, { relevant_files: ['b.ts'] })), 0);
    expect(later.relevantFiles).toEqual(['a.ts', 'b.ts']);
    const revised = advance(later, stepOf(step(3, 4, { relevant_files: ['c.ts'], revises_step: 2 })), 0);
    expect(revised.relevantFiles).toEqual(['a.ts', 'c.ts']);
    const again = advance(revised, stepOf(step(4, 4, { relevant_files: ['d.ts'], revises_step: 3 })), 0);
    expect(again.relevantFiles).toEqual(['a.ts', 'd.ts']);
    const last = advance(again, stepOf(step(5, 5, { relevant_files: ['e.ts'], revises_step: 2 })), 0);
    expect(last.relevantFiles).toEqual(['a.ts', 'e.ts']);
  });

  it('takes the last step again with the files that the expert asked for', async () => {
    rig.answers(
      '{"status":"files_required_to_continue","mandatory_instructions":"b","files_needed":["b.ts"]}',
      'Now I see.',
    );
    const first = await rig.call('debug', step(1, 2, { relevant_files: ['a.ts'] }));
    const id = { continuation_id: first.continuation_id };
    const wanting = await rig.call('debug', step(2, 2, id));
    expect(wanting).toMatchObject({
      status: 'files_required_to_continue',
      next_steps: expect.stringContaining('Resend this step'),
    });
    const reply = await rig.call('debug', step(2, 2, { ...id, relevant_files: ['b.ts'] }));
    expect(reply).toMatchObject({
      status: 'calling_expert_analysis',
      complete_investigation: { steps_taken: 2, initial_request: 'work of step 1', relevant_files: ['a.ts', 'b.ts'] },
    });
    expect(rig.prompt()).toContain('export const beta');
  });

  it('may go on after the expert, one step further', async () => {
    const first = await rig.call('debug', step(1, 1));
    const id = { continuation_id: first.continuation_id };
    const more = await rig.call('debug', step(2, 3, id));
    expect(more.status).toBe('pause_for_investigation');
    const gap = await rig.call('debug', step(4, 4, { ...id, relevant_files: ['a.ts'] }));
    expect(gap.metadata.warnings).toEqual([expect.stringContaining('followed step 2')]);
    expect(gap.complete_investigation).toMatchObject({ steps_taken: 4, relevant_files: ['a.ts'] });
  });

  it('asks the expert once for a step that is repeated, and anew when something changed', async () => {
    rig.answers('FIRST VIEW', 'SECOND VIEW', 'THIRD VIEW', 'FOURTH VIEW', 'FIFTH VIEW', 'SIXTH VIEW');
    const first = await rig.call('debug', step(1, 2, { relevant_files: ['a.ts'] }));
    const last = step(2, 2, { continuation_id: first.continuation_id, use_assistant_model: true });
    await rig.call('debug', last);
    const repeated = await rig.call('debug', last);
    expect(repeated).toMatchObject({
      status: 'calling_expert_analysis',
      expert_analysis: { raw_analysis: 'FIRST VIEW' },
      complete_investigation: { relevant_files: ['a.ts'] },
      metadata: { model_used: 'gpt-5-mini', warnings: [expect.stringContaining('no model was asked')] },
    });
    expect(rig.asked()).toBe(1);
    const known = await rig.call('debug', { ...last, findings: 'new evidence' });
    expect(known.expert_analysis.raw_analysis).toBe('SECOND VIEW');
    const onPurpose = await rig.call('debug', { ...last, findings: 'new evidence', revises_step: 2 });
    expect(onPurpose.expert_analysis.raw_analysis).toBe('THIRD VIEW');
    const again = await rig.call('debug', { ...last, findings: 'newest', relevant_files: ['later.ts'] });
    expect(again.expert_analysis.raw_analysis).toBe('FOURTH VIEW');
    await writeFile(join(rig.root(), 'a.ts'), 'export const alpha = 22;\n');
    const edited = await rig.call('debug', { ...last, findings: 'newest', relevant_files: ['later.ts'] });
    expect(edited.expert_analysis.raw_analysis).toBe('FIFTH VIEW');
    await writeFile(join(rig.root(), 'later.ts'), 'export const later = 1;\n');
    const made = await rig.call('debug', { ...last, findings: 'newest', relevant_files: ['later.ts'] });
    expect(made.expert_analysis.raw_analysis).toBe('SIXTH VIEW');
  });

  it.each([
    ['debug', 'investigation_status'],
    ['thinkdeep', 'thinkdeep_status'],
    ['secaudit', 'security_audit_status'],
  ])('loses nothing of %s when a step comes twice or its run is over', async (tool, status) => {
    const first = await rig.call(tool, step(1, 3, { relevant_files: ['a.ts'], hypothesis: 'the cache' }));
    const id = { continuation_id: first.continuation_id };
    await rig.call(tool, step(2, 3, { ...id, relevant_files: ['b.ts'], hypothesis: 'the clock' }));
    const twice = await rig.call(tool, step(2, 5, { ...id, files_checked: ['a.ts'] }));
    expect(twice).toMatchObject({ isError: false, total_steps: 5, [status]: { files_checked: 1, relevant_files: 2 } });
    expect(twice.metadata.warnings).toEqual([expect.stringContaining('had come before')]);
    const sure = await rig.call(tool, step(3, 3, { ...id, confidence: 'certain', use_assistant_model: true }));
    expect(sure.skip_expert_analysis).toBe(true);
    const after = await rig.call(tool, step(4, 4, { ...id, confidence: 'high' }));
    expect(after[status]).toMatchObject({ relevant_files: 2 });
    expect(rig.tail()).toMatch(/the cache[\s\S]*the clock/);
  });

  it.each(['debug', 'analyze', 'planner', 'testgen'])('takes a later step of %s without its thread', async tool => {
    const reply = await rig.call(tool, step(2, 3, { step: 'go on', relevant_files: ['a.ts'] }));
    expect(reply).toMatchObject({
      isError: false,
      step_number: 2,
      next_steps: expect.stringContaining('step_number 3'),
    });
    expect(JSON.stringify(reply.metadata.warnings)).toContain('continuation_id');
    const next = await rig.call(tool, step(3, 4, { step: 'on', continuation_id: reply.continuation_id }));
    expect(next.step_number).toBe(3);
    expect(JSON.stringify(next.metadata.warnings ?? [])).not.toContain('first of');
  });
});
