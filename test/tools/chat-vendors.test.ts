import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAzure } from '../support/vendors/start-azure.ts';
import { startDeepSeek } from '../support/vendors/start-deepseek.ts';
import { startGroq } from '../support/vendors/start-groq.ts';
import { startMinimax } from '../support/vendors/start-minimax.ts';
import { startXai } from '../support/vendors/start-xai.ts';

let project: TempProject;
let product: TestProduct | undefined;
let vendor: FakeVendor | undefined;

beforeEach(async () => {
  project = await tempProject();
});

afterEach(async () => {
  await product?.close();
  await vendor?.close();
  await project.dispose();
});

const cases = [
  ['xai', 'grok', 'grok-4.7', startXai],
  ['groq', 'llama-3.3-70b', 'llama-3.3-70b-versatile', startGroq],
  ['deepseek', 'deepseek', 'deepseek-v4-pro', startDeepSeek],
  ['minimax', 'minimax', 'MiniMax-M3', startMinimax],
  ['azure', 'prod', 'prod', () => startAzure({ prod: 'gpt-5.1' })],
] as const;

describe('chat', () => {
  it.each(cases)('asks %s by the name %s, and goes on with the thread', async (provider, name, model, start) => {
    vendor = await start();
    const env = { ...vendorEnv({ [provider]: vendor.url }), AZURE_OPENAI_DEPLOYMENTS: 'prod=gpt-5.1' };
    product = await testProduct({ root: project.root, env });
    vendor.script({ answer: 'Paris.', reasoning: 'France is in Europe.' });
    const prompt = 'What is the capital of France?';
    const first = await product.call('chat', { prompt, working_directory_absolute_path: project.root, model: name });
    expect(first).toMatchObject({
      isError: false,
      content: expect.stringContaining('Paris.'),
      metadata: { provider_used: provider, model_used: model },
    });
    expect(first.content).not.toContain('France is in Europe');
    const { continuation_id } = first.continuation_offer;
    await product.call('chat', {
      prompt: 'Are you sure?',
      working_directory_absolute_path: project.root,
      model: name,
      continuation_id,
    });
    const [before, after] = vendor.requests.filter(({ messages }) => messages.length > 0);
    expect(after?.messages.map(({ text }) => text).join('\n')).toContain('Paris.');
    expect(after?.canonical.startsWith(before?.canonical ?? '-')).toBe(true);
    expect(vendor.violations).toEqual([]);
  });

  it('gives Grok its sealed thoughts back when a thread goes on', async () => {
    vendor = await startXai();
    product = await testProduct({ root: project.root, env: vendorEnv({ xai: vendor.url }) });
    vendor.script({ answer: 'Paris.', reasoning: 'France is in Europe.' });
    const place = { working_directory_absolute_path: project.root, model: 'grok' };
    const first = await product.call('chat', { prompt: 'What is the capital of France?', ...place });
    await product.call('chat', { prompt: 'Sure?', ...place, ...first.continuation_offer });
    const sealed = Buffer.from('France is in Europe.').toString('base64');
    expect(vendor.requests.map(({ body }) => JSON.stringify(body).includes(sealed))).toEqual([false, true]);
  });

  it('says what to set for a vendor whose placeholder was never replaced', async () => {
    const env = { XAI_API_KEY: 'your_xai_api_key_here', AZURE_OPENAI_API_KEY: 'your_azure_key_here' };
    product = await testProduct({ root: project.root, env });
    for (const [name, setting] of [
      ['grok', 'XAI_API_KEY'],
      ['azure:prod', 'AZURE_OPENAI_API_KEY'],
    ] as const) {
      const reply = await product.call('chat', {
        prompt: 'x',
        working_directory_absolute_path: project.root,
        model: name,
      });
      expect(reply.isError).toBe(true);
      expect(JSON.stringify(reply)).toContain(setting);
    }
  });
});
