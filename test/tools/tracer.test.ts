import { cp } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { fixture } from '../workspace/call-graph/trace-fixture.ts';
import { counters, step } from './workflow-rig.ts';

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

beforeEach(async () => {
  vendor = await startOpenAi();
  project = await tempProject();
  await cp(fixture('ts'), project.root, { recursive: true });
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' };
  polylogue = await testProduct({ root: project.root, env });
});
afterEach(async () => {
  expect(vendor.requests).toEqual([]);
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

const total = { trace_mode: 'precision', target_description: 'Checkout.total and what it leads to' };
const call = (args: Record<string, unknown>): Promise<Document> => polylogue.call('tracer', args);
const edge = { from: 'Checkout.total', to: 'sumOf', kind: 'calls', at: 'src/shop/checkout.ts:19' };

describe('tracer with several roots', () => {
  it('traces through all of them', async () => {
    const other = await tempProject({
      'lib/far.ts': 'export function farAway() { return near(); }\nfunction near() {}\n',
    });
    await polylogue.close();
    const env = { ...vendorEnv({ openai: vendor.url }), POLYLOGUE_ROOTS: `${project.root}:${other.root}` };
    polylogue = await testProduct({ root: project.root, env });
    const reply = await call(step(1, 2, { trace_mode: 'precision', target_description: 'farAway' }));
    expect(reply.trace_graph).toMatchObject({
      files_read: 9,
      targets: ['farAway'],
      edges: [{ from: 'farAway', to: 'near' }],
    });
    await other.dispose();
  });
});

describe('tracer', () => {
  it('hands over the call graph at the first step, with what is to be done', async () => {
    const reply = await call(step(1, 2, total));
    expect(reply).toMatchObject({
      isError: false,
      status: 'pause_for_tracing',
      tracer_required: true,
      required_actions: expect.arrayContaining([expect.stringContaining('ambiguous')]),
      step_content: 'work of step 1',
      tracer_status: { ...counters, step_history_length: 1 },
      trace_graph: { files_read: 8, targets: ['Checkout.total'], edges: expect.arrayContaining([edge]) },
      metadata: {
        tool_name: 'tracer',
        trace_mode: 'precision',
        target_description: total.target_description,
        step_history_length: 1,
      },
    });
    expect(reply.mode_selection_required).toBeUndefined();
    expect(reply.trace_text).toContain('↓ calls sumOf  src/money.ts:3-6  at src/shop/checkout.ts:19');
    expect(reply.trace_graph.edges).toContainEqual({
      from: 'Checkout.pay',
      to: 'CashGateway.charge',
      kind: 'calls',
      at: 'src/shop/checkout.ts:23',
      ambiguous: 'one of several',
    });
  });

  it('ends with the graph, its form and the thread that has both', async () => {
    const { continuation_id } = await call(step(1, 2, total));
    const reply = await call({ ...step(2, 2, total), continuation_id, findings: 'Only the card gateway is used.' });
    expect(reply).toMatchObject({
      status: 'tracing_complete',
      tracer_complete: true,
      tracing_complete: true,
      step_content: 'work of step 2',
      trace_summary: expect.stringContaining('precision trace'),
      trace_graph: { edges: expect.arrayContaining([edge]) },
      output: {
        instructions: expect.any(String),
        format: 'precision_trace_analysis',
        rendering_instructions: expect.stringContaining('↓'),
        presentation_guidelines: {
          completed_trace: expect.any(String),
          step_content: expect.any(String),
          continuation: expect.any(String),
        },
      },
      next_steps: expect.any(String),
    });
    const read = await polylogue.call('threads', { action: 'read', continuation_id });
    const texts = JSON.stringify(read);
    expect(texts).toContain('Only the card gateway is used.');
    expect(texts.split('calls sumOf  src/money.ts:3-6  at src/shop/checkout.ts:19')).toHaveLength(2);
  });

  it('traces dependencies with relations of types and imports', async () => {
    const asked = { trace_mode: 'dependencies', target_description: 'the class CardGateway' };
    const reply = await call(step(1, 1, asked));
    expect(reply).toMatchObject({
      status: 'tracing_complete',
      output: { format: 'dependencies_trace_analysis', rendering_instructions: expect.stringContaining('←') },
      trace_graph: {
        targets: ['CardGateway'],
        edges: expect.arrayContaining([
          { from: 'CardGateway', to: 'Gateway', kind: 'implements', at: 'src/pay/card.ts:3' },
        ]),
        imports: expect.arrayContaining([
          { from: 'src/shop/checkout.ts', to: 'src/pay/card.ts', at: 'src/shop/checkout.ts:3' },
        ]),
      },
    });
  });

  it('has the user choose the mode first, and traces as soon as it is chosen', async () => {
    const first = await call(step(1, 3, { ...total, trace_mode: 'ask' }));
    expect(first).toMatchObject({
      status: 'mode_selection_required',
      mode_selection_required: true,
      tracer_required: true,
      next_step_required: true,
      required_actions: [expect.stringContaining('precision'), expect.stringContaining('dependencies')],
    });
    expect(first.trace_graph).toBeUndefined();
    const { continuation_id } = first;
    const second = await call({ ...step(2, 3, total), continuation_id });
    expect(second).toMatchObject({ status: 'pause_for_tracing', trace_graph: { targets: ['Checkout.total'] } });
    expect(second.mode_selection_required).toBeUndefined();
  });

  it('does not end before the mode is chosen', async () => {
    const asked = await call(step(1, 1, { ...total, trace_mode: 'ask' }));
    expect(asked).toMatchObject({ status: 'mode_selection_required', next_step_required: true });
    expect(asked.tracing_complete).toBeUndefined();
    const { continuation_id } = asked;
    expect(await call({ ...step(2, 2, total), continuation_id })).toMatchObject({ status: 'tracing_complete' });
  });

  it('takes a question without steps, or the target alone, as the whole work', async () => {
    const graph = { targets: ['Checkout.total'], edges: expect.arrayContaining([edge]) };
    for (const asked of [{ prompt: 'How is the total made?' }, { files: ['src'] }])
      expect(await call({ ...asked, ...total })).toMatchObject({ status: 'tracing_complete', trace_graph: graph });
    const { error } = await call({ prompt: 'How is the total made?', trace_mode: 'precision' });
    expect(error.validation_errors).toMatchObject([{ field: 'target_description', error: 'missing' }]);
    const unsure = await call({ prompt: 'How?', ...total, trace_mode: 'ask' });
    expect(unsure.status).toBe('mode_selection_required');
  });

  it('traces in the named files alone', async () => {
    const reply = await call(step(1, 2, { ...total, relevant_files: ['src/shop', 'src/money.ts'] }));
    expect(reply.trace_graph.files_read).toBe(4);
    expect(reply.trace_graph.unresolved).toContainEqual(
      expect.objectContaining({ from: 'Checkout.pay', target: 'this.gateway.charge', why: 'not_read' }),
    );
  });

  it('says so where there is nothing to parse, and gives instructions all the same', async () => {
    await project.write('java/Main.java', 'class Main { void run() {} }');
    const asked = { ...total, target_description: 'Main.run', relevant_files: ['java'] };
    const reply = await call(step(1, 2, asked));
    expect(reply).toMatchObject({ status: 'pause_for_tracing', required_actions: expect.any(Array) });
    expect(reply.trace_graph).toBeUndefined();
    expect(reply.trace_notes.join(' ')).toMatch(/No graph.*Java, which has no parser/);
  });

  it('traces nothing for a description that names nothing', async () => {
    const reply = await call(step(1, 2, { ...total, target_description: 'checkoutTotals' }));
    expect(reply.trace_graph).toMatchObject({ targets: [], nodes: [], edges: [], similar_names: expect.any(Array) });
    expect(reply.trace_text).toBeUndefined();
    expect(reply.trace_notes[0]).toMatch(/names no symbol/);
  });

  it('refuses a step without mode or target, and files that are not there', async () => {
    const without = await call(step(1, 2, { target_description: 'x' }));
    expect(without).toMatchObject({ isError: true, error: { class: 'validation' } });
    expect(JSON.stringify(without.error.validation_errors)).toContain('trace_mode');
    const wrong = await call(step(1, 2, { ...total, trace_mode: 'deep' }));
    expect(JSON.stringify(wrong.error.validation_errors)).toMatch(/precision.*dependencies.*ask/);
    const missing = await call(step(1, 2, { ...total, relevant_files: ['gone.ts', '../outside.ts'] }));
    expect(missing).toMatchObject({ isError: true, error: { class: 'files' } });
    const alone = await call(step(2, 2, total));
    expect(alone).toMatchObject({ isError: false, status: 'tracing_complete' });
  });

  it('shows no secret that stands in a name', async () => {
    const token = `ghp_${'aB3dE5fG7hJ9'.repeat(3)}`;
    await project.write(`src/${token}.ts`, 'export function leaky() { leaky(); }');
    const reply = await call(step(1, 2, { ...total, target_description: 'leaky()' }));
    expect(reply.trace_graph.targets).toEqual(['leaky']);
    expect(JSON.stringify(reply)).not.toContain(token);
  });

  it('can be cancelled', async () => {
    const controller = new AbortController();
    controller.abort();
    const reply = await polylogue.call('tracer', step(1, 2, total), { signal: controller.signal });
    expect(reply).toMatchObject({ isError: true, error: { code: 'CANCELLED' } });
  });
});
