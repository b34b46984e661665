import { describe, expect, it } from 'vitest';
import { dial } from '../../src/providers/dial.ts';
import { providerSuite } from '../contracts/provider-suite.ts';
import { modelInfo } from '../models/scripted-model.ts';
import { testProduct } from '../support/product.ts';
import { tempProject } from '../support/temp-project.ts';
import type { FakeVendorOptions } from '../support/vendors/fake-vendor.ts';
import { startDial } from '../support/vendors/start-dial.ts';

const withTail = expect.stringMatching(/^What is this\?\n\n[\s\S]*WHAT TO DO NOW/);
const hostOf = (url: string) => url.replace(/\/openai$/, '');

providerSuite({
  name: 'dial',
  definition: dial,
  start: startDial,
  settings: (url, apiKey = 'test-key') => ({ apiKey, host: hostOf(url) }),
  model: modelInfo({ provider: 'dial', id: 'anthropic.claude-v4-sonnet', input: ['text', 'image'], efforts: ['low'] }),
  path: '/openai/deployments/anthropic.claude-v4-sonnet/chat/completions?api-version=2024-12-01-preview',
  headers: { 'api-key': 'test-key', 'content-type': 'application/json' },
  body: {
    max_tokens: 2000,
    stream_options: { include_usage: true },
    messages: [
      { role: 'system', content: 'You are careful.' },
      { role: 'user', content: withTail },
    ],
  },
  thinking: [
    // Only OpenAI's models are known to take an effort there.
    { ask: { effort: 'low' }, body: { max_tokens: 2000, temperature: 0.4 } },
  ],
  temperature: { temperature: 0.4 },
  imageBody: base64 => ({
    messages: [
      {
        role: 'user',
        content: [{ type: 'text' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } }],
      },
    ],
  }),
  roles: ['system', 'user'],
  tells: { cacheWrite: true },
  marks: false,
  keyName: 'DIAL_API_KEY',
});

async function withDial<Result>(
  options: FakeVendorOptions,
  env: Record<string, string>,
  work: (opened: Awaited<ReturnType<typeof open>>) => Promise<Result>,
): Promise<Result> {
  const opened = await open(options, env);
  try {
    return await work(opened);
  } finally {
    await opened.polylogue.close();
    await opened.vendor.close();
    await opened.project.dispose();
  }
}

async function open(options: FakeVendorOptions, env: Record<string, string>) {
  const vendor = await startDial(options);
  const project = await tempProject({ 'a.md': 'A line.\n' });
  const settings = { DIAL_API_KEY: 'test-key', DIAL_API_HOST: hostOf(vendor.url), ...env };
  const polylogue = await testProduct({ root: project.root, env: settings });
  return { vendor, project, polylogue };
}

const models = [
  { id: 'gpt-5.2', window: 100_000, capabilities: ['chat_completion', 'image'] },
  { id: 'text-embedding-ada-002', capabilities: ['embeddings'] },
  { id: 'house-model' },
];

describe('dial in the product', () => {
  it('offers the deployments that can be conversed with, as their makers describe them', () =>
    withDial({ models }, {}, async ({ polylogue }) => {
      const [state] = (await polylogue.product.models.providers({ fresh: true })).filter(({ id }) => id === 'dial');
      expect(state?.models.map(({ id }) => id)).toEqual(['gpt-5.2', 'house-model']);
      expect(state?.models[0]).toMatchObject({ window: 100_000, reasoning: true, input: ['text', 'image'] });
      expect(state?.models[0]?.efforts).toContain('high');
      expect(state?.models[1]).toMatchObject({ window: 32_768, windowAssumed: true, efforts: [] });
    }));

  it('is reached by a plain name, by an alias of the maker, and by `dial:name`', () =>
    withDial({ models }, { DIAL_API_VERSION: '2025-04-01' }, async ({ polylogue, vendor }) => {
      for (const model of ['gpt-5.2', 'dial:gpt-5.2', 'dial:GPT 5.2', 'dial:house-model']) {
        const reply = await polylogue.call('chat', { prompt: 'Hi', model });
        expect(reply.metadata).toMatchObject({ provider_used: 'dial' });
      }
      const asked = vendor.requests.filter(({ dialect }) => dialect === 'chat');
      expect(asked.map(({ path }) => path.split('/')[3])).toEqual(['gpt-5.2', 'gpt-5.2', 'gpt-5.2', 'house-model']);
      expect(asked[0]?.path).toContain('?api-version=2025-04-01');
      expect(vendor.requests.filter(({ dialect }) => dialect === 'models')).toHaveLength(1);
      expect(vendor.violations).toEqual([]);
    }));

  it("tells OpenAI's reasoning models the effort and the limit in their words", () =>
    withDial({ models }, {}, async ({ polylogue, vendor }) => {
      const reply = await polylogue.call('chat', { prompt: 'Hi', model: 'dial:gpt-5.2:high' });
      expect(reply.status).not.toBe('error');
      const body = vendor.requests.find(({ dialect }) => dialect === 'chat')?.body;
      expect(body).toMatchObject({ reasoning_effort: 'high', max_completion_tokens: expect.any(Number) });
      expect(body).not.toHaveProperty('max_tokens');
      expect(vendor.violations).toEqual([]);
    }));

  it('knows a deployment by the model whose dated release it names', () =>
    withDial({ models: [{ id: 'o3-2025-04-16' }] }, {}, async ({ polylogue, vendor }) => {
      for (const model of ['o3', 'o3-2025-04-16']) {
        const reply = await polylogue.call('chat', { prompt: 'Hi', model, temperature: 0.5 });
        expect(reply.metadata).toMatchObject({ model_used: 'o3-2025-04-16', provider_used: 'dial' });
        const body = vendor.requests.findLast(({ dialect }) => dialect === 'chat')?.body;
        expect(body).toMatchObject({ reasoning_effort: 'medium', max_completion_tokens: expect.any(Number) });
      }
      expect(vendor.violations).toEqual([]);
    }));

  it('says that a window was assumed, and asks by name for what is not listed', () =>
    withDial({}, {}, async ({ polylogue, vendor }) => {
      const reply = await polylogue.call('chat', { prompt: 'Hi', model: 'dial:applications/b/my-app' });
      expect(reply.metadata.warnings.join()).toMatch(/not in the list of dial/);
      const asked = vendor.requests.find(({ dialect }) => dialect === 'chat');
      expect(asked?.path).toContain('/openai/deployments/applications/b/my-app/chat/completions');
    }));
});
