import { describe, expect, it } from 'vitest';
import { step, workflowRig } from '../../../tools/workflow-rig.ts';

const rig = workflowRig();

const expertTools = [
  ['analyze', 'analysis_complete'],
  ['codereview', 'code_review_complete'],
  ['debug', 'investigation_complete'],
  ['secaudit', 'security_audit_complete'],
  ['thinkdeep', 'thinkdeep_complete'],
  ['refactor', 'refactoring_complete'],
  ['testgen', 'test_generation_complete'],
] as const;

describe.each(expertTools)('%s in one call', (tool, complete) => {
  it('reads the files and asks the expert at once', async () => {
    rig.answers('The answer.');
    const reply = await rig.call(tool, { prompt: 'Is alpha right?', files: ['a.ts'] });
    expect(reply).toMatchObject({
      isError: false,
      status: 'calling_expert_analysis',
      step_number: 1,
      total_steps: 1,
      next_step_required: false,
      [complete]: true,
      expert_analysis: { raw_analysis: 'The answer.' },
    });
    expect(rig.prompt()).toContain('Is alpha right?');
    expect(rig.prompt()).toContain('export const alpha');
    expect(rig.asked()).toBe(1);
  });
});

describe('a call without steps', () => {
  it.each([
    ['question', 'thinkdeep'],
    ['problem_context', 'thinkdeep'],
    ['current_analysis', 'thinkdeep'],
    ['error_description', 'debug'],
    ['original_request', 'codereview'],
    ['context', 'codereview'],
  ])('may name its question %s', async (name, tool) => {
    const reply = await rig.call(tool, { [name]: 'the older words', relevant_files: 'a.ts' });
    expect(reply.status).toBe('calling_expert_analysis');
    expect(rig.tail()).toContain('The task, as it was given: the older words');
  });

  it('shows the expert everything that is known, under its name', async () => {
    await rig.call('debug', {
      error_description: 'it crashes',
      error_context: 'TypeError at a.ts:1',
      runtime_info: 'Node 24',
      previous_attempts: ['restarted', 'reinstalled'],
    });
    expect(rig.tail()).toContain('it crashes');
    for (const text of ['error context: TypeError at a.ts:1', 'runtime info: Node 24', 'reinstalled'])
      expect(rig.prompt()).toContain(text);
  });

  it('asks the expert although the caller is certain, but not against its word', async () => {
    const asked = await rig.call('debug', { prompt: 'why?', confidence: 'certain' });
    expect(asked.status).toBe('calling_expert_analysis');
    const declined = await rig.call('debug', { prompt: 'why?', use_assistant_model: 'false' });
    expect(declined.status).toBe('local_work_complete');
  });

  it('keeps a context that says what to show of the thread', async () => {
    const first = await rig.call('chat', { prompt: 'a secret of this thread' });
    const { continuation_id } = first;
    await rig.call('debug', { prompt: 'why?', context: 'none', continuation_id });
    expect(rig.prompt()).not.toContain('a secret of this thread');
  });

  it('needs the files that a first step needs', async () => {
    const reply = await rig.call('analyze', { prompt: 'how is it?' });
    expect(reply.error).toMatchObject({ code: 'MISSING_PARAMETER', validation_errors: [{ field: 'relevant_files' }] });
  });
});

describe('older words beside a step', () => {
  it('are ignored with a warning', async () => {
    const reply = await rig.call('debug', step(1, 2, { prompt: 'something else' }));
    expect(reply.status).toBe('pause_for_investigation');
    expect(reply.metadata.warnings).toEqual([expect.stringContaining('"prompt"')]);
  });

  it('fill what the step lacks', async () => {
    const { step: _step, findings: _findings, ...bare } = step(1, 1);
    await rig.call('analyze', { ...bare, prompt: 'the task', current_analysis: 'known', relevant_files: ['a.ts'] });
    expect(rig.tail()).toContain('The task, as it was given: the task');
    expect(rig.prompt()).toContain('Findings: known');
  });

  it('add evidence to the findings', async () => {
    await rig.call('debug', step(1, 1, { error_context: 'stack of the crash' }));
    expect(rig.prompt()).toMatch(/Findings: finding 1\s+error context: stack of the crash/);
  });
});
