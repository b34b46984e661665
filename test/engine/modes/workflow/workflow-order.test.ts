import { describe, expect, it } from 'vitest';
import { step, workflowRig } from '../../../tools/workflow-rig.ts';

const rig = workflowRig();

describe('the order of steps', () => {
  it('allows a step again that says which one it revises', async () => {
    const first = await rig.call('debug', step(1, 3));
    const id = { continuation_id: first.continuation_id };
    await rig.call('debug', step(2, 3, id));
    const refused = await rig.call('debug', step(2, 3, id));
    expect(refused.error.message).toContain('expected step 3');
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
      next_steps: expect.stringContaining('again'),
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
    const gap = await rig.call('debug', step(4, 4, id));
    expect(gap.error.message).toContain('expected step 3');
  });
});
