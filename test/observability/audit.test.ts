import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

/** The machine may be busy. */
const patience = { timeout: 30_000 };

let project: TempProject;
let vendor: FakeVendor;
let polylogue: TestProduct;

beforeEach(async () => {
  project = await tempProject({ 'a.ts': 'const a = 1;\n', '.env': 'A=1\n' });
  vendor = await startOpenAi();
  const env = {
    ...vendorEnv({ openai: vendor.url }),
    POLYLOGUE_TOOLSETS: 'core,code,ops',
    DEFAULT_MODEL: 'openai:gpt-5.2',
  };
  polylogue = await testProduct({ root: project.root, env });
});
afterEach(async () => {
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

/** The audit log without what every line has. */
async function audit(): Promise<Document[]> {
  const text = await readFile(join(polylogue.home, 'logs/audit.jsonl'), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map(line => {
      const { ts, req_id, client, ...rest } = JSON.parse(line);
      expect(Date.parse(ts)).toBeGreaterThan(0);
      expect([req_id, client]).toEqual([expect.any(String), 'test']);
      return rest;
    });
}

it('holds who had which files read and written, by questions and by actions, and what was refused', async () => {
  const files = [project.path('a.ts'), project.path('.env')];
  const { continuation_offer: offer } = await polylogue.call('chat', { prompt: 'Hi', absolute_file_paths: files });
  const id = { continuation_id: offer.continuation_id };
  const { file } = await polylogue.call('export_thread', { ...id, output_path: 'talk.jsonl' }, { owner: 'ann' });
  expect(file).toBeUndefined();
  await polylogue.call('export_thread', { ...id, output_path: 'talk.jsonl' });
  await polylogue.call('export_thread', { ...id, output_path: '../out.jsonl' });
  await polylogue.call('import_thread', { file_path: 'talk.jsonl', as_new: true });
  await polylogue.call('import_thread', { file_path: '/etc/passwd' });
  await polylogue.product.close();

  const own = (tool: string, owner = 'local') => ({ tool, owner });
  const begin = (tool: string, owner?: string) => ({ ...own(tool, owner), act: 'begin' });
  const well = (tool: string) => ({ ...own(tool), act: 'call', decision: 'allowed', status: 'success' });
  const refused = (tool: string) =>
    expect.objectContaining({ ...own(tool), act: 'call', decision: 'refused', code: 'SECURITY' });
  expect(await audit()).toEqual([
    begin('chat'),
    { ...own('chat'), act: 'read', decision: 'allowed', files: [project.path('a.ts')] },
    { ...own('chat'), act: 'read', decision: 'refused', files: [project.path('.env')], reason: 'secret' },
    expect.objectContaining({ ...own('chat'), act: 'call', decision: 'allowed' }),
    begin('export_thread', 'ann'),
    expect.objectContaining({
      ...own('export_thread', 'ann'),
      act: 'call',
      decision: 'allowed',
      code: 'THREAD_NOT_FOUND',
    }),
    begin('export_thread'),
    { ...own('export_thread'), act: 'write', decision: 'allowed', files: [project.path('talk.jsonl')] },
    well('export_thread'),
    begin('export_thread'),
    {
      ...own('export_thread'),
      act: 'write',
      decision: 'refused',
      files: [join(project.root, '../out.jsonl')],
      reason: 'SECURITY',
    },
    refused('export_thread'),
    begin('import_thread'),
    { ...own('import_thread'), act: 'read', decision: 'allowed', files: [project.path('talk.jsonl')] },
    well('import_thread'),
    begin('import_thread'),
    { ...own('import_thread'), act: 'read', decision: 'refused', files: ['/etc/passwd'], reason: 'outside_roots' },
    refused('import_thread'),
  ]);
});

it('has the beginning of a call while it runs, so that one that dies with its process is there', async () => {
  vendor.script({ fault: 'hang_before_headers' });
  const stop = new AbortController();
  const running = polylogue.call('chat', { prompt: 'Hi' }, { signal: stop.signal });
  await expect.poll(() => vendor.requests.length, patience).toBe(1);
  expect(await audit()).toEqual([{ tool: 'chat', owner: 'local', act: 'begin' }]);
  stop.abort();
  await running;
  await polylogue.product.close();
  expect(await audit()).toMatchObject([{ act: 'begin' }, { act: 'call', code: 'CANCELLED' }]);
});
