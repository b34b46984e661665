import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CallOperation } from '../../../src/calls/durable/operation-log.ts';
import { hashOf } from '../../../src/core/ids.ts';
import { createSqliteStore } from '../../../src/storage/sqlite/sqlite.ts';
import { realClock } from '../../support/clock.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

beforeEach(async () => {
  [vendor, project] = await Promise.all([startOpenAi(), tempProject()]);
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' };
  const wrapper = { POLYLOGUE_TOOLSETS: 'core,wrapper' };
  polylogue = await testProduct({ root: project.root, env: { ...env, ...wrapper } });
});

afterEach(async () => {
  await polylogue.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose()]);
});

async function send(tool: string, args: Record<string, unknown>): Promise<Document> {
  const principal = { owner: 'local', root: project.root, client: 'test' };
  const session = { gone: new AbortController().signal };
  const { host } = polylogue.product;
  const reply = await host.call({ name: tool, arguments: args, principal, session }, new AbortController().signal);
  return { ...reply.document, isError: reply.isError };
}

/** Closes the product and makes its log what it was a moment before its end: as a kill would have left it. */
async function diesOver(change: (call: CallOperation) => CallOperation): Promise<void> {
  await polylogue.restart();
  const clock = realClock();
  const store = createSqliteStore({ file: join(polylogue.home, 'threads.sqlite'), clock, onWarning: () => {} });
  const now = clock.now();
  for (const [key, { value, version }] of await store.facts('call/', now)) {
    const body = JSON.stringify(JSON.parse(String(value.body)).map(change));
    const swap = { key, version, value: { body, seal: hashOf(body) }, expiresAt: now + 60_000, now };
    expect(await store.swapFact(swap)).toBe(true);
  }
  await store.close();
}

const running = ({ reply: _reply, ...call }: CallOperation): CallOperation => ({
  ...call,
  status: 'running',
  holder: 'dead',
});

describe('a call whose process died', () => {
  it('after the answer was stored and before the reply was: the thread has it', async () => {
    vendor.script({ answer: 'A hinge.' });
    const first = await send('chat', { prompt: 'What is a door?' });
    await diesOver(running);
    const again = await send('chat', { prompt: 'What is a door?' });
    expect(again).toMatchObject({ isError: false, content: 'A hinge.' });
    expect(again.continuation_id).toBe(first.continuation_offer.continuation_id);
    expect(again.metadata).toMatchObject({ model_used: 'gpt-5-mini', warnings: [expect.stringMatching(/^recovered/)] });
    expect(vendor.requests).toHaveLength(1);
  });

  it('before anybody was asked: is simply made', async () => {
    vendor.script({ answer: 'A hinge.' }, { answer: 'A hole.' });
    await send('chat', { prompt: 'What is a door?' });
    await polylogue.call('threads', { action: 'delete', continuation_id: 'last', confirm: true });
    await diesOver(running);
    expect(await send('chat', { prompt: 'What is a door?' })).toMatchObject({ isError: false, content: 'A hole.' });
  });

  it('without a thread: nobody knows, which is said once', async () => {
    vendor.byDefault({ answer: 'A hinge.' });
    const args = { text: 'What is a door?', models_prefixed_by_provider: ['openai:gpt-5-mini'] };
    await send('prompt', args);
    await diesOver(running);
    expect(await send('prompt', args)).toMatchObject({ isError: true, error: { code: 'INTERRUPTED' } });
    expect(vendor.requests).toHaveLength(1);
  });
});
