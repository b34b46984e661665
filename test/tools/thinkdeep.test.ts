import { describe, expect, it } from 'vitest';
import { testProduct, vendorEnv } from '../support/product.ts';
import { tempProject } from '../support/temp-project.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { counters, step, workflowRig } from './workflow-rig.ts';

const rig = workflowRig();

describe('thinkdeep', () => {
  it('pauses with its own status beside the common one', async () => {
    const reply = await rig.call('thinkdeep', step(1, 2, { focus_areas: 'cost', relevant_files: ['a.ts'] }));
    expect(reply).toMatchObject({
      status: 'pause_for_thinkdeep',
      thinkdeep_required: true,
      thinkdeep_status: counters,
      thinking_status: {
        current_step: 1,
        total_steps: 2,
        files_checked: 0,
        relevant_files: 1,
        thinking_confidence: 'low',
        analysis_focus: ['cost'],
      },
    });
    expect(reply.thinking_complete).toBeUndefined();
    expect(rig.asked()).toBe(0);
  });

  it('shows the expert the files, the background and the focus, whichever step brought them', async () => {
    rig.answers('It does not hold.');
    const background = { problem_context: 'a shop with one database', focus_areas: ['cost', 'locks'] };
    const first = await rig.call('thinkdeep', step(1, 2, { ...background, relevant_files: ['a.ts'] }));
    const reply = await rig.call('thinkdeep', step(2, 2, { continuation_id: first.continuation_id }));
    expect(rig.prompt()).toContain('export const alpha');
    expect(rig.tail()).toContain('a shop with one database');
    expect(rig.tail()).toContain('cost, locks');
    expect(reply).toMatchObject({
      status: 'calling_expert_analysis',
      thinkdeep_complete: true,
      thinking_complete: true,
      completion_message: expect.stringContaining('2 steps'),
      complete_thinkdeep: { steps_taken: 2, initial_request: 'work of step 1' },
      complete_thinking: {
        steps_completed: 2,
        final_confidence: 'low',
        relevant_context: [],
        issues_identified: [],
        files_analyzed: ['a.ts'],
      },
      expert_analysis: { raw_analysis: 'It does not hold.' },
    });
    expect(reply.complete_thinking.key_findings.join('\n')).toMatch(/finding 1[\s\S]*finding 2/);
    expect(reply.thinking_status.analysis_focus).toEqual(['cost', 'locks']);
  });

  it('keeps background and focus for an expert who is shown no history', async () => {
    rig.answers('Fine.');
    const first = await rig.call('thinkdeep', step(1, 2, { problem_context: 'a shop' }));
    await rig.call('thinkdeep', step(2, 2, { continuation_id: first.continuation_id, context: 'none' }));
    expect(rig.prompt()).not.toContain('finding 1');
    expect(rig.tail()).toContain('a shop');
  });

  it('skips the expert at certain', async () => {
    const reply = await rig.call('thinkdeep', step(1, 1, { confidence: 'certain' }));
    expect(reply).toMatchObject({
      status: 'deep_thinking_complete_ready_for_implementation',
      skip_expert_analysis: true,
      expert_analysis: { status: 'skipped_due_to_certain_thinking_confidence' },
      complete_thinkdeep: { confidence_level: 'certain' },
      complete_thinking: { final_confidence: 'certain' },
      thinking_complete: true,
    });
    expect(rig.asked()).toBe(0);
  });

  it('asks for other work at other stages', async () => {
    const first = await rig.call('thinkdeep', step(1, 4));
    const id = { continuation_id: first.continuation_id };
    const low = await rig.call('thinkdeep', step(2, 4, { ...id, confidence: 'low' }));
    const high = await rig.call('thinkdeep', step(3, 4, { ...id, confidence: 'very_high' }));
    const lists = [first, low, high].map(reply => JSON.stringify(reply.required_actions));
    expect(new Set(lists).size).toBe(3);
  });
});

describe('DEFAULT_THINKING_MODE_THINKDEEP', () => {
  it('sets how hard the expert thinks, unless the call says so', async () => {
    const vendor = await startOpenAi();
    const project = await tempProject();
    const env = {
      ...vendorEnv({ openai: vendor.url }),
      DEFAULT_MODEL: 'gpt-5-mini',
      DEFAULT_THINKING_MODE_THINKDEEP: 'low',
    };
    const polylogue = await testProduct({ root: project.root, env });
    const last = { step: 's', step_number: 1, total_steps: 1, next_step_required: false, findings: 'f' };
    const unasked = await polylogue.call('thinkdeep', last);
    const asked = await polylogue.call('thinkdeep', { ...last, thinking_mode: 'medium' });
    const other = await polylogue.call('debug', last);
    expect([unasked, asked, other].map(reply => reply.metadata.effort)).toEqual(['low', 'medium', 'high']);
    await polylogue.close();
    await vendor.close();
    await project.dispose();
  });
});
