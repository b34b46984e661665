import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor, RecordedRequest } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startGoogle } from '../support/vendors/start-google.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

let vendors: { google: FakeVendor; openai: FakeVendor; anthropic: FakeVendor };
let project: TempProject;
let polylogue: TestProduct;

const proposal = 'Move the session table from files to a database?';
const findings = 'SECRET FINDING: the caller loves files.';

const models = { google: 'gemini-2.5-flash', openai: 'gpt-5-mini', anthropic: 'claude-sonnet-4-5' } as const;

function verdict(sentence: string, { position = 'support', confidence = 8 } = {}): string {
  return `## Verdict\n${sentence}\n**Position:** ${position}\n## Analysis\nBecause of ${sentence}\n## Confidence\n${confidence}/10 – seen before.\n## Key takeaways\n- one`;
}

const textOf = ({ messages }: RecordedRequest) => messages.map(({ text }) => text).join('\n');
const isSynthesis = (request: RecordedRequest) => textOf(request).includes('"minority_view"');
const asks = (vendor: FakeVendor) => vendor.requests.filter(({ dialect }) => dialect !== 'models');
const all = () => Object.values(vendors).flatMap(asks);

/** Answers a question for a verdict with this text, and one for a synthesis with an object. */
const answering = (text: string) => ({
  answer: (request: RecordedRequest) =>
    isSynthesis(request)
      ? '{"recommendation":"Do it in steps.","agreement":["It is feasible."],"disagreement":["Cost."],"minority_view":"","next_steps":["Measure."]}'
      : text,
});

async function start(env: Record<string, string> = {}) {
  const urls = { google: vendors.google.url, openai: vendors.openai.url, anthropic: vendors.anthropic.url };
  polylogue = await testProduct({ root: project.root, env: { ...vendorEnv(urls), ...env } });
}

beforeEach(async () => {
  const [google, openai, anthropic] = await Promise.all([startGoogle(), startOpenAi(), startAnthropic()]);
  vendors = { google, openai, anthropic };
  google.byDefault(answering(verdict('GOOGLE-VERDICT yes')));
  openai.byDefault(answering(verdict('OPENAI-VERDICT yes', { confidence: 6 })));
  anthropic.byDefault(answering(verdict('ANTHROPIC-VERDICT no', { position: 'oppose', confidence: 9 })));
  project = await tempProject({ 'table.ts': 'export const table = "TABLE-TEXT";\n' });
});

afterEach(async () => {
  for (const vendor of Object.values(vendors)) expect(vendor.violations).toEqual([]);
  await polylogue.close();
  await Promise.all(Object.values(vendors).map(vendor => vendor.close()));
  await project.dispose();
});

const three = Object.values(models);
const byModel = (reply: Document, model: string) => reply.responses.find((entry: Document) => entry.model === model);

