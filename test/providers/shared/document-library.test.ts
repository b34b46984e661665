import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createMoonshotFiles } from '../../../src/providers/moonshot/files.ts';
import { moonshot } from '../../../src/providers/moonshot/moonshot.ts';
import { accountOf, createDocumentLibrary } from '../../../src/providers/shared/document-library.ts';
import { realClock } from '../../support/clock.ts';
import { createLocalState } from '../../support/local-state.ts';
import { type FakeMoonshot, type MoonshotOptions, startMoonshot } from '../../support/vendors/start-moonshot.ts';

const clock = realClock();
const { signal } = new AbortController();
let vendor: FakeMoonshot;
let state = createLocalState(clock);

beforeEach(async () => {
  vendor = await startMoonshot();
  state = createLocalState(clock);
});
afterEach(async () => {
  await vendor.close();
});

async function again(options: MoonshotOptions): Promise<void> {
  await vendor.close();
  vendor = await startMoonshot(options);
}

function library(key = 'test-key', maxBytes = 1_000_000) {
  const door = moonshot.endpoint({ apiKey: key, baseUrl: vendor.url }, () => clock.now());
  const files = createMoonshotFiles(door, maxBytes);
  return createDocumentLibrary({ provider: 'moonshot', files, account: accountOf(key), state, clock });
}

function document(name: string, text: string, owner = 'local') {
  const bytes = Buffer.from(`%PDF-1.7\n${text}`);
  return { name, bytes, owner, sha256: createHash('sha256').update(bytes).digest('hex') };
}

const a = document('a.pdf', 'Alpha is first.');

