import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { estimateCost } from '../../src/models/budget.ts';
import { catalogueModel } from '../models/catalogue-model.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor, RecordedRequest } from '../support/vendors/fake-vendor.ts';
import { startAzure } from '../support/vendors/start-azure.ts';
import { type FakeMoonshot, startMoonshot } from '../support/vendors/start-moonshot.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const pricing = { isLocal: () => false, allowUnpriced: false };
const limit = 0.03;

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkM9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

let vendor: FakeVendor;
/** Reads documents, and answers. */
let kimi: FakeMoonshot;
let project: TempProject;

const source = Array.from({ length: 1_500 }, (_, n) => `export const value${n} = (a: number) => a + ${n};`).join('\n');

beforeAll(async () => {
  [vendor, kimi, project] = await Promise.all([
    startOpenAi(),
    startMoonshot(),
    tempProject({
      ...{ 'src/large.ts': source, 'prompt.txt': source, 'shot.png': png, 'report.pdf': `%PDF-1.7\n${source}\0` },
    }),
  ]);
});
afterAll(async () => {
  await Promise.all([vendor.close(), kimi.close()]);
  await project.dispose();
});
beforeEach(() => {
  for (const { requests } of [vendor, kimi]) requests.splice(0);
});

async function withProduct(env: Record<string, string>, use: (polylogue: TestProduct) => Promise<void>): Promise<void> {
  const own = {
    ...vendorEnv({ openai: vendor.url }),
    POLYLOGUE_STORE: 'memory',
    POLYLOGUE_TOOLSETS: 'core,code,wrapper,agent',
  };
  const polylogue = await testProduct({ root: project.root, env: { ...own, ...env } });
  try {
    await use(polylogue);
  } finally {
    await polylogue.close();
  }
}

const asks = () => [...vendor.requests, ...kimi.requests].filter(({ dialect }) => dialect !== 'models');
const bodyOf = ({ body }: RecordedRequest) =>
  body as { model: string; max_output_tokens?: number; max_tokens?: number; max_completion_tokens?: number };
const outputOf = (request: RecordedRequest) => {
  const { max_output_tokens, max_completion_tokens, max_tokens } = bodyOf(request);
  return max_output_tokens ?? max_completion_tokens ?? max_tokens ?? Number.NaN;
};

/** US dollars that a request can cost at the most. */
function worst(request: RecordedRequest): number {
  const { model } = bodyOf(request);
  const provider = vendor.requests.includes(request) ? 'openai' : 'moonshot';
  const candidate = { model: catalogueModel(provider, model), reason: '' };
  const { fixed, perToken } = estimateCost(candidate, request.tokens, pricing);
  return fixed + outputOf(request) * perToken;
}

const onlyKimi = () => ({ ...vendorEnv({ moonshot: kimi.url }), OPENAI_API_KEY: '' });

const doors: Record<string, (polylogue: TestProduct) => Promise<unknown>> = {
  chat: polylogue =>
    polylogue.call('chat', { prompt: 'What is wrong here?', absolute_file_paths: [`${project.root}/src/large.ts`] }),
  'a workflow expert': polylogue =>
    polylogue.call('thinkdeep', {
      step: 'Is it sound?',
      step_number: 1,
      total_steps: 1,
      next_step_required: false,
      findings: 'It looks so.',
      relevant_files: [`${project.root}/src/large.ts`],
      confidence: 'low',
    }),
  'a panel': polylogue =>
    polylogue.call('consensus', { proposal: 'Split the file.', relevant_files: [`${project.root}/src/large.ts`] }),
  'an image': polylogue => polylogue.call('chat', { prompt: 'What is it?', images: Array(5).fill('shot.png') }),
  'a document': polylogue =>
    polylogue.call('chat', { prompt: 'What is it?', absolute_file_paths: [`${project.root}/report.pdf`] }),
  'an agent': polylogue => {
    const read = (path: string) => ({ calls: [{ name: 'read_file', args: { path } }], reasoning: 'Look.' });
    vendor.script(read('src/large.ts'), read('prompt.txt'), { answer: 'Done.' });
    return polylogue.call('agent', { task: 'What is wrong here?' });
  },
  'a wrapper': polylogue => polylogue.call('prompt', { text: `What is this?\n${source.slice(0, 40_000)}` }),
};

const settings = ['AUTO_COST_LIMIT', 'MAX_COST_PER_REQUEST', 'MAX_COST_PER_THREAD', 'MAX_COST_PER_DAY'];

