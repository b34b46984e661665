import { describe, expect, it } from 'vitest';
import { loadCatalogue } from '../../src/models/catalogue/model-sources.ts';
import { azure } from '../../src/providers/azure.ts';
import { askProvider } from '../contracts/ask-provider.ts';
import { providerSuite } from '../contracts/provider-suite.ts';
import { catalogueModel } from '../models/catalogue-model.ts';
import type { FakeVendorOptions } from '../support/vendors/fake-vendor.ts';
import { startAzure } from '../support/vendors/start-azure.ts';

const deployments = 'prod = gpt-5.1, gpt-5-mini, prod=gpt-4o, ,thinker,=x';
const start = (options?: FakeVendorOptions) => startAzure({ prod: 'gpt-5.1', thinker: 'gpt-5.1' }, options);
const [prod] = azure.models({ deployments }, loadCatalogue());
const shared = {
  definition: azure,
  start,
  model: prod!,
  marks: false,
  keyName: 'AZURE_OPENAI_API_KEY',
  unlisted: true,
};
const headers = { 'api-key': 'test-key', 'content-type': 'application/json' };

providerSuite({
  ...shared,
  name: 'azure (responses)',
  settings: (endpoint, apiKey = 'test-key') => ({ apiKey, endpoint, deployments }),
  path: '/openai/v1/responses',
  headers,
  body: {
    store: false,
    prompt_cache_key: 'thread-1',
    max_output_tokens: 2000,
    reasoning: { effort: 'none' },
    input: [
      { role: 'developer', content: 'You are careful.' },
      { role: 'user', content: [{ type: 'input_text', text: 'What is this?' }] },
      { role: 'developer', content: expect.stringContaining('WHAT TO DO NOW') },
    ],
  },
  thinking: [{ ask: { effort: 'max' }, body: { reasoning: { effort: 'high' } } }],
  imageBody: base64 => ({
    input: [
      {
        role: 'user',
        content: [{ type: 'input_text' }, { type: 'input_image', image_url: `data:image/png;base64,${base64}` }],
      },
    ],
  }),
  roles: ['developer', 'user', 'developer'],
  tells: { cacheWrite: true },
});

providerSuite({
  ...shared,
  name: 'azure (deployment addresses)',
  settings: (endpoint, apiKey = 'test-key') => ({ apiKey, endpoint, deployments, apiVersion: '2024-10-21' }),
  path: '/openai/deployments/prod/chat/completions?api-version=2024-10-21',
  headers,
  body: {
    max_completion_tokens: 2000,
    reasoning_effort: 'none',
    messages: [
      { role: 'system', content: 'You are careful.' },
      { role: 'user', content: 'What is this?' },
      { role: 'system', content: expect.stringContaining('WHAT TO DO NOW') },
    ],
  },
  thinking: [{ ask: { effort: 'medium' }, body: { reasoning_effort: 'medium' } }],
  imageBody: base64 => ({
    messages: [
      {
        role: 'user',
        content: [{ type: 'text' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } }],
      },
    ],
  }),
  roles: ['system', 'user', 'system'],
  tells: { cacheWrite: true },
});

