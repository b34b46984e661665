import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemEnvironment } from '../../src/app/system-environment.ts';
import { cancelledError, storageError } from '../../src/core/errors.ts';
import { threadId } from '../../src/core/ids.ts';
import { createMemoryStore } from '../../src/storage/memory/memory.ts';
import { createThreadLocks } from '../../src/threads/locks.ts';
import { type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

describe('an answer that was paid for', () => {
  let vendor: FakeVendor;
  let project: TempProject;
  let polylogue: TestProduct;

  beforeEach(async () => {
    vendor = await startOpenAi();
    project = await tempProject();
    const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5.2' };
    polylogue = await testProduct({ root: project.root, env });
  });

  afterEach(async () => {
    await polylogue.close();
    await vendor.close();
    await project.dispose();
  });

  it('is given as far as it came when asking for the rest of it fails', async () => {
    const refusal = { fault: 'status', status: 400, body: { error: { message: 'no more' } } } as const;
    vendor.script({ answer: 'The first half.', finish: 'length' }, refusal);
    const reply = await polylogue.call('chat', { prompt: 'Tell.' });
    expect(reply).toMatchObject({ isError: false, status: 'partial', content: 'The first half.' });
    expect(reply.metadata.warnings.join()).toContain('no more');
    const { continuation_id } = reply.continuation_offer;
    const { transcript } = await polylogue.call('threads', { action: 'read', continuation_id });
    expect(transcript.at(-1)).toMatchObject({ role: 'assistant', status: 'done', content: 'The first half.' });
  });

  it('is not waited for once its caller cancelled, not even for the rest of it', async () => {
    vendor.script({ answer: 'The first half.', finish: 'length' }, { fault: 'hang_mid_stream' });
    const cancel = new AbortController();
    const call = polylogue.call('chat', { prompt: 'Tell.' }, { signal: cancel.signal });
    await expect.poll(() => vendor.requests.length).toBe(2);
    cancel.abort(cancelledError());
    expect((await call).error.code).toBe('CANCELLED');
    await vendor.requests[1]!.aborted;
    await expect.poll(() => vendor.openSockets()).toBe(0);
  });
});

describe('a store that fails when a thread is given back', () => {
  it('does not take away what the work brought', async () => {
    const { clock, random } = systemEnvironment();
    const warnings: string[] = [];
    const failing = {
      ...createMemoryStore(),
      release: () => Promise.reject(storageError('unavailable', 'It is gone.')),
    };
    const exclusively = createThreadLocks({
      store: failing,
      clock,
      holder: random.uuid(),
      emit: event => event.type === 'warning' && warnings.push(event.message),
    });
    const { signal } = new AbortController();
    expect(await exclusively(threadId(random.uuid()), { signal }, async () => 'the answer')).toBe('the answer');
    expect(warnings).toEqual(['It is gone.']);
  });
});
