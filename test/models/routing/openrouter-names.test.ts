import { afterEach, describe, expect, it } from 'vitest';
import { type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor, FakeVendorOptions } from '../../support/vendors/fake-vendor.ts';
import { startOpenRouter } from '../../support/vendors/start-openrouter.ts';

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

async function start(options: FakeVendorOptions = {}) {
  vendor = await startOpenRouter(options);
  project = await tempProject({});
  polylogue = await testProduct({ root: project.root, env: vendorEnv({ openrouter: vendor.url }) });
}

afterEach(async () => {
  expect(vendor.violations).toEqual([]);
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

const asked = () => vendor.requests.filter(({ dialect }) => dialect === 'chat').map(({ body }) => body);
const chat = (model: string, more: Record<string, unknown> = {}) =>
  polylogue.call('chat', { prompt: 'Hi', model, ...more });
const thinks = (id: string, reasoning: object = {}) => ({
  id,
  window: 200_000,
  row: { supported_parameters: ['reasoning'], reasoning },
});

const names = [
  ['o3', 'openai/o3'],
  ['openai/o3', 'openai/o3'],
  ['o3-pro', 'openai/o3-pro'],
  ['claude-sonnet-4-5', 'anthropic/claude-sonnet-4.5'],
  ['x-ai/grok-9-new', 'x-ai/grok-9-new'],
  ['openrouter:x-ai/grok-9-new', 'x-ai/grok-9-new'],
  ['kimi-k2.6', 'moonshotai/kimi-k2.6'],
  // Of these the catalogue knows their makers' rows alone.
  ['gpt-6.2-sol', 'openai/gpt-6.2-sol'],
  ['glm-4.6', 'z-ai/glm-4.6'],
  ['claude-haiku-4-5-20251001', 'anthropic/claude-haiku-4.5'],
] as const;

describe('any model with the key of OpenRouter alone', () => {
  it.each(names)('%s is asked as %s, before any other call', async (name, id) => {
    await start();
    vendor.byDefault({ on: 'models', fault: 'status', status: 500 });
    const reply = await chat(name);
    expect(reply.error).toBeUndefined();
    expect(reply.metadata).toMatchObject({ provider_used: 'openrouter', model_used: id });
  });

  it('and after another one, with the list at hand', async () => {
    await start({ models: ['openai/gpt-5.6-luna', ...new Set(names.map(([, id]) => id))].map(id => ({ id })) });
    await chat('openai/gpt-5.6-luna');
    for (const [name, id] of names) {
      const reply = await chat(name);
      expect(reply.metadata).toMatchObject({ provider_used: 'openrouter', model_used: id });
    }
  });

  it('names OpenRouter in the error where even OpenRouter has none of the name', async () => {
    await start({ models: [{ id: 'openai/gpt-5.6-luna' }] });
    const reply = await chat('openai:o3');
    expect(reply).toMatchObject({ isError: true, error: { code: 'MODEL_NOT_FOUND', class: 'no_key' } });
    expect(reply.error.next).toContain('"openrouter:openai/o3"');
    expect((await chat('openai:gpt-6.2-sol')).error.next).toContain('"openrouter:openai/gpt-6.2-sol"');
  });
});

describe('thinking_mode at OpenRouter', () => {
  it.each([
    ['new/thinker', {}, 'minimal', 'low'],
    ['new/thinker', {}, 'none', 'none'],
    ['new/thinker', { supported_efforts: ['high', 'xhigh'] }, 'max', 'xhigh'],
    ['new/thinker', { mandatory: true, supported_efforts: ['low', 'high'] }, 'none', 'low'],
    ['openai/gpt-5.6-luna', { supported_efforts: ['xhigh', 'high', 'medium', 'low', 'none'] }, 'none', 'none'],
  ] as const)('reaches %s, of which the list tells %j: %s as %s', async (id, reasoning, mode, effort) => {
    await start({ models: [thinks(id, reasoning), { id: 'new/other' }] });
    // The list is looked at for a name that nobody knows.
    await chat('new/other');
    await chat(id, { thinking_mode: mode });
    expect(asked().at(-1)).toMatchObject({ model: id, reasoning: { effort } });
  });

  it('is not sent to what the list says does not think', async () => {
    await start({ models: [{ id: 'new/plain', row: { supported_parameters: ['tools'] } }] });
    await chat('new/plain', { thinking_mode: 'high' });
    expect(asked().at(-1)).not.toHaveProperty('reasoning');
  });
});