describe.each(settings)('a call without a named model under %s', setting => {
  // A wrapper has no thread.
  const held = Object.keys(doors).filter(door => setting !== 'MAX_COST_PER_THREAD' || door !== 'a wrapper');
  it.each(held)('%s is answered by a model that fits, within the limit', async door => {
    const env = { [setting]: String(limit), ...(door === 'a document' && onlyKimi()) };
    await withProduct(env, async polylogue => {
      const reply = await doors[door]!(polylogue);
      expect(reply).toMatchObject({ isError: false });
      expect(asks().length).toBeGreaterThan(0);
      // What is reserved for one question is given back before the next one, where it was not used.
      for (const request of asks()) expect(worst(request), bodyOf(request).model).toBeLessThanOrEqual(limit * 1.05);
      const paid = (reply as { metadata?: { cost_usd?: number } }).metadata?.cost_usd ?? 0;
      expect(paid).toBeLessThanOrEqual(limit);
    });
  });
});

describe('what limits an automatic choice', () => {
  it('is no matter for a model that is named, and is told before where it is much', async () => {
    await withProduct({ AUTO_COST_LIMIT: '0.05' }, async polylogue => {
      const told: string[] = [];
      const onProgress = ({ message }: { message?: string }) => void told.push(message ?? '');
      const reply = await polylogue.call('chat', { prompt: 'Hello?', model: 'gpt-5.2-pro' }, { onProgress });
      expect(reply).toMatchObject({ isError: false });
      expect(bodyOf(asks()[0]!).model).toBe('gpt-5.2-pro');
      expect(told.join()).toMatch(/this call may cost up to \$1\d\.\d\d/);
      told.length = 0;
      await polylogue.call('chat', { prompt: 'Hello?', model: 'gpt-5-nano' }, { onProgress });
      expect(told.join()).not.toContain('may cost');
    });
  });

  it('is said not to hold where only models without a known price are left', async () => {
    const own = await startAzure({ prod: 'gpt-4.1' });
    const custom = {
      ...vendorEnv({ azure: own.url }),
      AZURE_OPENAI_DEPLOYMENTS: 'prod=house-model',
      OPENAI_API_KEY: '',
    };
    const said = async (env: Record<string, string>, args: object = {}) => {
      const warnings: string[] = [];
      await withProduct({ ...custom, ...env }, async polylogue => {
        for (const tool of ['chat', 'thinkdeep'] as const) {
          const step = { step: 'Is it?', step_number: 1, total_steps: 1, next_step_required: false, findings: 'So.' };
          const given = tool === 'chat' ? { prompt: 'Hello?' } : { ...step, confidence: 'low' };
          const reply = await polylogue.call(tool, { ...given, ...args });
          expect(reply).toMatchObject({ isError: false });
          warnings.push(...(reply.metadata.warnings ?? []).filter((text: string) => text.includes('AUTO_COST_LIMIT')));
        }
      });
      return warnings;
    };
    const warning = 'No price is known for azure:prod, so AUTO_COST_LIMIT $2.00 cannot be kept for this call.';
    expect(await said({})).toEqual([warning, warning]);
    expect(await said({ ALLOW_UNPRICED_MODELS: 'true' })).toEqual([]);
    expect(await said({}, { model: 'azure:prod' })).toEqual([]);
    await own.close();
  });

  it('refuses only where nothing fits, and says what to do', async () => {
    await withProduct({ AUTO_COST_LIMIT: '0.00001' }, async polylogue => {
      const { error } = await polylogue.call('chat', { prompt: 'Hello?' });
      expect(error).toMatchObject({ class: 'cost' });
      expect(error.next).toContain('AUTO_COST_LIMIT');
      expect(asks()).toEqual([]);
    });
  });

  it('weighs follow-ups anew where nobody named the model, and leaves a named one alone', async () => {
    await withProduct({}, async polylogue => {
      const first = await polylogue.call('chat', { prompt: 'First?', model: 'gpt-6-astra' });
      const { continuation_id } = first.continuation_offer;
      await polylogue.call('chat', { prompt: 'Second?', continuation_id });
      expect(asks().map(request => bodyOf(request).model)).toEqual(['gpt-6-astra', 'gpt-6-astra']);
      vendor.requests.splice(0);
      const chosen = await polylogue.call('chat', { prompt: 'First?' });
      const thread = chosen.continuation_offer.continuation_id;
      await polylogue.call('chat', { prompt: 'Second?', continuation_id: thread });
      const models = asks().map(request => bodyOf(request).model);
      expect(models[1]).toBe(models[0]);
      expect(asks().every(request => worst(request) <= 2)).toBe(true);
    });
  });
});

