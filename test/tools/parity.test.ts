import { beforeEach, describe, expect, it } from 'vitest';
import { schemaOf } from '../../src/calls/argument-schema.ts';
import { tools } from '../../src/tools/index.gen.ts';
import {
  cannot,
  cliSays,
  commonCounters,
  conversations,
  earlyTools,
  expertWorkflows,
  type PalAnswer,
  type PalExpertWorkflow,
  palTools,
  situations,
  summaryKeys,
} from '../fixtures/pal-answers.ts';
import { gitRepository } from '../support/git-repository.ts';
import type { Document } from '../support/product.ts';
import { step, workflowRig } from './workflow-rig.ts';

const rig = workflowRig({ POLYLOGUE_TOOLSETS: 'core,code,agent' }, { gemini: cliSays });

describe('the tables of what older callers expect', () => {
  const offered: readonly string[] = tools.map(({ name }) => name);

  it('know all tools of PAL, and all of them are offered', () => {
    expect(palTools).toHaveLength(18);
    expect(palTools.filter(name => !offered.includes(name))).toEqual([]);
  });

  it.each(palTools)('have each situation of %s, or a reason', tool => {
    const shown = new Set(conversations.filter(row => row.tool === tool).flatMap(({ shows }) => shows));
    if (expertWorkflows.some(row => row.tool === tool)) for (const situation of situations) shown.add(situation);
    const impossible = cannot[tool] ?? {};
    for (const situation of situations)
      expect(shown.has(situation) !== (impossible[situation] !== undefined), situation).toBe(true);
  });

  it('have the six tools of the one-shot protocol', () => {
    const names = ['analyze', 'chat', 'codereview', 'debug', 'precommit', 'thinkdeep'];
    expect(earlyTools.map(({ tool }) => tool).toSorted()).toEqual(names);
  });
});

async function inRepository({ repository }: { repository?: true }): Promise<void> {
  if (repository) await gitRepository(rig.root());
}

/** Arguments that callers of every workflow send in each step, whether the tool advertises them or not. */
const everyStep = {
  files_checked: ['a.ts', 'b.ts'],
  issues_found: [{ severity: 'high', type: 'x', description: 'y' }],
};
const firstStep = {
  ...everyStep,
  relevant_files: ['a.ts'],
  images: [],
  temperature: 0.5,
  thinking_mode: 'medium',
  model: 'gpt-5-mini',
};

function expectAnswer(reply: Document, { values, keys = [], inside = {}, absent = [] }: PalAnswer): void {
  expect(reply).toMatchObject(values);
  for (const key of keys) expect(reply, key).toHaveProperty([key]);
  for (const [key, inner] of Object.entries(inside))
    expect(Object.keys(reply[key] ?? {}), key).toEqual(expect.arrayContaining([...inner]));
  for (const key of absent) expect(reply, key).not.toHaveProperty([key]);
}

const stepKeys = ['step_number', 'total_steps', 'continuation_id', 'next_steps'];

/** What every reply of a workflow has, whatever its step came to. */
function everyReply({
  tool,
  counters,
  also,
}: PalExpertWorkflow): Pick<PalAnswer, 'keys' | 'inside'> & { tool: string } {
  return {
    tool,
    keys: [...stepKeys, ...(also?.always ?? [])],
    inside: { [counters.key]: [...commonCounters, ...counters.own] },
  };
}

async function intoLastStep(
  { tool, own }: PalExpertWorkflow,
  more: Record<string, unknown> = {},
): Promise<{ pauses: Document[]; last: Document }> {
  const first = await rig.call(tool, step(1, 3, { ...firstStep, ...own }));
  const { continuation_id } = first;
  const middle = await rig.call(tool, step(2, 3, { ...everyStep, relevant_files: ['b.ts'], continuation_id }));
  const last = await rig.call(tool, step(3, 3, { ...everyStep, continuation_id, ...more }));
  return { pauses: [first, middle], last };
}

