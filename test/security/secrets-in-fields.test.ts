import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const secret = `sk-proj-${'Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8'}`;
let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

beforeAll(async () => {
  vendor = await startOpenAi();
  project = await tempProject({ 'a.ts': 'export const a = 1;\n' });
  const custom = { CUSTOM_API_URL: vendor.url, CUSTOM_API_KEY: 'test-key' };
  const env = { ...vendorEnv({ openai: vendor.url }), ...custom, DEFAULT_MODEL: 'gpt-5.2', LOG_LEVEL: 'debug' };
  polylogue = await testProduct({ root: project.root, env });
});

afterAll(async () => {
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

const step = { step: 'Look.', step_number: 1, total_steps: 2, next_step_required: true, findings: 'None.' };

describe('a secret', () => {
  it.each<[string, string, Record<string, unknown>]>([
    ['the model’s name', 'chat', { prompt: 'x', model: `custom:${secret}` }],
    ['the model’s name without a provider', 'chat', { prompt: 'x', model: secret }],
    ['a continuation_id', 'chat', { prompt: 'x', continuation_id: secret }],
    ['the name of a field', 'chat', { prompt: 'x', [secret]: 1 }],
    ['a working directory', 'chat', { prompt: 'x', working_directory_absolute_path: `/${secret}` }],
    ['a path', 'chat', { prompt: 'x', absolute_file_paths: [`/${secret}`, 'a.ts'] }],
    ['a name of a tool', secret, {}],
    ['a choice', 'debug', { ...step, confidence: secret }],
    ['an issue', 'debug', { ...step, issues_found: [{ description: { inner: [secret] } }] }],
    ['a question', 'chat', { prompt: `Is ${secret} any good?` }],
    ['a cursor', 'threads', { action: 'list', cursor: secret }],
    ['a search', 'threads', { action: 'search', query: secret }],
  ])('in %s comes back in no reply and goes to no vendor', async (_where, tool, args) => {
    const messages: string[] = [];
    const onProgress = ({ message }: { message: string }) => void messages.push(message);
    const reply: Document = await polylogue.call(tool, args, { onProgress });
    expect(JSON.stringify([reply, messages])).not.toContain(secret);
    expect(JSON.stringify(vendor.requests)).not.toContain(secret);
  });

  it('that a vendor says in its refusal is not passed on', async () => {
    const body = { error: { message: `The key ${secret} may not do this`, type: 'permission' } };
    vendor.script({ fault: 'status', status: 403, body });
    const reply = await polylogue.call('chat', { prompt: 'x' });
    expect(reply.error.code).toBe('API_ERROR');
    expect(JSON.stringify(reply)).not.toContain(secret);
  });

  it('is neither in the store nor in the logs afterwards', async () => {
    await polylogue.product.close();
    const names = await readdir(polylogue.home, { recursive: true, withFileTypes: true });
    const files = names.filter(entry => entry.isFile());
    expect(files.map(({ name }) => name)).toEqual(expect.arrayContaining(['threads.sqlite', 'breadcrumbs.jsonl']));
    for (const { parentPath, name } of files) {
      expect(await readFile(join(parentPath, name), 'latin1'), name).not.toContain(secret);
    }
    expect(polylogue.log.join('')).not.toContain(secret);
  });
});
