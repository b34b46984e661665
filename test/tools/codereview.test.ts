import { describe, expect, it } from 'vitest';
import { counters, step, workflowRig } from './workflow-rig.ts';

const rig = workflowRig();
const files = { relevant_files: ['a.ts'] };

describe('codereview', () => {
  it('counts the issues by severity', async () => {
    const issues_found = [
      { severity: 'high', description: 'x' },
      { severity: 'HIGH', description: 'y' },
      'unrated one',
    ];
    const reply = await rig.call('codereview', step(1, 2, { ...files, issues_found }));
    expect(reply).toMatchObject({
      status: 'pause_for_code_review',
      codereview_required: true,
      code_review_status: {
        ...counters,
        issues_by_severity: { high: 2, unrated: 1 },
        review_validation_type: 'external',
      },
    });
  });

  it('is not confused by a severity that names a part of every object', async () => {
    const issues_found = [{ severity: 'constructor', description: 'x' }];
    const reply = await rig.call('codereview', step(1, 2, { ...files, issues_found }));
    expect(reply.code_review_status.issues_by_severity).toEqual({ constructor: 1 });
  });

  it('tells the expert kind, focus, standards and the lowest severity to report', async () => {
    rig.answers('[HIGH] a.ts:1 – alpha');
    const wanted = { review_type: 'security', focus_on: 'tokens', standards: 'MISRA', severity_filter: 'high' };
    const first = await rig.call('codereview', step(1, 2, { ...files, ...wanted }));
    const reply = await rig.call('codereview', step(2, 2, { continuation_id: first.continuation_id }));
    for (const text of ['Kind of review: security', 'Focus on: tokens', 'MISRA', 'severity HIGH and above'])
      expect(rig.tail()).toContain(text);
    expect(rig.prompt()).toContain('export const alpha');
    expect(reply).toMatchObject({
      status: 'calling_expert_analysis',
      code_review_complete: true,
      complete_code_review: { steps_taken: 2 },
      expert_analysis: { raw_analysis: '[HIGH] a.ts:1 – alpha' },
      important_considerations: expect.any(String),
    });
  });

  it('adds a focus to the kind of review that an earlier step chose', async () => {
    const first = await rig.call('codereview', step(1, 2, { ...files, review_type: 'performance' }));
    await rig.call('codereview', step(2, 2, { continuation_id: first.continuation_id, focus_on: 'loops' }));
    expect(rig.tail()).toMatch(/Kind of review: performance\nFocus on: loops/);
    expect(rig.prompt()).not.toContain('Kind of review: full');
  });

  it('asks nobody when the review is internal, also when only an earlier step said so', async () => {
    const first = await rig.call('codereview', step(1, 2, { ...files, review_validation_type: 'internal' }));
    const reply = await rig.call('codereview', step(2, 2, { continuation_id: first.continuation_id }));
    expect(reply).toMatchObject({
      status: 'code_review_complete_ready_for_implementation',
      skip_expert_analysis: true,
      expert_analysis: { status: 'skipped_due_to_internal_analysis_type' },
      complete_code_review: { confidence_level: 'certain', final_analysis: 'finding 2' },
      code_review_status: { review_validation_type: 'internal' },
    });
    expect(rig.asked()).toBe(0);
  });

  it('is external whatever the confidence', async () => {
    rig.answers('ok');
    const reply = await rig.call('codereview', step(1, 1, { ...files, confidence: 'certain' }));
    expect(reply.status).toBe('calling_expert_analysis');
  });

  it('promotes the wish for a smaller scope, and takes the step again with it', async () => {
    rig.answers('{"status":"focused_review_required","reason":"too much","suggestion":"auth first"}', 'done');
    const first = await rig.call('codereview', step(1, 1, files));
    expect(first).toMatchObject({ status: 'focused_review_required', code_review_complete: true });
    expect(JSON.parse(first.content).suggestion).toBe('auth first');
    expect(first.expert_analysis).toBeUndefined();
    const again = await rig.call('codereview', step(1, 1, { ...files, continuation_id: first.continuation_id }));
    expect(again.status).toBe('calling_expert_analysis');
  });

  it('needs the files in its first step', async () => {
    const reply = await rig.call('codereview', step(1, 2));
    expect(reply.error).toMatchObject({ code: 'MISSING_PARAMETER', validation_errors: [{ field: 'relevant_files' }] });
  });

  it('wants a short pass where the thread knows the code', async () => {
    const first = await rig.call('codereview', step(1, 2, files));
    const { continuation_id } = first;
    const other = await rig.call('codereview', step(1, 2, { ...files, continuation_id }));
    expect(other.required_actions).toEqual(first.required_actions);
    await rig.call('chat', { prompt: 'Look.', absolute_file_paths: files.relevant_files, continuation_id });
    const again = await rig.call('codereview', step(1, 2, { ...files, continuation_id }));
    expect(again.required_actions.length).toBeLessThan(first.required_actions.length);
  });
});