describe.each(expertWorkflows.map(row => [row.tool, row] as const))('%s as older callers use it', (tool, row) => {
  const common = everyReply(row);
  const complete = { [row.complete]: true, next_step_required: false, step_number: 3, total_steps: 3 };
  const lastKeys = [...(common.keys ?? []), ...(row.also?.last ?? [])];
  const summary = { [row.summary]: summaryKeys };

  beforeEach(() => inRepository(row));

  it('pauses after the first and the middle step with work to do, and asks nobody', async () => {
    const { pauses } = await intoLastStep(row, { use_assistant_model: false });
    for (const [index, reply] of pauses.entries()) {
      expectAnswer(reply, {
        values: {
          isError: false,
          status: row.pause,
          [row.required]: true,
          step_number: index + 1,
          total_steps: 3,
          next_step_required: true,
          file_context: { type: 'reference_only' },
          metadata: { tool_name: tool },
        },
        keys: common.keys,
        inside: { ...common.inside, file_context: ['type', 'note', 'context_optimization'] },
        absent: [row.complete, row.summary, 'expert_analysis'],
      });
      expect(reply.required_actions.length).toBeGreaterThan(0);
      expect(reply[row.counters.key]).toMatchObject({ files_checked: 2, relevant_files: index + 1, issues_found: 1 });
    }
    expect(rig.asked()).toBe(0);
  });

  it('ends with the expert’s view beside a summary', async () => {
    rig.answers('{"status": "analysis_complete", "summary": "fine"}');
    const { last } = await intoLastStep(row);
    expectAnswer(last, {
      values: {
        ...complete,
        isError: false,
        status: 'calling_expert_analysis',
        file_context: { type: 'fully_embedded' },
      },
      keys: [...lastKeys, ...(row.also?.expert ?? [])],
      inside: {
        ...common.inside,
        [row.summary]: [...(summary[row.summary] ?? []), 'issues_found'],
        file_context: ['type', 'files_embedded', 'context_optimization'],
        expert_analysis: ['status'],
        metadata: ['tool_name', 'model_used', 'provider_used'],
      },
      absent: ['skip_expert_analysis', row.required],
    });
    expect(rig.asked()).toBe(1);
  });

  it('shows a plain answer as plain text', async () => {
    rig.answers('All is well.');
    const { last } = await intoLastStep(row);
    expect(last.expert_analysis).toMatchObject({
      status: 'analysis_complete',
      raw_analysis: 'All is well.',
      format: 'text',
      note: expect.any(String),
    });
  });

  it('asks nobody where the caller is sure, unless the tool always asks', async () => {
    const { skipped } = row;
    const { last } = await intoLastStep(row, skipped?.by ?? { confidence: 'certain' });
    expect(rig.asked()).toBe(skipped ? 0 : 1);
    const ending: PalAnswer = skipped
      ? {
          values: {
            status: skipped.status,
            skip_expert_analysis: true,
            expert_analysis: { status: skipped.reason, reason: expect.any(String) },
            [row.summary]: { confidence_level: skipped.level, final_analysis: expect.any(String) },
          },
        }
      : { values: { status: 'calling_expert_analysis' }, absent: ['skip_expert_analysis'] };
    expectAnswer(last, { ...ending, keys: lastKeys, inside: { ...common.inside, ...summary } });
    expect(last).toMatchObject(complete);
  });

  it('asks nobody where no expert is wanted', async () => {
    const { last } = await intoLastStep(row, { use_assistant_model: false });
    expectAnswer(last, {
      values: { ...complete, isError: false, status: 'local_work_complete' },
      keys: lastKeys,
      inside: common.inside,
      absent: [row.summary, 'expert_analysis', 'skip_expert_analysis'],
    });
    expect(rig.asked()).toBe(0);
  });

  it('hands on the expert’s wish for files, and goes on with them', async () => {
    const wish = { status: 'files_required_to_continue', mandatory_instructions: 'show b', files_needed: ['b.ts'] };
    rig.answers(JSON.stringify(wish), 'Now I see.');
    const { last } = await intoLastStep(row);
    expectAnswer(last, {
      values: { ...complete, isError: false, status: 'files_required_to_continue' },
      keys: [...lastKeys, 'content', 'files_needed', 'mandatory_instructions'],
      inside: { ...common.inside, ...summary },
      absent: ['expert_analysis'],
    });
    expect(JSON.parse(last.content)).toEqual(wish);
    expect(last).toMatchObject({ files_needed: ['b.ts'], mandatory_instructions: 'show b' });
    const { continuation_id } = last;
    const again = await rig.call(tool, step(3, 3, { continuation_id, relevant_files: ['b.ts'] }));
    expect(again.status).toBe('calling_expert_analysis');
  });

  it('takes steps that are repeated, skipped or restarted, and changed totals', async () => {
    const first = await rig.call(tool, step(1, 3, { ...firstStep, ...row.own }));
    const id = { continuation_id: first.continuation_id, use_assistant_model: false };
    await rig.call(tool, step(2, 3, { ...everyStep, ...id, relevant_files: ['b.ts'] }));
    const repeated = await rig.call(tool, step(2, 4, { ...everyStep, ...id }));
    expectAnswer(repeated, {
      values: { isError: false, status: row.pause, step_number: 2, total_steps: 4, [row.required]: true },
      ...common,
    });
    expect(repeated[row.counters.key]).toMatchObject({ files_checked: 2, relevant_files: 2, issues_found: 1 });
    const skipped = await rig.call(tool, step(6, 5, { ...everyStep, ...id, next_step_required: true }));
    expectAnswer(skipped, { values: { isError: false, status: row.pause, step_number: 6, total_steps: 6 }, ...common });
    expect(skipped[row.counters.key]).toMatchObject({ relevant_files: 2 });
    for (const reply of [repeated, skipped]) expect(reply.metadata.warnings).toHaveLength(1);
    const restarted = await rig.call(tool, step(1, 2, { ...firstStep, ...row.own, ...id }));
    expectAnswer(restarted, {
      values: { isError: false, status: row.pause, step_number: 1, total_steps: 2 },
      ...common,
    });
    expect(restarted.metadata.warnings).toEqual([expect.stringContaining('new run')]);
    const strayed = await rig.call(tool, step(2, 3, { ...everyStep, ...row.own, relevant_files: ['a.ts'] }));
    expectAnswer(strayed, { values: { isError: false, status: row.pause, step_number: 2 }, ...common });
    expect(rig.asked()).toBe(0);
  });

  it('guides each step anew, and says at the last one how to end', async () => {
    for (const how of [{}, { confidence: row.own.confidence }]) {
      const sure = how.confidence === undefined ? [] : ['low', 'medium', 'high'];
      let continuation_id: string | undefined;
      const guides: string[] = [];
      for (const number of [1, 2, 3, 4]) {
        const confidence = tool === 'refactor' ? ['exploring', 'incomplete', 'partial'][number - 2] : sure[number - 2];
        const args = { ...firstStep, ...row.own, confidence: how.confidence && confidence, continuation_id };
        const reply = await rig.call(tool, step(number, 4, { ...args, next_step_required: true }));
        ({ continuation_id } = reply);
        guides.push(JSON.stringify(reply.required_actions));
        expect(reply.next_steps).toContain('next_step_required');
      }
      expect(new Set(guides).size).toBe(4);
      if (how.confidence === undefined) expect(guides[3]).toContain('next_step_required');
    }
  });

  it('keeps its work at home where the caller is sure, though hosts fill in use_assistant_model', async () => {
    const { last } = await intoLastStep(row, { use_assistant_model: true, ...row.skipped?.by });
    expect(last.status).toBe(row.skipped?.status ?? 'calling_expert_analysis');
    expect(rig.asked()).toBe(row.skipped ? 0 : 1);
  });

  it('tells what was embedded, and what was not yet', async () => {
    const { pauses, last } = await intoLastStep(row);
    for (const { file_context } of pauses)
      expect(file_context.context_optimization).toMatch(/^Files are referenced and not embedded/);
    expect(last.file_context.context_optimization).toMatch(/^Full content of 2 files was embedded for the expert/);
  });

  it('loses nothing of the caller’s work when the expert fails', async () => {
    rig.fails();
    const { last } = await intoLastStep(row);
    expectAnswer(last, {
      values: { isError: true, status: 'error', content_type: 'text', error: { code: 'API_ERROR' } },
      keys: ['content', 'continuation_id', ...(row.also?.always ?? [])],
      inside: common.inside,
      absent: ['expert_analysis', row.complete, row.summary],
    });
    rig.answers('Now I see.');
    const again = await rig.call(tool, step(3, 3, { ...everyStep, continuation_id: last.continuation_id }));
    expectAnswer(again, { values: { ...complete, isError: false }, keys: ['expert_analysis'], inside: summary });
    expect(again[row.summary].work_summary).toMatch(/finding 1[\s\S]*finding 2[\s\S]*finding 3/);
  });
});

