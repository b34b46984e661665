import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type TestProduct, testProduct, vendorEnv } from '../../../support/product.ts';
import { type TempProject, tempProject } from '../../../support/temp-project.ts';
import type { FakeVendor } from '../../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../../support/vendors/start-open-ai.ts';

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

async function start(env: Record<string, string> = {}) {
  polylogue = await testProduct({
    root: project.root,
    env: { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', ...env },
  });
}

beforeEach(async () => {
  vendor = await startOpenAi();
  project = await tempProject({ 'a.ts': 'export const a = 1;\n' });
});

afterEach(async () => {
  expect(vendor.violations).toEqual([]);
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

const step = (n: number, of: number, more: Record<string, unknown> = {}) => ({
  step: `what step ${n} does`,
  step_number: n,
  total_steps: of,
  next_step_required: n < of,
  findings: `finding ${n}`,
  ...more,
});

describe('a workflow', () => {
  it('asks no model before its last step, and says what to do first', async () => {
    await start();
    const reply = await polylogue.call('analyze', step(1, 3, { relevant_files: ['a.ts'], confidence: 'low' }));
    expect(reply).toMatchObject({
      status: 'pause_for_analysis',
      step_number: 1,
      total_steps: 3,
      next_step_required: true,
      analyze_required: true,
      file_context: { type: 'reference_only' },
      analysis_status: {
        files_checked: 0,
        relevant_files: 1,
        relevant_context: 0,
        issues_found: 0,
        images_collected: 0,
        current_confidence: 'low',
        insights_by_severity: {},
        analysis_confidence: 'low',
      },
      metadata: { tool_name: 'analyze' },
    });
    expect(reply.continuation_id).toBe(reply.continuation_offer.continuation_id);
    expect(reply.required_actions.length).toBeGreaterThan(1);
    expect(reply.next_steps).toContain('step_number 2');
    expect(vendor.requests).toEqual([]);
  });

  it('ends with the expert’s view and a summary of all steps', async () => {
    await start();
    vendor.script({ answer: 'The boundaries hold.' });
    const first = await polylogue.call(
      'analyze',
      step(1, 2, { relevant_files: ['a.ts'], issues_found: [{ severity: 'high', description: 'odd' }] }),
    );
    const reply = await polylogue.call(
      'analyze',
      step(2, 2, { continuation_id: first.continuation_id, files_checked: ['a.ts'] }),
    );
    expect(reply).toMatchObject({
      status: 'calling_expert_analysis',
      next_step_required: false,
      analysis_complete: true,
      file_context: { type: 'fully_embedded', files_embedded: 1 },
      expert_analysis: { status: 'analysis_complete', raw_analysis: 'The boundaries hold.', format: 'text' },
      complete_analysis: {
        initial_request: 'what step 1 does',
        steps_taken: 2,
        files_examined: ['a.ts'],
        relevant_files: ['a.ts'],
        issues_found: [{ severity: 'high', description: 'odd' }],
      },
      analysis_status: { insights_by_severity: { high: 1 } },
      metadata: { provider_used: 'openai', model_used: 'gpt-5-mini', usage: { input: expect.any(Number) } },
    });
    expect(reply.complete_analysis.work_summary).toMatch(/finding 1[\s\S]*finding 2/);
  });

  it.each([
    ['JSON alone is read', '```json\n{"summary": "sound"}\n```', { summary: 'sound' }],
    ['JSON among prose stays there', 'Send {"a": 1}.', { raw_analysis: 'Send {"a": 1}.' }],
    ['a gap of any length costs no time', `Sound.${' '.repeat(900_000)}Good.`, { format: 'text' }],
  ])('where an expert is asked for prose, %s', async (_name, answer, expected) => {
    await start();
    vendor.script({ answer });
    const reply = await polylogue.call('analyze', step(1, 1, { relevant_files: ['a.ts'] }));
    expect(reply.expert_analysis).toMatchObject(expected);
  });

  it('reads the expert’s JSON, fenced or slightly broken', async () => {
    await start();
    vendor.script({ answer: 'Here it is:\n```json\n{"status": "analysis_complete", "summary": "off by one",}\n```' });
    const reply = await polylogue.call('debug', step(1, 1, { confidence: 'medium' }));
    expect(reply.expert_analysis).toEqual({ status: 'analysis_complete', summary: 'off by one' });
  });

  it('promotes an expert’s request for files to the reply', async () => {
    await start();
    vendor.script({
      answer: '{"status":"files_required_to_continue","mandatory_instructions":"send b","files_needed":["b.ts"]}',
    });
    const reply = await polylogue.call('debug', step(1, 1));
    expect(reply).toMatchObject({ status: 'files_required_to_continue', investigation_complete: true });
    expect(JSON.parse(reply.content).files_needed).toEqual(['b.ts']);
    expect(reply.expert_analysis).toBeUndefined();
  });

  it('skips the expert when the caller is certain, whatever hosts fill in', async () => {
    await start();
    const skipped = await polylogue.call('debug', step(1, 1, { confidence: 'certain', hypothesis: 'typo' }));
    expect(skipped).toMatchObject({
      status: 'certain_confidence_proceed_with_fix',
      skip_expert_analysis: true,
      expert_analysis: { status: 'skipped_due_to_certain_confidence' },
      complete_investigation: { final_analysis: 'typo', confidence_level: 'certain' },
    });
    expect(vendor.requests).toEqual([]);
    const filledIn = await polylogue.call('debug', step(1, 1, { confidence: 'certain', use_assistant_model: true }));
    expect(filledIn.skip_expert_analysis).toBe(true);
    expect(vendor.requests).toEqual([]);
    const asked = await polylogue.call('debug', step(1, 1, { confidence: 'almost_certain' }));
    expect(asked.status).toBe('calling_expert_analysis');
  });

  it('asks the expert at certain when the operator wants it', async () => {
    await start({ EXPERT_AT_CERTAIN: 'on', POLYLOGUE_COMPAT: 'off' });
    const reply = await polylogue.call('debug', step(1, 1, { confidence: 'certain' }));
    expect(reply.status).toBe('expert_analysis_complete');
  });

  it('ends without the expert when it is declined', async () => {
    await start();
    const reply = await polylogue.call('analyze', step(1, 1, { relevant_files: ['a.ts'], use_assistant_model: false }));
    expect(reply).toMatchObject({ status: 'local_work_complete', analysis_complete: true });
    expect(vendor.requests).toEqual([]);
  });

  it('ends without the expert when no model is configured, and says how to get one', async () => {
    polylogue = await testProduct({ root: project.root });
    const reply = await polylogue.call('debug', step(1, 1));
    expect(reply).toMatchObject({ isError: false, status: 'local_work_complete' });
    expect(reply.next_steps).toContain('OPENAI_API_KEY');
  });

  it('says when a step brought nothing new', async () => {
    await start();
    const same = { findings: 'same', confidence: 'low' };
    const first = await polylogue.call('debug', { ...step(1, 4), ...same });
    const second = await polylogue.call('debug', { ...step(2, 4), ...same, continuation_id: first.continuation_id });
    expect(second.no_new_evidence).toBe(true);
    const third = await polylogue.call('debug', {
      ...step(3, 4),
      findings: 'new',
      continuation_id: first.continuation_id,
    });
    expect(third.no_new_evidence).toBeUndefined();
  });

  it('lists files that were checked but are not there', async () => {
    await start();
    const reply = await polylogue.call('debug', step(1, 2, { files_checked: ['a.ts', 'ghost.ts'] }));
    expect(reply.files_not_found).toEqual(['ghost.ts']);
  });

  it('needs relevant_files in the first step of analyze', async () => {
    await start();
    const reply = await polylogue.call('analyze', step(1, 2));
    expect(reply.error).toMatchObject({ code: 'MISSING_PARAMETER', validation_errors: [{ field: 'relevant_files' }] });
  });

  it('goes on after a restart as if nothing had happened', async () => {
    await start();
    const first = await polylogue.call('debug', step(1, 2, { relevant_files: ['a.ts'], hypothesis: 'h1' }));
    await polylogue.restart();
    const reply = await polylogue.call('debug', step(2, 2, { continuation_id: first.continuation_id }));
    expect(reply.complete_investigation).toMatchObject({ initial_request: 'what step 1 does', steps_taken: 2 });
    expect(reply.investigation_status.hypotheses_formed).toBe(1);
  });
});
