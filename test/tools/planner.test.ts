import { describe, expect, it } from 'vitest';
import { counters, step, workflowRig } from './workflow-rig.ts';

const rig = workflowRig();

function planStep(n: number, of: number, text: string, more: Record<string, unknown> = {}) {
  const { findings: _none, ...rest } = step(n, of, { step: text, ...more });
  return rest;
}

async function conduct(steps: Record<string, unknown>[]) {
  let reply = await rig.call('planner', steps[0] ?? {});
  const { continuation_id } = reply;
  for (const next of steps.slice(1)) {
    reply = await rig.call('planner', { ...next, continuation_id });
    expect(reply.error).toBeUndefined();
  }
  return reply;
}

const branched = [
  planStep(1, 4, 'Move the store'),
  planStep(2, 4, 'Choose a database'),
  planStep(3, 4, 'Use SQLite', { is_branch_point: true, branch_from_step: 2, branch_id: 'sqlite' }),
  planStep(4, 8, 'Write its schema', { branch_id: 'sqlite' }),
  planStep(5, 8, 'Use Redis', { is_branch_point: true, branch_from_step: 2, branch_id: 'redis' }),
  planStep(6, 8, 'Measure, then choose a database', { is_step_revision: true, revises_step_number: 2 }),
  planStep(7, 7, 'Roll it out'),
];