describe.each(conversations.map(row => [row.tool, row.what, row] as const))('%s', (tool, what, { calls, models }) => {
  it(`${what}, with the replies that older callers know`, async () => {
    for (const answer of models ?? []) answer === null ? rig.fails() : rig.answers(answer);
    let continuation_id: string | undefined;
    for (const { args, answer } of calls) {
      const reply = await rig.call(tool, { ...args, ...(continuation_id && { continuation_id }) });
      expectAnswer(reply, answer);
      continuation_id = reply.continuation_id ?? reply.continuation_offer?.continuation_id;
    }
  });
});

describe.each(earlyTools.map(row => [row.tool, row] as const))('%s of the one-shot protocol', (tool, row) => {
  beforeEach(() => inRepository(row));

  it('takes its own argument names and asks the model at once with all of them', async () => {
    rig.answers('The answer.');
    const reply = await rig.call(tool, row.args);
    expect(reply).toMatchObject({ isError: false, status: row.status });
    expect(JSON.stringify(reply)).toContain('The answer.');
    expect(rig.asked()).toBe(1);
    for (const text of row.seen) expect(rig.prompt()).toContain(text);
    // What a model can't take is another matter than a name that nobody knows.
    expect(JSON.stringify(reply.metadata.warnings ?? [])).not.toMatch(/no field|ignored/);
  });

  it('goes on in a thread', async () => {
    const { continuation_offer } = await rig.call('chat', { prompt: 'Remember the WORD.' });
    const { continuation_id } = continuation_offer;
    const reply = await rig.call(tool, { ...row.args, continuation_id });
    expect(reply.continuation_offer.continuation_id).toBe(continuation_id);
    expect(rig.prompt()).toContain('Remember the WORD.');
  });
});

