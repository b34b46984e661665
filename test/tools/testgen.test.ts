import { describe, expect, it } from 'vitest';
import { step, workflowRig } from './workflow-rig.ts';

const rig = workflowRig();
const files = { relevant_files: ['a.ts'] };

describe('testgen', () => {
  it('counts the scenarios of all steps', async () => {
    const first = await rig.call('testgen', step(1, 3, { ...files, relevant_context: ['empty', 'huge'] }));
    const { continuation_id } = first;
    const more = { relevant_context: ['huge', 'negative'], confidence: 'medium' };
    const reply = await rig.call('testgen', step(2, 3, { ...more, continuation_id }));
    expect(reply.test_generation_status).toMatchObject({ test_scenarios_identified: 3, analysis_confidence: 'medium' });
  });

  it('has other work to do in the first step and at each stage of confidence', async () => {
    const first = await rig.call('testgen', step(1, 5, files));
    const id = { continuation_id: first.continuation_id };
    const replies = [first];
    for (const [index, confidence] of ['low', 'high', 'almost_certain'].entries())
      replies.push(await rig.call('testgen', step(index + 2, 5, { ...id, confidence })));
    expect(new Set(replies.map(reply => JSON.stringify(reply.required_actions))).size).toBe(4);
  });

  it('hands over the expert’s tests as they are, with the word that more are to come', async () => {
    const tests = '## a.test.ts\n```ts\nit("works")\n```\n{"status": "more_tests_required", "pending_tests": "b"}';
    rig.answers(tests);
    const first = await rig.call('testgen', step(1, 2, { ...files, relevant_context: ['the empty list'] }));
    const reply = await rig.call('testgen', step(2, 2, { continuation_id: first.continuation_id }));
    expect(reply).toMatchObject({
      status: 'calling_expert_analysis',
      test_generation_complete: true,
      complete_test_generation: { relevant_context: ['the empty list'], steps_taken: 2 },
      expert_analysis: { raw_analysis: tests },
    });
    expect(rig.prompt()).toContain('the empty list');
    expect(rig.prompt()).toContain('export const alpha');
  });

  it('hands on the wish for a sample, and goes on with one', async () => {
    rig.answers('{"status":"test_sample_needed","reason":"no tests are there"}', 'the tests');
    const first = await rig.call('testgen', step(1, 1, files));
    expect(first).toMatchObject({
      status: 'test_sample_needed',
      content: expect.stringContaining('no tests are there'),
    });
    const { continuation_id } = first;
    const again = await rig.call('testgen', step(1, 1, { relevant_files: ['a.ts', 'b.ts'], continuation_id }));
    expect(again.expert_analysis.raw_analysis).toBe('the tests');
    expect(rig.prompt()).toContain('export const beta');
  });

  it('takes an example of the tests under its older name', async () => {
    const reply = await rig.call('testgen', step(1, 1, { test_examples: ['b.ts'] }));
    expect(reply.status).toBe('calling_expert_analysis');
    expect(rig.prompt()).toContain('export const beta');
  });
});