describe('azure', () => {
  it('serves what the operator named: known models under the name of their deployment, once', () => {
    const { provider: _, aliases: __, ...facts } = catalogueModel('openai', 'gpt-5.1');
    const models = azure.models({ deployments, reasoningDeployments: 'thinker, other' }, loadCatalogue());
    expect(models.map(({ id }) => id)).toEqual(['prod', 'gpt-5-mini', 'thinker', 'other']);
    expect(models[0]).toEqual({
      ...facts,
      provider: 'azure',
      id: 'prod',
      deployed: 'gpt-5.1',
      name: `${facts.name} (prod)`,
      aliases: [],
    });
    expect(models[2]).toMatchObject({ reasoning: true, efforts: ['low', 'medium', 'high'], input: ['text'] });
    expect(azure.models({}, loadCatalogue())).toEqual([]);
  });

  it('sends the effort to a deployment of an unknown model that was said to think', async () => {
    const vendor = await start();
    try {
      const settings = { apiKey: 'test-key', endpoint: vendor.url, reasoningDeployments: 'thinker' };
      await askProvider(azure, settings, azure.models(settings, loadCatalogue())[0]!, { effort: 'high' });
      expect(vendor.requests[0]?.body).toMatchObject({ model: 'thinker', reasoning: { effort: 'high' } });
    } finally {
      await vendor.close();
    }
  });

  it.each([
    [{}, '/openai/v1/responses'],
    [{ apiStyle: 'chat' }, '/openai/v1/chat/completions'],
    [{ apiVersion: 'preview' }, '/openai/v1/responses?api-version=preview'],
    [{ apiVersion: '2025-04-01-preview' }, '/openai/responses?api-version=2025-04-01-preview'],
    [
      { apiVersion: '2025-04-01-preview', apiStyle: 'chat' },
      '/openai/deployments/prod/chat/completions?api-version=2025-04-01-preview',
    ],
  ])('asks at the address of %j, however the endpoint is written', async (more, path) => {
    const vendor = await start();
    try {
      const { origin } = new URL(vendor.url);
      for (const endpoint of [origin, `${origin}/`, `${origin}/openai`, `${origin}/openai/v1/`]) {
        await askProvider(azure, { apiKey: 'test-key', endpoint, deployments, ...more }, prod!);
        expect(vendor.requests.at(-1)?.path).toBe(path);
      }
    } finally {
      await vendor.close();
    }
  });

  it.each([
    [{}, '/openai/v1/chat/completions'],
    [{ apiVersion: '2025-04-01-preview' }, '/openai/deployments/seek/chat/completions?api-version=2025-04-01-preview'],
  ])("asks another vendor's deployment through chat, with nothing of OpenAI's: %j", async (more, path) => {
    const vendor = await startAzure({ seek: 'DeepSeek-V4-Pro', prod: 'gpt-5.1' });
    try {
      const settings = {
        apiKey: 'test-key',
        endpoint: vendor.url,
        deployments: 'seek=DeepSeek-V4-Pro,prod=gpt-5.1',
        reasoningDeployments: 'seek',
        ...more,
      };
      const [seek, own] = azure.models(settings, loadCatalogue());
      await askProvider(azure, settings, seek!, { effort: 'high' });
      await askProvider(azure, settings, own!, {});
      expect(vendor.violations).toEqual([]);
      expect(vendor.requests[0]).toMatchObject({ path, body: { reasoning_effort: 'high' } });
      expect(vendor.requests[0]?.body).not.toHaveProperty('prompt_cache_key');
      expect(vendor.requests[1]?.body).toMatchObject({ store: false });
    } finally {
      await vendor.close();
    }
  });

  it.each([
    [{ apiStyle: 'chat' }, { store: false, prompt_cache_key: 'thread-1' }],
    [
      { apiStyle: 'chat', apiVersion: 'preview' },
      { store: false, prompt_cache_key: 'thread-1' },
    ],
    [{ apiVersion: '2024-10-21' }, {}],
    [{ apiVersion: '2025-04-01-preview', apiStyle: 'chat' }, {}],
  ])(
    'asks chat to store nothing, and with a key of the cache, where its version knows them: %j',
    async (more, told) => {
      const vendor = await start();
      try {
        const settings = { apiKey: 'test-key', endpoint: vendor.url, deployments, ...more };
        await askProvider(azure, settings, prod!, { cacheKey: 'thread-1' });
        const { store, prompt_cache_key } = Object(vendor.requests[0]?.body);
        expect({ store, prompt_cache_key }).toEqual(told);
        expect(vendor.violations).toEqual([]);
      } finally {
        await vendor.close();
      }
    },
  );

  it.each([
    ['gpt-5.6-terra', 'none'],
    ['gpt-5.1', 'high'],
  ])('in chat style gives %s functions with the effort %s', async (model, effort) => {
    const vendor = await startAzure({ prod: model });
    try {
      const settings = { apiKey: 'test-key', endpoint: vendor.url, deployments: `prod=${model}`, apiStyle: 'chat' };
      const [deployed] = azure.models(settings, loadCatalogue());
      const tools = [{ name: 'look', description: 'Looks.', inputSchema: { type: 'object' as const } }];
      await askProvider(azure, settings, deployed!, { effort: 'high', tools });
      expect(vendor.violations).toEqual([]);
      expect(vendor.requests[0]?.body).toMatchObject({ reasoning_effort: effort });
      await askProvider(azure, settings, deployed!, { effort: 'high' });
      expect(vendor.requests[1]?.body).toMatchObject({ reasoning_effort: 'high' });
    } finally {
      await vendor.close();
    }
  });

  it('says which setting is wrong', async () => {
    const connect = (settings: object) =>
      azure.connect({ apiKey: 'k', endpoint: 'https://x.openai.azure.com', ...settings });
    await expect(connect({ apiVersion: 'newest' })).rejects.toThrow('AZURE_OPENAI_API_VERSION');
    await expect(connect({ endpoint: 'my-resource' })).rejects.toThrow('AZURE_OPENAI_ENDPOINT');
    expect(azure.configured({ apiKey: 'k' })).toBe(false);
  });
});
