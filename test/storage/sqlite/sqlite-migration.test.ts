import { readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { threadId } from '../../../src/core/ids.ts';
import { dayOf } from '../../../src/core/usage.ts';
import type { Store } from '../../../src/storage/store.ts';
import { changeOf, headOf, hour, jobOf, start, turnOf } from '../../contracts/store-fixtures.ts';
import { liveThread, type SqlitePlace, sqlitePlace } from '../../support/sqlite-temp.ts';

/** A file of the fourth schema as SQL, and what the code that wrote it read back. */
const fixture = (name: string) => readFileSync(new URL(`../../fixtures/schema-4/${name}`, import.meta.url), 'utf8');
const expected = JSON.parse(fixture('expected.json'));
const [first, fork, foreign, gone] = expected.reads.map(({ id }: { id: string }) => threadId(id));

describe('a SQLite file of an earlier schema', () => {
  let place: SqlitePlace;
  beforeEach(async () => {
    place = await sqlitePlace();
  });
  afterEach(() => place.dispose());

  function write(more = ''): void {
    const db = new DatabaseSync(place.file);
    db.exec(`PRAGMA journal_mode = WAL; BEGIN; ${fixture('threads.sql')} COMMIT; ${more}`);
    db.close();
  }

  const search = (store: Store) => store.search({ owner: 'local', text: 'plan', limit: 9, now: start });

  it('is read as the code read it that wrote it', async () => {
    write();
    const store = place.open();
    const reads = [];
    for (const id of [first, fork, foreign, gone]) reads.push({ id, found: await store.read(id, start) });
    const blobs = expected.blobs.map(([sha]: [string]) => sha);
    const used = await store.spend.used({ owner: 'local', day: dayOf(start), thread: first, now: start });
    const now = {
      reads,
      local: (await store.list({ owner: 'local', limit: 9, now: start })).map(({ id }) => id),
      jobs: await store.jobs({ owner: 'local', limit: 9, now: start }),
      facts: [...(await store.facts('', start))].map(([key, { value }]) => [key, value]),
      blobs: [...(await store.blobs(blobs))],
      found: (await search(store)).map(({ thread: { id }, seq, snippet }) => ({ id, seq, snippet })),
      spend: await store.spend.rows({ owner: 'local', from: dayOf(start) }),
      used: { day: used.day, thread: used.thread },
      prunable: await store.prunable(start + 721 * hour),
    };
    expect(JSON.parse(JSON.stringify(now))).toEqual(expected);
    expect(place.warnings).toEqual([]);
  });

  it('goes on where it stood', async () => {
    write();
    const store = place.open();
    expect(await store.commit(first, changeOf(5, { turns: [turnOf(6, { content: 'A plan B' })] }))).toBe(6);
    await expect(store.create(headOf({ id: gone }))).rejects.toMatchObject({ details: { class: 'conflict' } });
    await expect(store.create(headOf({ id: fork }))).rejects.toMatchObject({ details: { class: 'conflict' } });
    expect(
      await store.commit(
        fork,
        changeOf(5, { exchange: { id: (await liveThread(store, fork)).turns[0]!.exchange, status: 'done' } }),
      ),
    ).toBe(5);
    expect(await store.remove(foreign, start)).toBe(true);
    await store.close();
    const again = place.open();
    expect((await liveThread(again, first)).turns.map(({ content }) => content).at(-1)).toBe('A plan B');
    expect(
      (await again.search({ owner: 'local', text: 'another', limit: 9, now: start })).map(({ thread }) => thread.id),
    ).toEqual([fork]);
    const db = new DatabaseSync(place.file);
    expect(db.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
    expect(db.prepare('PRAGMA foreign_key_check').all()).toEqual([]);
    expect(Object.values(db.prepare('PRAGMA user_version').get()!)).toEqual([5]);
    db.close();
  });

  it('is taken from the first schema on, with its threads, and gets what is new', async () => {
    write('DROP TABLE jobs; DROP TABLE facts; DROP TABLE spend; DROP TABLE spend_holds; PRAGMA user_version = 1');
    const store = place.open();
    expect((await liveThread(store, first)).turns).toHaveLength(5);
    const job = jobOf({ thread: first });
    await store.createJob(job);
    expect(await store.job(job.id, start)).toStrictEqual(job);
    const fact = { key: 'a', version: 0, value: { n: 1 }, expiresAt: start + 1, now: start };
    expect(await store.swapFact(fact)).toBe(true);
  });

  it('is migrated once by stores that open it at the same time', async () => {
    write();
    const stores = [place.open(), place.open(), place.open()];
    const lists = await Promise.all(stores.map(store => store.list({ owner: 'local', limit: 9, now: start })));
    for (const heads of lists) expect(heads.map(({ id }) => id)).toEqual(expected.local);
  });

  it('gives up its threads also when it is damaged before it was migrated', async () => {
    write();
    const bytes = readFileSync(place.file);
    writeFileSync(place.file, bytes.fill(0, 0, 4096));
    const store = place.open();
    const whole = await liveThread(store, first);
    expect(JSON.parse(JSON.stringify(whole))).toEqual(expected.reads[0].found.value);
    expect(place.warnings).toEqual([expect.stringContaining('3 threads were kept whole')]);
  });
});