describe('consensus with all models at once', () => {
  it('puts the proposal and the files to each, and brings the verdicts together with the minority view', async () => {
    await start();
    const reply = await polylogue.call('consensus', { prompt: proposal, models: three, relevant_files: ['table.ts'] });
    expect(reply).toMatchObject({
      isError: false,
      status: 'consensus_complete',
      consensus: {
        recommendation: 'Do it in steps.',
        agreement: ['It is feasible.'],
        confidence: { score: 7.7, lowest: 6, highest: 9, level: 'medium' },
        positions: { support: ['A', 'B'], oppose: ['C'] },
        minority: [{ expert: 'C', model: models.anthropic, position: 'oppose', verdict: 'ANTHROPIC-VERDICT no' }],
        synthesizer: { status: 'success' },
      },
      metadata: { tool_name: 'consensus', total_models: 3, files: { embedded: [project.path('table.ts')] } },
    });
    const [, , third] = reply.responses;
    expect(third).toMatchObject({
      expert: 'C',
      model: models.anthropic,
      stance: 'neutral',
      status: 'success',
      position: 'oppose',
      confidence: 9,
      tokens: { input: expect.any(Number), output: expect.any(Number) },
      cost_usd: expect.any(Number),
      latency_ms: expect.any(Number),
      metadata: { provider: 'anthropic', model_name: models.anthropic },
    });
    expect(three).toContain(reply.metadata.model_used);
    const asked = all().filter(request => !isSynthesis(request));
    expect(asked).toHaveLength(3);
    for (const request of asked) expect(textOf(request)).toContain('TABLE-TEXT');
    const synthesis = all().find(isSynthesis);
    expect(textOf(synthesis!)).toContain('In the minority: Expert C.');
    const costs = reply.responses.reduce((sum: number, { cost_usd }: Document) => sum + cost_usd, 0);
    expect(reply.metadata.cost_usd).toBeGreaterThan(costs);
  });

  it('shows no model another’s answer, the caller’s findings or the thread', async () => {
    await start();
    vendors.openai.script({ answer: 'CHAT-ANSWER of before' });
    const before = await polylogue.call('chat', {
      prompt: 'CHAT-QUESTION of before',
      model: models.openai,
      absolute_file_paths: ['table.ts'],
    });
    const { continuation_id } = before.continuation_offer;
    const args = { models: three, findings, continuation_id, relevant_files: ['table.ts'] };
    const reply = await polylogue.call('consensus', { ...args, prompt: proposal });
    expect(reply.status).toBe('consensus_complete');
    const asked = all().filter(request => textOf(request).includes(proposal) && !isSynthesis(request));
    expect(asked).toHaveLength(3);
    for (const request of asked) {
      expect(textOf(request)).not.toMatch(/SECRET FINDING|CHAT-|-VERDICT|Expert [ABC]/);
      expect(textOf(request)).toContain('TABLE-TEXT');
    }
    const { transcript } = await polylogue.call('threads', { action: 'read', continuation_id });
    expect(transcript[2].files).toEqual([{ path: project.path('table.ts'), form: 'unchanged' }]);
  });

  it('keeps the exchange readable: other tools see proposal, synthesis and each verdict with its model', async () => {
    await start();
    const { continuation_offer } = await polylogue.call('consensus', { prompt: proposal, models: three });
    const { continuation_id } = continuation_offer;
    const { transcript } = await polylogue.call('threads', { action: 'read', continuation_id });
    expect(transcript.map(({ role }: Document) => role)).toEqual(['user', 'assistant']);
    expect(transcript[0].content).toContain(proposal);
    for (const part of ['Do it in steps.', '## Minority view', '## Verdicts', 'Expert A: google:gemini-2.5-flash'])
      expect(transcript[1].content).toContain(part);
    expect(transcript[1].content).toMatch(/Minority view[^#]*ANTHROPIC-VERDICT no/);
    const { sent } = await polylogue.call('threads', { action: 'sent', continuation_id });
    for (const name of Object.entries(models)) expect(sent[0].to).toContain(name.join(':'));
    await polylogue.call('chat', { prompt: 'And now?', continuation_id, model: models.openai });
    expect(textOf(asks(vendors.openai).at(-1)!)).toContain('ANTHROPIC-VERDICT no');
  });

  it('goes on without those that fail, are too slow or too dear, and says so of each', async () => {
    await start({ CONSENSUS_MODEL_TIMEOUT_SECONDS: '2' });
    vendors.anthropic.byDefault({
      fault: 'status',
      status: 400,
      body: { type: 'error', error: { type: 'invalid_request_error', message: 'no' } },
    });
    vendors.google.byDefault({ answer: verdict('SLOW'), delayMs: 20_000 });
    const updates: string[] = [];
    const reply = await polylogue.call(
      'consensus',
      {
        prompt: proposal,
        models: ['gpt-5-mini', 'gpt-5-nano', 'o3-pro', 'claude-haiku-4-5', 'gemini-2.5-flash'],
        synthesizer: 'gpt-5-mini',
        max_cost_usd: 0.2,
      },
      { onProgress: ({ message }) => void updates.push(message) },
    );
    expect(reply).toMatchObject({ isError: false, status: 'partial', skipped_for_cost: ['o3-pro:neutral'] });
    expect(reply.responses.map(({ status }: Document) => status)).toEqual([
      'success',
      'success',
      'skipped',
      'error',
      'error',
    ]);
    expect(byModel(reply, 'o3-pro')).toMatchObject({ reason: 'cost', error: expect.stringContaining('max_cost_usd') });
    expect(byModel(reply, 'gemini-2.5-flash').error_class).toBe('timeout');
    expect(byModel(reply, 'claude-haiku-4-5').error_class).toBe('bad_request');
    expect(reply.consensus.recommendation).toBe('Do it in steps.');
    expect(reply.metadata.cost_usd).toBeLessThan(0.2);
    expect(asks(vendors.openai).map(({ body }) => Object(body).model)).not.toContain('o3-pro');
    for (const part of [
      'gpt-5-mini answered in',
      'o3-pro was not asked (cost)',
      'claude-haiku-4-5 failed',
      'gemini-2.5-flash failed',
    ])
      expect(updates.join('\n')).toContain(part);
    expect(updates.filter(update => /\(\d of 5\)$/.test(update))).toHaveLength(5);
  });

  it('takes about as long as the slowest model', async () => {
    await start();
    const { promise, resolve } = Promise.withResolvers<void>();
    vendors.openai.byDefault({ ...answering(verdict('quick')), when: promise });
    const names = ['gpt-5', 'gpt-5-mini', 'gpt-5-nano', 'o3', 'o4-mini'];
    const call = polylogue.call('consensus', { prompt: proposal, models: names, synthesizer: models.google });
    // None is answered before all are asked.
    await expect.poll(() => asks(vendors.openai)).toHaveLength(names.length);
    resolve();
    const reply = await call;
    expect(reply.status).toBe('consensus_complete');
  });

  it('shows the others’ verdicts without names in a second round, and lets each revise', async () => {
    await start();
    vendors.google.byDefault(answering(verdict('Yes, says the first')));
    vendors.anthropic.byDefault(answering(verdict('No, says the third', { position: 'oppose' })));
    vendors.openai.script(answering(verdict('As GPT-5 mini by OpenAI, unlike claude-sonnet-4-5, I say yes')));
    vendors.openai.script(answering(verdict('REVISED after the objection', { position: 'oppose' })));
    const reply = await polylogue.call('consensus', { prompt: proposal, models: three, rounds: 2 });
    const rounds = all().filter(
      request => textOf(request).includes('--- BEGIN VERDICT: Expert') && !isSynthesis(request),
    );
    expect(rounds).toHaveLength(3);
    for (const request of rounds) {
      const shown = textOf(request).slice(textOf(request).indexOf('--- BEGIN VERDICT'));
      expect(shown.match(/BEGIN VERDICT/g)).toHaveLength(2);
      expect(shown).not.toMatch(/gpt|claude|gemini|sonnet|openai|anthropic|google/i);
      expect(shown).toContain('Your side: NONE');
    }
    const second = rounds.find(request => asks(vendors.openai).includes(request));
    expect(textOf(second!)).toMatch(/Expert A ---[\s\S]*Expert C ---/);
    expect(textOf(second!)).not.toContain('Expert B');
    expect(textOf(second!)).not.toMatch(/gpt|openai|claude/i);
    expect(byModel(reply, models.openai)).toMatchObject({
      round: 2,
      position: 'oppose',
      verdict: expect.stringContaining('REVISED'),
    });
    expect(reply.consensus.positions).toEqual({ oppose: ['B', 'C'], support: ['A'] });
  });

  it('keeps the first verdict of a model that fails in the second round', async () => {
    await start();
    vendors.google.script(answering(verdict('FIRST of google')), { fault: 'status', status: 400 });
    const reply = await polylogue.call('consensus', {
      prompt: proposal,
      models: three,
      rounds: 2,
      synthesizer: models.openai,
    });
    expect(byModel(reply, models.google)).toMatchObject({
      status: 'success',
      round: 1,
      verdict: expect.stringContaining('FIRST of google'),
      not_revised: expect.any(String),
    });
  });

  it('chooses three models of different vendors when none are named', async () => {
    await start();
    const reply = await polylogue.call('consensus', { prompt: proposal });
    const providers = reply.responses.map(({ metadata }: Document) => metadata.provider);
    expect(providers.toSorted()).toEqual(['anthropic', 'google', 'openai']);
  });

  it('shows nothing to a vendor that was not named, for the synthesis either', async () => {
    await start();
    const named = [models.openai, 'gpt-4.1'];
    const reply = await polylogue.call('consensus', { prompt: proposal, models: named });
    expect(reply).toMatchObject({ status: 'consensus_complete', consensus: { synthesizer: { status: 'success' } } });
    expect(asks(vendors.openai).filter(isSynthesis)).toHaveLength(1);
    expect([...asks(vendors.google), ...asks(vendors.anthropic)]).toEqual([]);
    await polylogue.call('consensus', { prompt: proposal, models: named, synthesizer: models.google });
    expect(asks(vendors.google).filter(isSynthesis)).toHaveLength(1);
  });

  it('has another named model bring the verdicts together where the best of them cannot', async () => {
    await start();
    vendors.anthropic.byDefault({ fault: 'status', status: 401 });
    const reply = await polylogue.call('consensus', { prompt: proposal, models: three });
    expect(reply.consensus.synthesizer.status).toBe('success');
    expect([models.google, models.openai]).toContain(reply.metadata.model_used);
  });

  it('leaves the caller a synthesis of its own when the synthesizer fails, and keeps the minority', async () => {
    await start();
    vendors.openai.byDefault({ fault: 'status', status: 400 });
    const reply = await polylogue.call('consensus', {
      prompt: proposal,
      models: [
        { model: models.google, stance: 'for' },
        { model: models.google, stance: 'neutral' },
        { model: models.anthropic, stance: 'against' },
      ],
      synthesizer: models.openai,
    });
    expect(reply).toMatchObject({ status: 'consensus_complete', consensus: { synthesizer: { status: 'error' } } });
    expect(reply.consensus.recommendation).toBeUndefined();
    expect(reply.consensus.minority).toMatchObject([{ expert: 'C' }]);
    expect(reply.next_steps).toContain('No synthesis was made');
  });

  it('is an error when nobody answers, with the reason of each, and can be sent again on the thread', async () => {
    await start();
    vendors.openai.script({ fault: 'status', status: 400 });
    const reply = await polylogue.call('consensus', {
      prompt: proposal,
      models: [models.openai, 'no-such-model-anywhere'],
    });
    expect(reply).toMatchObject({ isError: true, status: 'error' });
    expect(reply.responses.map(({ status }: Document) => status)).toEqual(['error', 'error']);
    expect(reply.error.message).toContain('no-such-model-anywhere');
    const { continuation_id } = reply;
    const again = await polylogue.call('consensus', { prompt: proposal, models: three, continuation_id });
    expect(again.status).toBe('consensus_complete');
  });

  it('tells no secret that a vendor quotes, neither in the reply nor in the thread', async () => {
    await start();
    const key = `sk-proj-${'aB3dE5gH7jK9'.repeat(4)}`;
    const body = {
      error: { message: `Bad request with ${key}`, type: 'invalid_request_error', param: null, code: null },
    };
    vendors.openai.byDefault({ fault: 'status', status: 400, body });
    const reply = await polylogue.call('consensus', { prompt: proposal, models: three });
    expect(byModel(reply, models.openai).status).toBe('error');
    const page = await polylogue.call('threads', { action: 'read', continuation_id: 'last' });
    expect(JSON.stringify([reply, page])).not.toContain('aB3dE5gH7jK9');
  });

  it('asks nobody when no model fits max_cost_usd', async () => {
    await start();
    const reply = await polylogue.call('consensus', { prompt: proposal, models: three, max_cost_usd: 0.000001 });
    expect(reply).toMatchObject({ isError: true, error: { code: 'LIMIT', class: 'cost' } });
    expect(all()).toEqual([]);
  });

  it('takes models as names, as names with a side, as objects, as JSON and in one text', async () => {
    await start();
    const asked = async (list: unknown) => {
      const reply = await polylogue.call('consensus', { prompt: proposal, models: list, synthesizer: models.google });
      return reply.responses?.map(({ model, stance }: Document) => `${model}:${stance}`) ?? reply.error;
    };
    const google = models.google;
    for (const [list, expected] of [
      [
        ['gpt-5-mini', `${google}:against`],
        ['gpt-5-mini:neutral', `${google}:against`],
      ],
      [
        ['openai:gpt-5-mini:low: FOR ', 'gpt-5-mini:high'],
        ['openai:gpt-5-mini:low:for', 'gpt-5-mini:high:neutral'],
      ],
      [
        ['gpt-5-mini:for', { model: 'gpt-5-mini', stance: 'Against' }],
        ['gpt-5-mini:for', 'gpt-5-mini:against'],
      ],
      [
        [{ model: 'gpt-5-mini:neutral' }, '{"model":"gpt-5-mini","stance":"for"}'],
        ['gpt-5-mini:neutral', 'gpt-5-mini:for'],
      ],
      [`gpt-5-mini:for, ${google}`, ['gpt-5-mini:for', `${google}:neutral`]],
      [{ model: 'gpt-5-mini', stance: 'for', stance_prompt: '' }, ['gpt-5-mini:for']],
    ] as const)
      expect(await asked(list)).toEqual(expected);
  });

  it('lists a text as a form of a model, for hosts that check calls themselves', async () => {
    await start();
    const listed = polylogue.product.host.list().find(({ name }) => name === 'consensus');
    const { items } = Object(listed?.inputSchema.properties).models;
    expect(items.anyOf.map(({ type }: Document) => type)).toEqual(['string', 'object']);
    expect(items.anyOf[1]).toMatchObject({
      required: ['model'],
      properties: { stance: { enum: ['for', 'against', 'neutral'] } },
    });
  });

  it.each([
    [['gpt-5-mini:agianst'], /"agianst" is no stance/],
    [['gpt-5-mini', 'gpt-5-nano:nuetral'], /"nuetral" is no stance/],
    [[' :for'], /names no model/],
    [['gpt-5-mini:for,'], /names no model/],
    [[{ model: 'gpt-5-mini', stance: 'sideways' }], /models\.0\.stance: .*for.*against.*neutral/],
    [[{ stance: 'for' }], /models\.0\.model/],
    [[['gpt-5-mini']], /models\.0: expected .*id:against/],
  ])('says what is wrong with %j, before anybody is paid', async (list, told) => {
    await start();
    const reply = await polylogue.call('consensus', { prompt: proposal, models: list });
    expect(reply).toMatchObject({ isError: true, error: { class: 'validation' } });
    expect(reply.error.message).toMatch(told);
    expect(all()).toEqual([]);
  });

  it.each([
    ['names', ['gpt-5-mini', 'gpt-5-mini']],
    ['aliases of one model', ['anthropic:claude-sonnet-4-5', 'claude-sonnet-4-5']],
  ])('refuses to ask one model twice for one side: %s', async (_what, twins) => {
    await start();
    const reply = await polylogue.call('consensus', { prompt: proposal, models: twins });
    expect(reply).toMatchObject({ isError: true, error: { class: 'validation' } });
    expect(reply.error.message).toContain('twice');
    expect(all()).toEqual([]);
  });

  it('refuses files that nobody may read before anybody is paid, and names one that is not there', async () => {
    await start();
    const reply = await polylogue.call('consensus', { prompt: proposal, models: three, relevant_files: ['../out.ts'] });
    expect(reply).toMatchObject({ isError: true, error: { class: 'files' } });
    expect(all()).toEqual([]);
    const asked = await polylogue.call('consensus', { prompt: proposal, models: three, relevant_files: ['ghost.ts'] });
    expect(asked.isError).toBe(false);
    expect(JSON.stringify(asked.metadata.warnings)).toContain('ghost.ts');
  });

  it('says what is missing when it gets neither a proposal nor a step', async () => {
    await start();
    const reply = await polylogue.call('consensus', { models: three });
    expect(reply).toMatchObject({ isError: true, error: { code: 'MISSING_PARAMETER' } });
  });

  it('ends with the call, and leaves the thread usable', async () => {
    await start();
    vendors.openai.byDefault({ fault: 'hang_before_headers' });
    const controller = new AbortController();
    const call = polylogue.call('consensus', { prompt: proposal, models: three }, { signal: controller.signal });
    await expect.poll(() => asks(vendors.openai).length).toBe(1);
    controller.abort();
    expect(await call).toMatchObject({ isError: true, error: { code: 'CANCELLED' } });
    await asks(vendors.openai)[0]!.aborted;
    const { transcript } = await polylogue.call('threads', { action: 'read', continuation_id: 'last' });
    expect(transcript[0].status).toBe('interrupted');
  });

  it('keeps a reply within its limit and says where the rest is', async () => {
    await start({ MAX_MCP_OUTPUT_TOKENS: '4000' });
    for (const vendor of Object.values(vendors))
      vendor.byDefault(answering(`${verdict('long')}\n${'a longer argument follows. '.repeat(400)}`));
    const reply = await polylogue.call('consensus', { prompt: proposal, models: three });
    expect(JSON.stringify(reply).length / 4).toBeLessThan(4_000);
    expect(reply.responses).toHaveLength(3);
    for (const { verdict: text } of reply.responses) expect(text).toContain('[cut]');
    const { continuation_id } = reply.continuation_offer;
    const page = await polylogue.call('threads', {
      action: 'read',
      continuation_id,
      cursor: reply.truncated.next_cursor,
    });
    expect(page.transcript[0].content).toContain('# Consensus');
  });
});

describe('consensus step by step', () => {
  const panel = [
    { model: models.openai, stance: 'for' },
    { model: models.anthropic, stance: 'against', stance_prompt: 'Think of the night shift.' },
  ];
  const step = (n: number, more: Record<string, unknown> = {}) => ({
    step: n === 1 ? proposal : `PRIVATE NOTES ${n}`,
    step_number: n,
    total_steps: 2,
    next_step_required: n < 2,
    findings,
    ...(n === 1 && { models: panel, relevant_files: ['table.ts'] }),
    ...more,
  });

  it('asks one model a call and answers with the keys that callers know', async () => {
    await start();
    const first = await polylogue.call('consensus', step(1));
    expect(first).toMatchObject({
      isError: false,
      status: 'analysis_and_first_model_consulted',
      step_number: 1,
      total_steps: 2,
      model_consulted: models.openai,
      model_stance: 'for',
      model_response: {
        model: models.openai,
        stance: 'for',
        status: 'success',
        verdict: expect.stringContaining('OPENAI-VERDICT'),
        metadata: { provider: 'openai', model_name: models.openai },
      },
      current_model_index: 1,
      next_step_required: true,
      agent_analysis: { initial_analysis: proposal, findings },
      accumulated_responses: [
        { model: models.openai, stance: 'for', status: 'success', verdict: 'OPENAI-VERDICT yes' },
      ],
      consensus_workflow_status: 'initial_analysis_complete',
      next_steps: expect.stringContaining('step_number 2'),
      metadata: {
        tool_name: 'consensus',
        workflow_type: 'multi_model_consensus',
        models_to_consult: [`${models.openai}:for`, `${models.anthropic}:against`],
        consultation_step: 1,
        total_consultation_steps: 2,
      },
      continuation_offer: {
        continuation_id: expect.any(String),
        note: expect.any(String),
        remaining_turns: expect.any(Number),
      },
    });
    expect(all()).toHaveLength(1);
    const { continuation_id } = first.continuation_offer;
    const second = await polylogue.call('consensus', step(2, { continuation_id, relevant_files: ['table.ts'] }));
    expect(second).toMatchObject({
      status: 'consensus_workflow_complete',
      step_number: 2,
      model_consulted: models.anthropic,
      model_stance: 'against',
      model_response: { status: 'success', verdict: expect.stringContaining('ANTHROPIC-VERDICT') },
      current_model_index: 2,
      next_step_required: false,
      consensus_complete: true,
      complete_consensus: {
        initial_prompt: proposal,
        models_consulted: [`${models.openai}:for`, `${models.anthropic}:against`],
        total_responses: 2,
        consensus_confidence: 'low',
      },
      accumulated_responses: [{ verdict: 'OPENAI-VERDICT yes' }, { verdict: 'ANTHROPIC-VERDICT no' }],
      consensus_workflow_status: 'ready_for_synthesis',
      metadata: {
        workflow_type: 'multi_model_consensus',
        models_consulted: [`${models.openai}:for`, `${models.anthropic}:against`],
        consensus_complete: true,
        total_models: 2,
      },
    });
    expect(second.agent_analysis).toBeUndefined();
  });

  it('blinds each model: proposal, files and its side, nothing else', async () => {
    await start();
    const chat = await polylogue.call('chat', { prompt: 'CHAT-QUESTION', model: models.google });
    const { continuation_id } = chat.continuation_offer;
    await polylogue.call('consensus', step(1, { continuation_id }));
    await polylogue.call('consensus', step(2, { continuation_id }));
    const [forIt] = asks(vendors.openai);
    const [against] = asks(vendors.anthropic);
    for (const request of [forIt!, against!]) {
      expect(textOf(request)).toContain(proposal);
      expect(textOf(request)).toContain('TABLE-TEXT');
      expect(textOf(request)).not.toMatch(/SECRET FINDING|PRIVATE NOTES|CHAT-QUESTION|-VERDICT/);
    }
    expect(textOf(forIt!)).toContain('Your side: FOR');
    expect(textOf(against!)).toContain('Your side: AGAINST');
    expect(textOf(against!)).toContain('Never invent a fault');
    expect(textOf(against!)).toContain('Think of the night shift.');
    expect(textOf(forIt!)).not.toContain('night shift');
  });

  it('answers a failing model in band and goes on, even if all fail', async () => {
    await start();
    vendors.openai.byDefault({ fault: 'status', status: 400 });
    const unknown = [panel[0], { model: 'no-such-model-anywhere' }];
    const first = await polylogue.call('consensus', step(1, { models: unknown }));
    expect(first).toMatchObject({
      isError: false,
      status: 'analysis_and_first_model_consulted',
      model_response: { model: models.openai, stance: 'for', status: 'error', error: expect.any(String) },
      next_steps: expect.stringMatching(/^This model did not answer\./),
      next_step_required: true,
    });
    const { continuation_id } = first.continuation_offer;
    const second = await polylogue.call('consensus', step(2, { continuation_id }));
    expect(second).toMatchObject({
      isError: false,
      status: 'consensus_workflow_complete',
      model_response: { status: 'error' },
      complete_consensus: { total_responses: 2, responses_with_verdict: 0, consensus_confidence: 'unknown' },
      next_steps: expect.stringContaining(`${models.openai}:for (step 1), no-such-model-anywhere:neutral (step 2)`),
    });
    vendors.openai.byDefault(answering(verdict('OPENAI-VERDICT yes')));
    const again = await polylogue.call('consensus', step(1, { models: unknown, continuation_id }));
    expect(again).toMatchObject({ step_number: 1, complete_consensus: { responses_with_verdict: 1 } });
    expect(again.next_steps).toContain('not all answered: no-such-model-anywhere:neutral (step 2). To ask');
  });

  it('says of other models at a later step that they are not asked', async () => {
    await start();
    const { continuation_id } = (await polylogue.call('consensus', step(1))).continuation_offer;
    const other = await polylogue.call('consensus', step(2, { continuation_id, models: [{ model: models.google }] }));
    expect(other.model_consulted).toBe(models.anthropic);
    expect(other.metadata.warnings).toEqual([expect.stringMatching(/^"models" was ignored/)]);
    expect(other.next_steps).toMatch(/^All models were heard\./);
  });

  it('keeps two runs on two threads apart, also in another process', async () => {
    await start();
    const other = { step: 'Use tabs?', models: [{ model: models.google }, { model: models.openai }] };
    const a = await polylogue.call('consensus', step(1));
    const b = await polylogue.call('consensus', step(1, other));
    await polylogue.restart();
    const aId = a.continuation_offer.continuation_id;
    const bId = b.continuation_offer.continuation_id;
    expect(aId).not.toBe(bId);
    const [bEnd, aEnd] = await Promise.all([
      polylogue.call('consensus', step(2, { continuation_id: bId })),
      polylogue.call('consensus', step(2, { continuation_id: aId })),
    ]);
    expect(aEnd).toMatchObject({ model_consulted: models.anthropic, complete_consensus: { initial_prompt: proposal } });
    expect(bEnd).toMatchObject({ model_consulted: models.openai, complete_consensus: { initial_prompt: 'Use tabs?' } });
    const asked = asks(vendors.openai).map(textOf);
    expect(asked[1]).toContain('Use tabs?');
    expect(asked[1]).not.toContain(proposal);
  });

  it('sends no whole verdict twice', async () => {
    await start();
    const many = ['gpt-5', 'gpt-5-mini', 'gpt-5-nano', 'o3'].map(model => ({ model }));
    vendors.openai.byDefault({ answer: `${verdict('short')}\n${'and a long reason for it. '.repeat(100)}` });
    let reply = await polylogue.call('consensus', step(1, { models: many }));
    const { continuation_id } = reply.continuation_offer;
    for (const n of [2, 3, 4]) reply = await polylogue.call('consensus', step(n, { continuation_id }));
    expect(reply.accumulated_responses).toHaveLength(4);
    expect(JSON.stringify(reply.accumulated_responses).length).toBeLessThan(1_000);
    const { transcript } = await polylogue.call('threads', { action: 'read', continuation_id });
    const [{ turn }] = reply.accumulated_responses;
    expect(transcript[turn - 1].content).toContain('and a long reason for it.');
  });

  it.each([
    ['without the thread', step(2), 'without continuation_id'],
    ['without models', { ...step(1), models: undefined }, 'needs "models"'],
    ['with twins', step(1, { models: [{ model: 'o3' }, { model: 'O3' }] }), 'twice'],
  ])('refuses a step %s', async (_what, args, message) => {
    await start();
    const reply = await polylogue.call('consensus', args);
    expect(reply.isError).toBe(true);
    expect(reply.error.message).toContain(message);
    expect(all()).toEqual([]);
  });

  it('asks each model once, whatever numbers the steps bear', async () => {
    await start();
    const first = await polylogue.call('consensus', step(1));
    const { continuation_id } = first.continuation_offer;
    const again = await polylogue.call('consensus', step(1, { continuation_id }));
    expect(again).toMatchObject({ step_number: 1, model_response: { verdict: first.model_response.verdict } });
    expect(JSON.stringify(again.metadata.warnings)).toContain('no model was asked');
    expect(all()).toHaveLength(1);
    const gap = await polylogue.call('consensus', step(3, { continuation_id }));
    expect(gap).toMatchObject({ status: 'consensus_workflow_complete', step_number: 2 });
    expect(JSON.stringify(gap.metadata.warnings)).toContain('step 2 was next');
    const late = await polylogue.call('consensus', step(3, { continuation_id }));
    expect(late.model_response.verdict).toBe(gap.model_response.verdict);
    expect(late.complete_consensus).toEqual(gap.complete_consensus);
    expect(all()).toHaveLength(2);
  });

  it('begins with a later step that names the models, and asks a model that failed again', async () => {
    await start();
    vendors.openai.script({ fault: 'status', status: 400 });
    const first = await polylogue.call('consensus', { ...step(1), step_number: 2 });
    expect(first).toMatchObject({ step_number: 1, model_response: { status: 'error' } });
    const { continuation_id } = first.continuation_offer;
    const again = await polylogue.call('consensus', step(1, { continuation_id }));
    expect(again).toMatchObject({ model_response: { status: 'success' }, current_model_index: 1 });
    expect(again.accumulated_responses).toHaveLength(1);
  });

  it.each([
    ['nulls', null, null],
    ['zeros', 0, ''],
    ['ones', 1, ''],
  ])('is the form at once where all other fields are filled with %s', async (_what, number, text) => {
    await start();
    const empty = { models: [], relevant_files: [], rounds: number, synthesizer: text, step: text, findings: text };
    const numbers = { step_number: number, total_steps: number, next_step_required: false, current_model_index: 0 };
    const cost = number === 1 ? null : number;
    const reply = await polylogue.call('consensus', {
      ...{ prompt: proposal, max_cost_usd: cost, continuation_id: text },
      ...empty,
      ...numbers,
    });
    expect(reply.status).toBe('consensus_complete');
  });
});
