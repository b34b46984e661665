import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { changeOf, newExchangeId, start, threadWith, turnOf } from '../../contracts/store-fixtures.ts';
import { type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { liveThread, type SqlitePlace, sqlitePlace } from '../../support/sqlite-temp.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

/** Pages in the write-ahead log, as its index counts them in the machine's own byte order. */
function pagesIn(file: string): number {
  const header = new Uint32Array(6);
  const handle = openSync(`${file}-shm`, 'r');
  readSync(handle, header, 0, 24, 0);
  closeSync(handle);
  return header[4] ?? 0;
}

describe('what a call writes', () => {
  let vendor: FakeVendor;
  let project: TempProject;
  let polylogue: TestProduct;
  beforeEach(async () => {
    [vendor, project] = await Promise.all([startOpenAi(), tempProject({})]);
    const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' };
    polylogue = await testProduct({ root: project.root, env });
  });
  afterEach(async () => {
    await polylogue.close();
    await Promise.all([vendor.close(), project.dispose()]);
  });

  let asked = 0;
  const ask = (more: object = {}) => polylogue.call('chat', { prompt: `What is question ${++asked}?`, ...more });

  /** Pages of a call when others came before it; what one leaves to the next is counted with it. */
  async function pagesOf(call: () => Promise<unknown>): Promise<number> {
    const file = join(polylogue.home, 'threads.sqlite');
    const counted = 8;
    await call();
    const before = pagesIn(file);
    for (let calls = 0; calls < counted; calls++) await call();
    return (pagesIn(file) - before) / counted;
  }

  it('is at most twelve pages of the store: for a new thread, one that goes on, and a step of a workflow', async () => {
    for (let chats = 0; chats < 10; chats++) await ask();
    expect(await pagesOf(() => ask())).toBeLessThanOrEqual(12);
    const { continuation_id } = await ask();
    // Its lease is taken and given back besides.
    expect(await pagesOf(() => ask({ continuation_id }))).toBeLessThanOrEqual(14);
    const step = { step: 'Look.', step_number: 1, total_steps: 2, next_step_required: true, findings: 'None.' };
    expect(await pagesOf(() => polylogue.call('debug', step))).toBeLessThanOrEqual(12);
  });
});

describe('what lists and searches need', () => {
  let place: SqlitePlace;
  beforeEach(async () => {
    place = await sqlitePlace();
  });
  afterEach(() => place.dispose());

  const listed = async (store: ReturnType<SqlitePlace['open']>) =>
    (await store.list({ owner: 'local', limit: 50, now: start })).map(({ id }) => id);
  const found = async (store: ReturnType<SqlitePlace['open']>, text: string) =>
    (await store.search({ owner: 'local', text, limit: 50, now: start })).map(({ thread }) => thread.id);

  it('is up to date when they ask, whichever store wrote', async () => {
    const [one, other] = [place.open(), place.open()];
    const first = await threadWith(one, ['apples', 'pears']);
    expect(await found(other, 'pears')).toEqual([first.id]);
    const second = await threadWith(other, ['plums', 'pears'], { updatedAt: start + 1 });
    expect(await listed(one)).toEqual([second.id, first.id]);
    expect(await found(one, 'pears')).toEqual([second.id, first.id]);
    const exchange = newExchangeId();
    const turns = [turnOf(3, { exchange, content: 'cherries' })];
    await one.commit(first.id, changeOf(2, { turns, exchange: { id: exchange, status: 'pending' } }));
    expect(await found(other, 'cherries')).toEqual([]);
    await other.commit(first.id, changeOf(3, { exchange: { id: exchange, status: 'done' } }));
    expect(await found(one, 'cherries')).toEqual([first.id]);
    expect(await listed(other)).toEqual([first.id, second.id]);
    await one.commit(first.id, changeOf(3, { exchange: { id: exchange, status: 'failed' } }));
    expect(await found(other, 'cherries')).toEqual([]);
  });

  it('is the newest of the turns of a thread that have a word equally often', async () => {
    const store = place.open();
    await threadWith(store, ['pears', 'plums and plums', 'pears and plums', 'plums here, plums there', 'pears']);
    const search = (text: string) => store.search({ owner: 'local', text, limit: 9, now: start });
    expect((await search('pears')).map(({ seq }) => seq)).toEqual([5]);
    expect((await search('plums')).map(({ seq }) => seq)).toEqual([4]);
  });

  it('forgets what was removed, and takes threads whose records get the numbers of removed ones', async () => {
    const store = place.open();
    const kept = await threadWith(store, ['kept']);
    for (let round = 0; round < 3; round++) {
      const { id } = await threadWith(store, ['passing', 'by']);
      expect(await found(store, 'passing')).toEqual([id]);
      if (round === 1) expect(await listed(store)).toContain(id);
      expect(await store.remove(id, start)).toBe(true);
      expect(await found(store, 'passing')).toEqual([]);
      expect(await listed(store)).toEqual([kept.id]);
    }
    const { id } = await threadWith(store, ['passing', 'again']);
    expect(await found(store, 'passing')).toEqual([id]);
    expect((await liveThread(store, id)).turns.map(({ content }) => content)).toEqual(['passing', 'again']);
  });

  it('never leaves out a thread that changes at the same moment', async () => {
    const [one, other] = [place.open(), place.open()];
    const heads = [await threadWith(one, ['a']), await threadWith(one, ['b'])];
    for (let seq = 1; seq < 25; seq++) {
      const changes = heads.map(({ id }) => other.commit(id, changeOf(seq, { turns: [turnOf(seq + 1)] })));
      const lists = await Promise.all([listed(one), listed(other), ...changes]);
      for (const ids of lists.slice(0, 2)) expect(ids).toHaveLength(2);
    }
    expect(place.warnings).toEqual([]);
  });
});