/** The least that each tool can be called with. */
const least: Record<string, Record<string, unknown>> = {
  ...Object.fromEntries(expertWorkflows.map(({ tool }) => [tool, step(1, 2, { relevant_files: ['a.ts'], path: '.' })])),
  ...{ apilookup: { prompt: 'x' }, challenge: { prompt: 'x' }, chat: { prompt: 'x' }, clink: { prompt: 'x' } },
  ...{ consensus: { prompt: 'x' }, listmodels: {}, version: {}, planner: step(1, 2) },
  docgen: step(1, 2, { relevant_files: ['a.ts'] }),
  tracer: step(1, 2, { trace_mode: 'precision', target_description: 'alpha' }),
};

const emptyOf: Record<string, unknown> = { string: '', array: [], integer: 0, number: null, boolean: null };

describe.each(palTools)('%s', tool => {
  const definition = tools.find(({ name }) => name === tool)!;
  const { properties } = schemaOf(definition);
  const { path, ...needed } = least[tool] ?? {};
  const base = tool === 'precommit' ? { ...needed, path } : needed;
  const takesSteps = Object.hasOwn(base, 'step_number');

  beforeEach(() => inRepository({ ...(tool === 'precommit' && { repository: true }) }));

  it.each(['null', 'empty'])('takes every optional field as %s', async how => {
    const filled = Object.fromEntries(
      Object.entries(properties).map(([name, { type }]) => [name, how === 'null' ? null : emptyOf[String(type)]]),
    );
    const plain = await rig.call(tool, base);
    const reply = await rig.call(tool, { ...filled, ...base });
    expect(reply, JSON.stringify(reply.error)).toMatchObject({ isError: false, status: plain.status });
    expect(Object.keys(reply).toSorted()).toEqual(Object.keys(plain).toSorted());
  });

  const cases: { what: string; args: Record<string, unknown>; code: string; has: boolean }[] = [
    { what: 'nothing at all', args: {}, code: 'MISSING_PARAMETER', has: true },
    { what: 'no number', args: { ...base, step_number: 'x' }, code: 'INVALID_INPUT_FORMAT', has: takesSteps },
    {
      what: 'a thread that is none',
      args: { ...base, continuation_id: '00000000-0000-4000-8000-000000000000' },
      code: 'THREAD_NOT_FOUND',
      has: Object.hasOwn(properties, 'continuation_id'),
    },
    {
      what: 'a text that is too long',
      args: { ...base, [takesSteps ? 'step' : 'prompt']: 'x'.repeat(60_001) },
      code: 'LIMIT',
      has: true,
    },
  ];
  // Whatever these are sent, they answer.
  const errors = cases.filter(({ has }) => has && !['listmodels', 'version'].includes(tool));
  if (errors.length > 0) {
    it.each(errors)('answers $what with what is wrong and what to do', async ({ args, code }) => {
      const reply = await rig.call(tool, args);
      expect(reply).toMatchObject({
        isError: true,
        status: code === 'LIMIT' ? 'resend_prompt' : 'error',
        error: { code, message: expect.any(String), next: expect.any(String) },
        metadata: { tool_name: tool },
      });
      expect(rig.asked()).toBe(0);
    });
  }
});
