import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { estimateCost } from '../../src/models/budget.ts';
import { catalogueModel } from '../models/catalogue-model.ts';
import { type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor, RecordedRequest } from '../support/vendors/fake-vendor.ts';
import { startAzure } from '../support/vendors/start-azure.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const pricing = { isLocal: () => false, allowUnpriced: false };
const limit = 0.03;

let vendor: FakeVendor;
let project: TempProject;

const source = Array.from({ length: 1_500 }, (_, n) => `export const value${n} = (a: number) => a + ${n};`).join('\n');

beforeAll(async () => {
  [vendor, project] = await Promise.all([startOpenAi(), tempProject({ 'src/large.ts': source, 'prompt.txt': source })]);
});
afterAll(async () => {
  await vendor.close();
  await project.dispose();
});
beforeEach(() => void vendor.requests.splice(0));

async function withProduct(env: Record<string, string>, use: (polylogue: TestProduct) => Promise<void>): Promise<void> {
  const own = {
    ...vendorEnv({ openai: vendor.url }),
    POLYLOGUE_STORE: 'memory',
    POLYLOGUE_TOOLSETS: 'core,code,wrapper',
  };
  const polylogue = await testProduct({ root: project.root, env: { ...own, ...env } });
  try {
    await use(polylogue);
  } finally {
    await polylogue.close();
  }
}

const asks = () => vendor.requests.filter(({ dialect }) => dialect !== 'models');
const bodyOf = ({ body }: RecordedRequest) => body as { model: string; max_output_tokens: number };

/** US dollars that a request can cost at the most. */
function worst(request: RecordedRequest): number {
  const { model, max_output_tokens } = bodyOf(request);
  const { fixed, perToken } = estimateCost(
    [{ model: catalogueModel('openai', model), reason: '' }],
    request.tokens,
    pricing,
  );
  return fixed + max_output_tokens * perToken;
}

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
  'a wrapper': polylogue => polylogue.call('prompt', { text: `What is this?\n${source.slice(0, 40_000)}` }),
};

describe.each(['AUTO_COST_LIMIT', 'MAX_COST_PER_REQUEST'])('a call without a named model under %s', setting => {
  it.each(Object.keys(doors))('%s is answered by a model that fits, within the limit', async door => {
    await withProduct({ [setting]: String(limit) }, async polylogue => {
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