describe('planner', () => {
  it('names the step as what is missing where a question was sent instead, which it does not take', async () => {
    const { error } = await rig.call('planner', { prompt: 'Move the store' });
    expect(error.message).toContain('step: missing');
    expect(error.validation_errors).toContainEqual({ field: 'step', error: 'missing' });
  });

  it('says so where a last step that is sent again is added to the plan', async () => {
    const plan = [planStep(1, 2, 'Move the store'), planStep(2, 2, 'Use SQLite'), planStep(2, 2, 'Use Redis')];
    const reply = await conduct(plan);
    expect(reply.plan_summary).toContain('3 steps');
    expect(reply.metadata.warnings).toEqual([expect.stringContaining('Send revises_step: 2 to replace it')]);
  });

  it('lets branches count alike, without taking a step of one for a repeated step of the other', async () => {
    const reply = await conduct([
      ...branched.slice(0, 4),
      planStep(3, 8, 'Use Redis', { branch_from_step: 2, branch_id: 'redis', next_step_required: true }),
    ]);
    expect(reply.metadata.warnings).toBeUndefined();
    expect(reply.metadata.branches).toEqual(['sqlite', 'redis']);
  });

  it('assembles the plan: branches apart, a revision in the place of what it revises', async () => {
    const reply = await conduct(branched);
    expect(reply).toMatchObject({
      status: 'planning_complete',
      planner_complete: true,
      planning_complete: true,
      step_content: 'Roll it out',
      plan_summary: expect.stringMatching(/6 steps, 2 branches \(sqlite, redis\), 1 revised/),
      output: { format: 'step_by_step_planning', presentation_guidelines: { completed_plans: expect.any(String) } },
      metadata: { tool_name: 'planner', branches: ['sqlite', 'redis'], step_history_length: 6 },
      planner_status: { ...counters, step_history_length: 6 },
    });
    expect(reply.plan).toBe(
      [
        '# Plan: Move the store',
        '## Step 1\n\nMove the store',
        '## Step 2 (revised in step 6)\n\nMeasure, then choose a database',
        '## Step 7\n\nRoll it out',
        '## Branch "sqlite" (from step 2)',
        '### Step 3\n\nUse SQLite',
        '### Step 4\n\nWrite its schema',
        '## Branch "redis" (from step 2)',
        '### Step 5\n\nUse Redis',
      ].join('\n\n'),
    );
    expect(reply.plan).not.toContain('\n\nChoose a database');
    expect(rig.asked()).toBe(0);
  });

  it('leaves the whole plan in the thread, for any tool to read', async () => {
    const { continuation_id, plan } = await conduct(branched);
    rig.answers('A good plan.');
    await rig.call('chat', { prompt: 'What do you think of the plan?', continuation_id });
    expect(rig.prompt()).toContain(plan);
  });

  it('can replace a step under its own number, a revised one again too', async () => {
    const again = { is_step_revision: true };
    const reply = await conduct([
      planStep(1, 3, 'one'),
      planStep(2, 3, 'two'),
      planStep(1, 3, 'one, better', { ...again, revises_step_number: 1 }),
      planStep(3, 4, 'one, best', { ...again, revises_step_number: 1 }),
      planStep(4, 4, 'end'),
    ]);
    expect(reply.plan).toContain('# Plan: one, best\n\n## Step 1 (revised in step 3)\n\none, best');
    expect(reply.plan).not.toContain('one, better');
    expect(reply.planner_status.step_history_length).toBe(3);
  });

  it.each([
    ['a gap', planStep(5, 6, 'x')],
    ['a repeat', planStep(2, 6, 'x')],
    ['a revision of what is not there', planStep(3, 6, 'x', { revises_step_number: 9 })],
    ['a branch from nowhere', planStep(3, 6, 'x', { branch_id: 'b', branch_from_step: 7 })],
  ])('takes %s as it comes', async (_what, args) => {
    const { continuation_id } = await conduct([planStep(1, 6, 'one'), planStep(2, 6, 'two')]);
    await rig.call('planner', { ...args, continuation_id });
    const { plan } = await rig.call('planner', planStep(6, 6, 'end', { continuation_id }));
    for (const text of ['one', 'two', 'x', 'end']) expect(plan).toContain(`\n\n${text}`);
  });

  it('has a step once that is sent twice, as after a restart', async () => {
    const inBranch = planStep(2, 3, 'go', { branch_id: 'a', branch_from_step: 1 });
    const steps = [planStep(1, 3, 'go'), inBranch, inBranch, planStep(2, 3, 'go'), planStep(3, 3, 'end')];
    const { continuation_id, plan } = await conduct(steps);
    expect(plan.match(/\n\n(go|end)$/gm)).toEqual(['\n\ngo', '\n\ngo', '\n\nend', '\n\ngo']);
    expect((await rig.call('planner', planStep(3, 3, 'end', { continuation_id }))).plan).toBe(plan);
  });

  it('revises the step of the branch that is named, and by the field that it advises', async () => {
    const reply = await conduct([
      planStep(1, 4, 'start'),
      planStep(2, 4, 'two of a', { branch_id: 'a', branch_from_step: 1 }),
      planStep(2, 4, 'two of b', { branch_id: 'b', branch_from_step: 1 }),
      planStep(2, 4, 'two of b, better', { branch_id: 'b', is_step_revision: true, revises_step_number: 2 }),
    ]);
    const { continuation_id } = reply;
    const again = await rig.call('planner', { ...planStep(2, 4, 'two more'), continuation_id });
    expect(again.metadata.warnings).toEqual([expect.stringContaining('Send revises_step: 2 to replace it')]);
    const revised = { ...planStep(2, 4, 'two of a, better'), branch_id: 'a', revises_step: 2, continuation_id };
    expect((await rig.call('planner', revised)).metadata.warnings).toBeUndefined();
    const { plan } = await rig.call('planner', { ...planStep(5, 5, 'end'), continuation_id });
    for (const branch of ['a', 'b'])
      expect(plan).toContain(`## Branch "${branch}" (from step 1)\n\n### Step 2 (revised)\n\ntwo of ${branch}, better`);
  });

  it('takes the fields of a revision that hosts fill in with nothing meant', async () => {
    const noise = { is_step_revision: false, revises_step_number: 1, is_branch_point: false, branch_id: '' };
    const reply = await conduct([planStep(1, 2, 'one'), planStep(2, 2, 'two', noise)]);
    expect(reply.plan).toContain('## Step 1\n\none');
    expect(reply.plan).toContain('## Step 2\n\ntwo');
  });

  it('stops for thought in the first three steps of a plan of five or more', async () => {
    const first = await rig.call('planner', planStep(1, 5, 'one'));
    expect(first).toMatchObject({ status: 'pause_for_deep_thinking', thinking_required: true, planner_required: true });
    expect(first.required_thinking).toEqual(first.required_actions);
    const id = { continuation_id: first.continuation_id };
    await rig.call('planner', planStep(2, 5, 'two', id));
    const third = await rig.call('planner', planStep(3, 5, 'three', id));
    expect(third.status).toBe('pause_for_deep_thinking');
    const fourth = await rig.call('planner', planStep(4, 5, 'four', id));
    expect(fourth).toMatchObject({ status: 'pause_for_planning', next_steps: expect.stringContaining('about 1.') });
    expect(fourth.thinking_required).toBeUndefined();
    expect(fourth.no_new_evidence).toBeUndefined();
  });

  it('does not stop for thought in a short plan', async () => {
    const reply = await rig.call('planner', planStep(1, 4, 'one'));
    expect(reply).toMatchObject({
      status: 'pause_for_planning',
      metadata: { branches: [], is_step_revision: false, is_branch_point: false, more_steps_needed: false },
    });
  });

  it('keeps the plan over a restart', async () => {
    const { continuation_id } = await conduct([planStep(1, 2, 'one')]);
    await rig.restart();
    const reply = await rig.call('planner', planStep(2, 2, 'two', { continuation_id }));
    expect(reply.plan).toContain('## Step 1\n\none\n\n## Step 2\n\ntwo');
  });
});
