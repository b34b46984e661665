import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { watchLoop } from '../support/loop.ts';
import { type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type SqliteProcess, startSqliteProcess } from '../support/sqlite-process.ts';
import { tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { waitedTime } from '../support/waited-time.ts';

interface Place extends AsyncDisposable {
  vendor: FakeVendor;
  polylogue: TestProduct;
  file: string;
}

async function open(): Promise<Place> {
  const [vendor, project] = await Promise.all([startOpenAi(), tempProject()]);
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' };
  const polylogue = await testProduct({ root: project.root, env });
  return {
    ...{ vendor, polylogue, file: join(polylogue.home, 'threads.sqlite') },
    async [Symbol.asyncDispose]() {
      await polylogue.close();
      expect(vendor.violations).toEqual([]);
      await Promise.all([vendor.close(), project.dispose()]);
    },
  };
}

/** Where the file was there is a folder, as after a volume went: SQLite's own refusal, and no seam of ours. */
async function takeAway({ file }: Place): Promise<void> {
  await rename(file, `${file}.away`);
  await mkdir(file);
}

async function giveBack({ file }: Place): Promise<void> {
  await rm(file, { recursive: true });
  await rename(`${file}.away`, file);
}

describe('a store that is down', () => {
  it('lets nobody be paid: STORAGE within 250 ms, and all is well once it is back', async () => {
    await using place = await open();
    const { vendor, polylogue } = place;
    vendor.script({ answer: 'One.' }, { answer: 'Two.' });
    const { continuation_offer } = await polylogue.call('chat', { prompt: 'First?' });
    const { continuation_id } = continuation_offer;
    await takeAway(place);
    for (const args of [{ prompt: 'A new thread?' }, { prompt: 'The same?', continuation_id }]) {
      const waited = waitedTime();
      const reply = await polylogue.call('chat', args);
      const took = waited();
      expect(reply).toMatchObject({ isError: true, error: { code: 'STORAGE', class: 'unavailable' } });
      expect(reply.error.next).toMatch(/[a-z]/);
      expect(took).toBeLessThan(250);
    }
    expect(vendor.requests).toHaveLength(1);
    await giveBack(place);
    expect(await polylogue.call('chat', { prompt: 'Second?', continuation_id })).toMatchObject({ content: 'Two.' });
    const { transcript } = await polylogue.call('threads', { action: 'read', continuation_id });
    expect(transcript.map(({ content }: { content: string }) => content)).toEqual([
      'First?',
      'One.',
      'Second?',
      'Two.',
    ]);
  });

  it('when the answer is there: the caller has it with the word that it is not kept yet, and the next call stores it', async () => {
    await using place = await open();
    const { vendor, polylogue } = place;
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'One.' }, { answer: 'Two.', when: promise }, { answer: 'Three.' });
    const { continuation_offer } = await polylogue.call('chat', { prompt: 'First?' });
    const { continuation_id } = continuation_offer;
    const second = polylogue.call('chat', { prompt: 'Second?', continuation_id });
    await expect.poll(() => vendor.requests.length).toBe(2);
    await takeAway(place);
    resolve();
    const reply = await second;
    expect(reply).toMatchObject({ isError: false, content: 'Two.', continuation_offer: { continuation_id } });
    expect(reply.metadata.warnings).toEqual([
      expect.stringMatching(/^not_persisted: .* stored when the store works again\.$/),
    ]);
    await giveBack(place);
    expect(await polylogue.call('chat', { prompt: 'Third?', continuation_id })).toMatchObject({ content: 'Three.' });
    const { transcript } = await polylogue.call('threads', { action: 'read', continuation_id });
    const shown = transcript.map(({ content, status }: { content: string; status: string }) => `${content} ${status}`);
    expect(shown).toEqual(['First? done', 'One. done', 'Second? done', 'Two. done', 'Third? done', 'Three. done']);
    expect(vendor.requests[2]!.canonical).toContain('Two.');
  });
});

// One of them waits for ten seconds.
describe.concurrent('a store that is down', () => {
  it('does not stop the server while another process holds its lock: others are answered, and the call goes on', async () => {
    await using place = await open();
    const { vendor, polylogue, file } = place;
    vendor.script({ answer: 'One.' }, { answer: 'Two.' });
    await polylogue.call('chat', { prompt: 'First?' });
    const holder: SqliteProcess = startSqliteProcess('hold', file, '120000');
    try {
      await holder.said(line => line === 'held');
      const watched = watchLoop();
      const waiting = polylogue.call('chat', { prompt: 'Second?' });
      // Answered while the lock is still held.
      expect(await polylogue.call('threads', { action: 'list' })).toMatchObject({ isError: false });
      await wait(700);
      const { longest, ticks } = watched();
      holder.child.kill('SIGKILL');
      expect(await waiting).toMatchObject({ content: 'Two.' });
      // A wait for the lock in this thread would be one pause for as long as SQLite waits, ten seconds.
      expect(longest).toBeLessThan(5_000);
      expect(ticks).toBeGreaterThan(3);
    } finally {
      holder.child.kill('SIGKILL');
      await holder.ended;
    }
  });

  it('waits once for a process that was stopped while it wrote, names it, and goes on when it does', async () => {
    await using place = await open();
    const { vendor, polylogue, file } = place;
    vendor.script({ answer: 'One.' }, { answer: 'Two.' });
    await polylogue.call('chat', { prompt: 'First?' });
    const holder: SqliteProcess = startSqliteProcess('hold', file, '5000');
    try {
      await holder.said(line => line === 'held');
      holder.child.kill('SIGSTOP');
      const refusals = [];
      for (const prompt of ['Second?', 'Third?', 'Fourth?']) {
        const waited = waitedTime();
        const { error } = await polylogue.call('chat', { prompt });
        refusals.push({ error, waitedMs: waited() });
      }
      for (const { error } of refusals) {
        expect(error).toMatchObject({ code: 'STORAGE', class: 'unavailable', retryable: true });
        expect(error.message).toContain(`Process ${holder.child.pid}, which is stopped, has held the lock`);
        expect(error.next).toContain(`kill -CONT ${holder.child.pid}`);
      }
      // Less than the wait of the first one, of ten seconds.
      expect(refusals.slice(1).map(({ waitedMs }) => waitedMs < 8_000)).toEqual([true, true]);
      holder.child.kill('SIGCONT');
      await holder.ended;
      expect(await polylogue.call('chat', { prompt: 'Fifth?' })).toMatchObject({ content: 'Two.' });
    } finally {
      holder.child.kill('SIGKILL');
      await holder.ended;
    }
  });
});
