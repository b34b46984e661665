import { afterEach, describe, expect, it } from 'vitest';
import { readModelFiles } from '../../../src/config/definition-files.ts';
import { testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor, FakeVendorOptions } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function start(
  files: Record<string, string>,
  env: (project: TempProject) => Record<string, string>,
  options: FakeVendorOptions = {},
) {
  const vendor: FakeVendor = await startOpenAi(options);
  const project = await tempProject(files);
  const polylogue = await testProduct({
    root: project.root,
    env: { ...vendorEnv({ openai: vendor.url }), ...env(project) },
  });
  open.push(async () => {
    await polylogue.close();
    await vendor.close();
    await project.dispose();
  });
  const model = async (id: string) =>
    (await polylogue.product.models.providers({ fresh: true }))
      .find(state => state.id === 'openai')
      ?.models.find(row => row.id === id);
  return { vendor, polylogue, model };
}

const list = (...models: object[]) => JSON.stringify({ _README: 'notes', models });

describe("the operator's files about models", () => {
  it('win over the catalogue and over what the vendor lists', async () => {
    const file = list(
      { model_name: 'gpt-5.2', context_window: 50_000, aliases: ['work'] },
      { model_name: 'house-gpt' },
    );
    const { polylogue, model } = await start(
      { 'openai.json': file },
      project => ({ OPENAI_MODELS_CONFIG_PATH: project.path('openai.json') }),
      { models: [{ id: 'gpt-5.2', window: 90_000 }, { id: 'house-gpt' }] },
    );
    expect(await model('gpt-5.2')).toMatchObject({ window: 50_000, aliases: ['work'] });
    expect(await model('house-gpt')).toMatchObject({ score: 10 });
    expect((await polylogue.call('chat', { prompt: 'Hi', model: 'work' })).metadata).toMatchObject({
      model_used: 'gpt-5.2',
    });
    expect((await polylogue.call('chat', { prompt: 'Hi', model: 'house-gpt' })).metadata).toMatchObject({
      model_used: 'house-gpt',
    });
    expect(polylogue.product.models.warnings).toEqual([]);
  });

  it('may be one, in JSON or YAML, with a list for each provider; it wins over the single ones', async () => {
    const yaml = [
      '# What we use',
      'openai:',
      '  models:',
      '    - model_name: gpt-5.2',
      '      context_window: 60000',
      '      supports_images: false',
      'nobody:',
      '  - model_name: x',
    ].join('\n');
    const { polylogue, model } = await start(
      {
        'all.yaml': yaml,
        'openai.json': list({ model_name: 'gpt-5.2', context_window: 50_000, max_output_tokens: 999 }),
      },
      project => ({
        POLYLOGUE_MODELS_FILE: project.path('all.yaml'),
        OPENAI_MODELS_CONFIG_PATH: project.path('openai.json'),
      }),
    );
    expect(await model('gpt-5.2')).toMatchObject({
      window: 60_000,
      maxOutput: 999,
      input: expect.not.arrayContaining(['image']),
    });
    expect(polylogue.product.models.warnings).toEqual([expect.stringContaining('"nobody"')]);
  });

  it('lose a bad entry with a warning at the start, and nothing else', async () => {
    const file = list({ model_name: 'gpt-5.2', intelligence_score: 77 }, { context_window: 5 }, { model_name: 'good' });
    const { polylogue, model } = await start({ 'm.json': file }, project => ({
      OPENAI_MODELS_CONFIG_PATH: project.path('m.json'),
    }));
    expect(polylogue.product.models.warnings).toEqual([
      expect.stringMatching(/Model 1 .*intelligence_score/),
      expect.stringMatching(/Model 2 .*model_name/),
    ]);
    await expect.poll(() => polylogue.log.join('\n')).toMatch(/Model 1 .*intelligence_score/);
    expect(await model('good')).toBeDefined();
    expect((await model('gpt-5.2'))?.score).toBeLessThanOrEqual(20);
  });

  it('say how hard a model thinks where a call does not', async () => {
    const file = list({ model_name: 'gpt-5.2', default_reasoning_effort: 'low' });
    const { vendor, polylogue } = await start({ 'm.json': file }, project => ({
      OPENAI_MODELS_CONFIG_PATH: project.path('m.json'),
    }));
    const effortOf = async (tool: string, args: object) => {
      await polylogue.call(tool, { prompt: 'Hi', ...args });
      return vendor.requests.at(-1)?.body;
    };
    const asked = (effort: string) => expect.objectContaining({ reasoning: expect.objectContaining({ effort }) });
    expect(await effortOf('chat', { model: 'gpt-5.2' })).toEqual(asked('low'));
    expect(await effortOf('chat', { model: 'gpt-5.1' })).toEqual(asked('medium'));
    expect(await effortOf('chat', { model: 'gpt-5.2', thinking_mode: 'high' })).toEqual(asked('high'));
    expect(
      await effortOf('consensus', { models: [{ model: 'gpt-5.2' }, { model: 'gpt-5.2', stance: 'for' }] }),
    ).toEqual(asked('low'));
    expect(await effortOf('chat', { model: 'gpt-5.2:high' })).toEqual(asked('high'));
  });

  it('leave open what is null, and sizes of 0', async () => {
    const open = { context_window: 0, max_output_tokens: 0, aliases: null, default_reasoning_effort: null };
    const file = list({ model_name: 'gpt-5.2', ...open }, { model_name: 'new', ...open });
    const { polylogue, model } = await start({ 'm.json': file }, project => ({
      OPENAI_MODELS_CONFIG_PATH: project.path('m.json'),
    }));
    expect(polylogue.product.models.warnings).toEqual([]);
    expect(await model('gpt-5.2')).toMatchObject({ window: 400_000, aliases: ['5.2', 'gpt5.2'] });
    expect(await model('new')).toMatchObject({ window: 32_768, maxOutput: 8_192 });
  });

  it('name deployments on Azure, which are asked by their own name and found by the one of the model', async () => {
    const file = list(
      { model_name: 'gpt-5.2', deployment: 'prod-52', aliases: ['work'] },
      { model_name: 'gpt-5.2', deployment: 'a,b=c' },
      { deployment: 'nameless' },
      { model_name: 'gpt-5-nano', deployment_name: 'old-word', deployment: null },
    );
    const { polylogue } = await start({ 'azure.json': file }, project => ({
      ...{ AZURE_MODELS_CONFIG_PATH: project.path('azure.json'), AZURE_OPENAI_DEPLOYMENTS: 'mine=gpt-5-mini' },
      ...{ AZURE_OPENAI_API_KEY: 'test-key', AZURE_OPENAI_ENDPOINT: 'https://x.example' },
    }));
    const { models } = polylogue.product;
    for (const name of ['azure:gpt-5.2', 'azure:prod-52', 'work']) {
      const [first] = (await models.explain({ name, category: 'balanced', needs: {} })).candidates;
      expect(first?.model).toMatchObject({ provider: 'azure', id: 'prod-52', reasoning: true, window: 400_000 });
    }
    const azure = (await models.providers()).find(({ id }) => id === 'azure');
    expect(azure?.models.map(({ id }) => id)).toEqual(['prod-52', 'old-word', 'mine']);
  });

  it('are left out whole when they cannot be read, and the server starts all the same', async () => {
    const { polylogue } = await start({ 'bad.json': '{"models": [', 'bad.yml': 'a: [b' }, project => ({
      OPENAI_MODELS_CONFIG_PATH: project.path('bad.json'),
      GEMINI_MODELS_CONFIG_PATH: project.path('gone.json'),
      POLYLOGUE_MODELS_FILE: project.path('bad.yml'),
    }));
    const warnings = polylogue.product.models.warnings.join('\n');
    expect(warnings).toMatch(/bad\.json was left out: it is no JSON/);
    expect(warnings).toMatch(/gone\.json was left out: it does not exist/);
    expect(warnings).toMatch(/bad\.yml was left out: it is no YAML/);
    expect((await polylogue.call('chat', { prompt: 'Hi' })).isError).toBe(false);
  });

  it('run nothing: YAML is data', async () => {
    const evil = 'openai: !!js/function "function () { return 1; }"\n';
    const { files, warnings } = await readModelFiles({ modelsFile: '/m.yaml' }, () => evil);
    expect(files).toEqual([]);
    expect(warnings.join()).toContain('it is no YAML');
  });
});
