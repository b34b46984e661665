import { describe, expect, it } from 'vitest';
import { counters, step, workflowRig } from './workflow-rig.ts';

const rig = workflowRig();
const files = { relevant_files: ['a.ts'] };

const plan = {
  status: 'refactor_analysis_complete',
  refactor_opportunities: [{ id: 'refactor-001', type: 'decompose', severity: 'high', file: 'a.ts' }],
  priority_sequence: ['refactor-001'],
  more_refactor_required: false,
};

describe('refactor', () => {
  it('counts the opportunities by type over all steps', async () => {
    const issues = (...types: (string | undefined)[]) => ({
      issues_found: types.map((type, index) => ({ type, severity: 'low', description: `${type} ${index}` })),
    });
    const first = await rig.call('refactor', step(1, 3, { ...files, ...issues('codesmells', 'decompose') }));
    const { continuation_id } = first;
    const more = issues('CodeSmells', undefined, '__proto__');
    const reply = await rig.call('refactor', step(2, 3, { ...more, confidence: 'partial', continuation_id }));
    expect(reply.refactoring_status).toEqual({
      ...counters,
      issues_found: 5,
      opportunities_by_type: JSON.parse('{"codesmells":2,"decompose":1,"untyped":1,"__proto__":1}'),
      refactor_confidence: 'partial',
    });
  });

  it('is at incomplete until the caller says otherwise, and asks for other work at each confidence', async () => {
    const first = await rig.call('refactor', step(1, 4, files));
    const { continuation_id } = first;
    const second = await rig.call('refactor', step(2, 4, { continuation_id }));
    expect(second.refactoring_status).toMatchObject({
      current_confidence: 'incomplete',
      refactor_confidence: 'incomplete',
    });
    const third = await rig.call('refactor', step(3, 4, { continuation_id, confidence: 'partial' }));
    expect(new Set([first, second, third].map(reply => JSON.stringify(reply.required_actions))).size).toBe(3);
  });

  it('shows the expert kind, focus, and the text of the examples of style that the first step named', async () => {
    rig.answers(JSON.stringify(plan));
    const wishes = { refactor_type: 'decompose', focus_areas: ['size', 'names'], style_guide_examples: ['b.ts'] };
    const first = await rig.call('refactor', step(1, 2, { ...files, ...wishes }));
    const reply = await rig.call('refactor', step(2, 2, { continuation_id: first.continuation_id }));
    for (const text of ['Kind of refactoring: decompose', 'size, names', 'style to follow, not to be refactored: b.ts'])
      expect(rig.tail()).toContain(text);
    expect(rig.prompt()).toContain('export const alpha');
    expect(rig.prompt()).toContain('export const beta');
    expect(reply).toMatchObject({
      status: 'calling_expert_analysis',
      expert_analysis: plan,
      complete_refactoring: { relevant_files: ['a.ts'] },
      metadata: { files: { embedded: [expect.stringMatching(/a\.ts$/), expect.stringMatching(/b\.ts$/)] } },
    });
  });

  it('looks for code smells unless told otherwise', async () => {
    await rig.call('refactor', step(1, 1, files));
    expect(rig.tail()).toContain('Kind of refactoring: codesmells');
  });

  it('skips the expert at complete, whatever hosts fill in', async () => {
    const sure = { ...files, confidence: 'complete' };
    const skipped = await rig.call('refactor', step(1, 1, sure));
    expect(skipped.complete_refactoring).toMatchObject({ confidence_level: 'complete', final_analysis: 'finding 1' });
    expect(rig.asked()).toBe(0);
    const filledIn = await rig.call('refactor', step(1, 1, { ...sure, use_assistant_model: true }));
    expect(filledIn.skip_expert_analysis).toBe(true);
    const checked = await rig.call('refactor', step(1, 1, { ...sure, confidence: 'partial' }));
    expect(checked.status).toBe('calling_expert_analysis');
  });

  it.each([
    ['a confidence of other tools', { confidence: 'certain' }, 'confidence', 'complete'],
    ['an unknown kind', { refactor_type: 'beautify' }, 'refactor_type', 'decompose'],
  ])('answers %s with what is allowed', async (_what, wrong, field, allowed) => {
    const reply = await rig.call('refactor', step(1, 2, { ...files, ...wrong }));
    const told = { field, allowed: expect.arrayContaining([allowed]) };
    expect(reply.error).toMatchObject({ code: 'INVALID_INPUT_FORMAT', validation_errors: [told] });
  });

  it('needs files in its first step, and hands on that they are too many', async () => {
    const bare = await rig.call('refactor', step(1, 2));
    expect(bare.error).toMatchObject({ code: 'MISSING_PARAMETER', validation_errors: [{ field: 'relevant_files' }] });
    rig.answers('{"status":"focused_review_required","reason":"too much","suggestion":"one module"}');
    const reply = await rig.call('refactor', step(1, 1, files));
    expect(reply).toMatchObject({ status: 'focused_review_required', refactoring_complete: true });
  });
});