describe('documents at Kimi', () => {
  it('are uploaded once and read as often as they are wanted', async () => {
    const documents = library();
    expect(await documents.read(a, signal)).toMatchObject({
      fresh: true,
      filename: 'a.pdf',
      text: 'Alpha is first.',
      status: 'ok',
    });
    expect(await documents.read({ ...a, name: 'copy.pdf' }, signal)).toMatchObject({
      fresh: false,
      text: 'Alpha is first.',
    });
    // Another process on the same store.
    expect(await library().read(a, signal)).toMatchObject({ fresh: false });
    expect(vendor.files.uploads).toEqual(['a.pdf']);
  });

  it('are uploaded once by calls that come at the same time', async () => {
    const documents = library();
    const read = await Promise.all([documents.read(a, signal), documents.read(a, signal), documents.read(a, signal)]);
    expect(read.map(({ fresh }) => fresh)).toEqual([true, false, false]);
    expect(vendor.files.uploads).toHaveLength(1);
  });

  it('are waited for no longer than the caller does where another call uploads the same one', async () => {
    const { promise: isRead, resolve } = Promise.withResolvers<string>();
    const file = { id: 'f1', filename: 'a.pdf', bytes: 3, createdAt: 0, status: 'ok' };
    const none = { maxBytes: 100, list: async () => [], remove: async () => false };
    const files = { ...none, upload: async () => file, content: () => isRead };
    const documents = createDocumentLibrary({ provider: 'moonshot', files, account: 'x', state, clock });
    const first = documents.read(a, signal);
    const caller = new AbortController();
    const second = documents.read(a, caller.signal);
    caller.abort();
    await expect(second).rejects.toMatchObject({ kind: 'cancelled' });
    resolve('Alpha is first.');
    expect(await first).toMatchObject({ fresh: true, text: 'Alpha is first.' });
  });

  it('are uploaded again when somebody deleted them at the vendor', async () => {
    const documents = library();
    const { id } = await documents.read(a, signal);
    vendor.files.kept.delete(id);
    const back = await documents.read(a, signal);
    expect(back).toMatchObject({ fresh: true, text: 'Alpha is first.' });
    expect(back.id).not.toBe(id);
    expect(vendor.files.uploads).toEqual(['a.pdf', 'a.pdf']);
  });

  it('are not taken for those of another key', async () => {
    await library().read(a, signal);
    await again({ keys: ['other-key'] });
    expect(await library('other-key').read(a, signal)).toMatchObject({ fresh: true });
    expect(JSON.stringify([...(await state.list(''))])).not.toMatch(/test-key|other-key/);
  });

  it('stay out of reach of other owners, by id and in lists', async () => {
    const documents = library();
    const { id } = await documents.read({ ...a, owner: 'ann' }, signal);
    expect(await documents.list('ben', signal)).toEqual([]);
    await expect(documents.readById(id, 'ben', signal)).rejects.toMatchObject({
      kind: 'input',
      details: { class: 'files' },
    });
    await expect(documents.remove(id, 'ben', signal)).rejects.toMatchObject({ kind: 'input' });
    expect(vendor.files.kept.has(id)).toBe(true);
    expect((await documents.readById(id, 'ann', signal)).text).toBe('Alpha is first.');
    // Who has the same document needs no second upload, and may then reach it.
    await documents.read({ ...a, owner: 'ben' }, signal);
    expect((await documents.list('ben', signal)).map(file => file.id)).toEqual([id]);
    expect(vendor.files.uploads).toHaveLength(1);
  });

  it('are listed with the newest first, and deleted for good', async () => {
    const documents = library();
    const first = await documents.read(a, signal);
    const second = await documents.read(document('b.docx', 'Beta.'), signal);
    expect((await documents.list('local', signal)).map(({ id, ours }) => [id, ours])).toEqual([
      [second.id, true],
      [first.id, true],
    ]);
    expect(await documents.remove(first.id, 'local', signal)).toBe(true);
    expect(await documents.remove(first.id, 'local', signal)).toBe(false);
    await expect(documents.readById(first.id, 'local', signal)).rejects.toMatchObject({ kind: 'input' });
  });

  it('are refused before they leave when they are too large or empty', async () => {
    const documents = library('test-key', 20);
    await expect(documents.read(document('big.pdf', 'x'.repeat(100)), signal)).rejects.toMatchObject({
      kind: 'limit',
      details: { code: 'LIMIT', class: 'size', data: { limit: 20 }, next: expect.stringContaining('Split') },
    });
    await expect(documents.read({ ...a, bytes: Buffer.alloc(0) }, signal)).rejects.toMatchObject({ kind: 'input' });
    expect(vendor.files.asked).toEqual([]);
  });

  it('are refused typed when the vendor finds them too large or keeps no more', async () => {
    await again({ maxFileBytes: 10 });
    await expect(library().read(a, signal)).rejects.toMatchObject({ kind: 'limit', details: { class: 'size' } });
    await again({ maxFiles: 0 });
    await expect(library().read(a, signal)).rejects.toMatchObject({
      kind: 'limit',
      details: { class: 'files', next: expect.stringContaining('kimi_manage_files') },
    });
    await expect(library().read(document('x.zip', 'x'), signal)).rejects.toMatchObject({
      details: { class: 'bad_request' },
    });
  });

  it('tell a wrong key with the variable to set, and never the key', async () => {
    const error = await library('sk-wrong-key-1234567890')
      .read(a, signal)
      .catch(thrown => thrown);
    expect(error).toMatchObject({
      kind: 'model',
      details: { class: 'auth', next: expect.stringContaining('MOONSHOT_API_KEY') },
    });
    expect(error.message).not.toContain('wrong-key');
  });

  it('are not reached by an id that would lead elsewhere', async () => {
    for (const id of ['..', '../models', 'a/b', '', 'x?y', 'é']) {
      await expect(library().readById(id, 'local', signal)).rejects.toMatchObject({ kind: 'input' });
      expect(await library().remove(id, 'local', signal)).toBe(false);
    }
    expect(vendor.files.asked).toEqual([]);
    expect(vendor.violations).toEqual([]);
  });

  it('are given up with the call', async () => {
    const caller = new AbortController();
    caller.abort();
    await expect(library().read(a, caller.signal)).rejects.toMatchObject({ kind: 'cancelled' });
    expect(vendor.files.asked).toEqual([]);
  });

  it('go under their name alone, without what would break the form', async () => {
    await library().read({ ...a, name: '/home/me/secret project/re"port\n.pdf' }, signal);
    expect(vendor.files.uploads).toEqual(['re_port_.pdf']);
  });
});
