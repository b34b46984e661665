import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor, RecordedRequest } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

const summary = '- DECIDED: the gate stays shut (src/gate.ts:12).';
const longAnswer = Array.from({ length: 800 }, (_, n) => `Point ${n}: the gate must stay shut, see src/gate.ts:${n}.`);
const isSummary = ({ messages }: RecordedRequest) => /You shorten the record/.test(messages[0]?.text ?? '');
const textOf = ({ messages }: RecordedRequest) => messages.map(({ text }) => text).join('\n');

let server: RedisServer;
let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.dispose());

beforeEach(async () => {
  [vendor, project] = await Promise.all([startOpenAi(), tempProject()]);
  vendor.byDefault({ answer: request => (isSummary(request) ? summary : longAnswer.join('\n')) });
  polylogue = await testProduct({
    root: project.root,
    env: {
      ...vendorEnv({ openai: vendor.url }),
      DEFAULT_MODEL: 'gpt-4o',
      MAX_CONVERSATION_TURNS: '6',
      AI_MANAGER: 'rules',
      POLYLOGUE_TOOLSETS: 'core,ops',
      POLYLOGUE_STORE: 'redis',
      REDIS_URL: server.url,
      REDIS_PREFIX: `${randomUUID()}:`,
      REDIS_TIMEOUT_MS: '5000',
    },
  });
});

afterEach(async () => {
  await polylogue.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose()]);
});

async function call(name: string, args: Record<string, unknown>): Promise<Document> {
  const reply = await polylogue.call(name, args);
  expect(reply.isError, JSON.stringify(reply.error)).toBe(false);
  return reply;
}
const last = () => vendor.requests.at(-1)!;
const summaries = () => vendor.requests.filter(isSummary);

describe('a model’s summary of a thread on Redis', () => {
  it('outlives its process, goes along in a file and into forks, and stands in the ledger', async () => {
    const first = await call('chat', { prompt: 'FIRST REQUEST: keep it shut.' });
    const continuation_id = first.continuation_offer.continuation_id;
    for (const prompt of ['Two.', 'Three.', 'Four.', 'Five.']) await call('chat', { prompt, continuation_id });
    expect(summaries()).toHaveLength(1);
    const five = last();
    expect(textOf(five)).toContain(summary);

    await polylogue.restart();
    await call('chat', { prompt: 'Six.', continuation_id });
    expect(last().canonical.startsWith(five.canonical)).toBe(true);

    const { file } = await call('export_thread', { continuation_id, format: 'jsonl', output_path: 'gate.jsonl' });
    await call('threads', { action: 'delete', continuation_id, confirm: true });
    const imported = await call('import_thread', { file_path: file, as_new: true });
    expect(imported.continuation_id).not.toBe(continuation_id);
    const fork = await call('threads', { action: 'fork', continuation_id: imported.continuation_id });
    for (const thread of [imported.continuation_id, fork.continuation_id]) {
      await call('chat', { prompt: 'Seven.', continuation_id: thread });
      expect(textOf(last())).toContain(summary);
      expect(textOf(last())).toContain('Six.');
      expect(textOf(last())).not.toContain('Two.');
    }
    expect(summaries()).toHaveLength(1);

    const rows = await polylogue.product.spent('2020-01-01');
    const own = rows.filter(({ tool }) => tool === 'compaction');
    expect(own).toMatchObject([{ provider: 'openai', thread: continuation_id, calls: 1, unpriced: 0 }]);
    expect(own[0]!.costUsd).toBeGreaterThan(0);
    expect(rows.filter(({ tool }) => tool === 'chat').reduce((sum, { calls }) => sum + calls, 0)).toBe(8);
  });
});