describe.each(['MAX_COST_PER_THREAD', 'MAX_COST_PER_DAY'])('calls that nobody names a model for, under %s', setting => {
  it('go on as long as it lasts, are refused by it then, and no other thread or owner has to wait', async () => {
    const cap = 0.1;
    vendor.byDefault({ answer: 'Yes.', usage: { output: 900 } });
    const env = { [setting]: String(cap), OPENAI_ALLOWED_MODELS: 'gpt-6-sol' };
    await withProduct(env, async polylogue => {
      const paid: number[] = [];
      let thread: string | undefined;
      let refused: Document;
      while (!refused && paid.length < 40) {
        const before = paid.reduce((sum, usd) => sum + usd, 0);
        const count = asks().length;
        const reply = await polylogue.call('chat', { prompt: 'And?', ...(thread && { continuation_id: thread }) });
        thread ??= reply.continuation_offer.continuation_id;
        for (const request of asks().slice(count)) expect(before + worst(request)).toBeLessThanOrEqual(cap * 1.01);
        if (reply.isError) refused = reply.error;
        else paid.push(reply.metadata.cost_usd);
      }
      expect(paid.length).toBeGreaterThan(3);
      expect(paid.reduce((sum, usd) => sum + usd, 0)).toBeLessThanOrEqual(cap);
      expect(refused).toMatchObject({ class: 'cost', data: { limit: setting, limit_usd: cap } });
      expect(refused.next).toContain(setting);
      const other = setting === 'MAX_COST_PER_DAY' ? { owner: 'another' } : {};
      expect(await polylogue.call('chat', { prompt: 'And here?' }, other)).toMatchObject({ isError: false });
    });
    vendor.byDefault({});
  });
});

describe('the rounds of an agent', () => {
  const run = async (args: object) => {
    const calls = [{ name: 'list_dir', args: { path: '.' } }];
    vendor.byDefault({ calls, reasoning: 'Look.', usage: { output: 2_000 } });
    let reply: Document;
    await withProduct({ AUTO_COST_LIMIT: '0.1' }, async polylogue => {
      reply = await polylogue.call('agent', { task: 'What is here?', max_rounds: 8, ...args });
    });
    vendor.byDefault({});
    return { reply, rounds: asks().length };
  };

  it('stay within AUTO_COST_LIMIT together, and what was done until then is told', async () => {
    const { reply, rounds } = await run({});
    expect(reply.error).toMatchObject({ class: 'cost', data: { limit: 'AUTO_COST_LIMIT', limit_usd: 0.1 } });
    expect(rounds).toBeGreaterThan(2);
    expect(rounds).toBeLessThan(9);
    expect(reply.tool_calls).toHaveLength(rounds);
    expect(reply.metadata.cost_usd).toBeGreaterThan(0.05);
    expect(reply.metadata.cost_usd).toBeLessThanOrEqual(0.1);
  });

  it('are all made by a model that was named', async () => {
    const { reply, rounds } = await run({ model: 'gpt-6-sol' });
    expect(reply).toMatchObject({ isError: false, stop_reason: 'max_rounds' });
    expect(rounds).toBe(9);
    expect(reply.metadata.cost_usd).toBeGreaterThan(0.1);
  });
});

describe('what a call may cost where a model is chosen for it', () => {
  const toldIn = async (door: string, allowed: string) => {
    const told: { message: string; asked: number }[] = [];
    const onProgress = ({ message = '' }) => void told.push({ message, asked: asks().length });
    await withProduct({ OPENAI_ALLOWED_MODELS: allowed }, async polylogue => {
      const call = (name: string, args?: Record<string, unknown>) => polylogue.call(name, args, { onProgress });
      expect(await doors[door]!({ ...polylogue, call })).toMatchObject({ isError: false });
    });
    expect(told.length).toBeGreaterThan(0);
    return told.filter(({ message }) => message.includes('may cost'));
  };

  it.each(['chat', 'a workflow expert', 'a panel', 'an agent'])(
    'is told before %s is paid, above $0.50',
    async door => {
      const costs = await toldIn(door, 'gpt-6-astra');
      expect(costs[0]).toMatchObject({ message: expect.stringContaining('this call may cost up to $'), asked: 0 });
      // It comes to the usual limit, and is never said to be more.
      expect(Math.max(...costs.map(({ message }) => Number(message.split('$')[1])))).toBe(2);
      expect(await toldIn(door, 'gpt-5-nano')).toEqual([]);
    },
  );
});
