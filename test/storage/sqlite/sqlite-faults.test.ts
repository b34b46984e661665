import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ThreadId } from '../../../src/core/ids.ts';
import type { Store } from '../../../src/storage/store.ts';
import { changeOf, headOf, newExchangeId, start, threadWith, turnOf } from '../../contracts/store-fixtures.ts';
import { breakDisk, type Fault, locksOf, slowMs } from '../../support/break-disk.ts';
import { watchLoop } from '../../support/loop.ts';
import { seededRandom } from '../../support/random.ts';
import { activeThreads, liveThread, type SqlitePlace, sqlitePlace } from '../../support/sqlite-temp.ts';
import { waitedTime } from '../../support/waited-time.ts';

const program = new URL('../../support/faulty-sqlite-writer.ts', import.meta.url).href;

describe('a SQLite file on a disk that fails', () => {
  let place: SqlitePlace;
  let store: Store;
  beforeEach(async () => {
    place = await sqlitePlace();
    store = place.open({ program });
  });
  afterEach(async () => {
    breakDisk(place.file, 'none');
    await place.dispose();
  });

  const append = (id: ThreadId, seq: number) =>
    store.commit(id, changeOf(seq - 1, { turns: [turnOf(seq, { content: `turn ${seq}` })] }));

  const kinds: [Fault, string][] = [
    ['full', 'storage_full'],
    ['eio', 'unavailable'],
    ['stuck', 'unavailable'],
    // The disk has room: a write that fails all the same is no reason to free some.
    ['spill', 'unavailable'],
  ];
  it.each(kinds)(
    '(%s) says %s at once, keeps what was acknowledged, and works again by itself',
    async (fault, kind) => {
      const { id } = await threadWith(store, ['a', 'b']);
      breakDisk(place.file, fault);
      const waited = waitedTime();
      const refused = { kind: 'storage', details: { code: 'STORAGE', class: kind, next: expect.any(String) } };
      const others = [store.lease('x', 'me', 1_000, start), store.inspect!()];
      const tries = [append(id, 3), store.create(headOf()), ...others];
      for (const attempt of tries) await expect(attempt).rejects.toMatchObject(refused);
      expect(waited()).toBeLessThan(1_000);
      expect((await liveThread(store, id)).turns).toHaveLength(2);
      breakDisk(place.file, 'none');
      expect(await append(id, 3)).toBe(3);
      expect(await store.list({ owner: 'local', limit: 9, now: start })).toHaveLength(1);
      expect(place.warnings).toEqual([]);
    },
  );

  it('loses no acknowledged turn and serves no other, however often it fails', async () => {
    const random = seededRandom(42);
    const faults: Fault[] = ['none', 'none', 'full', 'eio', 'spill'];
    const { id } = await threadWith(store, []);
    let acknowledged = 0;
    let refused = 0;
    for (let round = 0; round < 150; round++) {
      breakDisk(place.file, faults[Math.floor(random.fraction() * faults.length)]!);
      const exchange = newExchangeId();
      const others = Array.from({ length: round % 4 }, () => store.create(headOf()).catch(() => refused++));
      const turns = [turnOf(acknowledged + 1, { exchange, content: `turn ${acknowledged + 1} of round ${round}` })];
      const done = { id: exchange, status: 'done' as const };
      try {
        acknowledged = await store.commit(id, changeOf(acknowledged, { turns, exchange: done }));
      } catch {
        refused++;
      }
      await Promise.all(others);
      expect((await store.head(id, start)).state).toBe('live');
    }
    breakDisk(place.file, 'none');
    expect(Math.min(acknowledged, refused)).toBeGreaterThan(30);
    await store.close();
    const { turns } = await liveThread(place.open(), id);
    expect(turns.map(({ seq, content }) => content.startsWith(`turn ${seq} of`))).toEqual(turns.map(() => true));
    expect(turns).toHaveLength(acknowledged);
    const db = new DatabaseSync(place.file, { readOnly: true });
    expect(db.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
    db.close();
  });

  it('never stops the event loop for a commit that takes its time, and shares the wait', async () => {
    const { id } = await threadWith(store, ['a']);
    await liveThread(store, id);
    breakDisk(place.file, 'slow');
    const loop = watchLoop();
    const [began, waited] = [performance.now(), waitedTime()];
    const heads = Array.from({ length: 20 }, () => headOf());
    await Promise.all([append(id, 2), ...heads.map(head => store.create(head))]);
    const took = performance.now() - began;
    const { ticks } = loop();
    expect(took).toBeGreaterThan(slowMs * 0.9);
    expect(waited()).toBeLessThan(slowMs * 8);
    // A commit in this thread would leave no tick between its begin and its end.
    expect(ticks).toBeGreaterThan(10);
  });

  it('refuses what its writer had not made durable when that ended, with what to do, and goes on with another one', async () => {
    const { id } = await threadWith(store, ['a', 'b']);
    await new Promise(resolve => setImmediate(resolve));
    const idle = activeThreads();
    for (let round = 0; round < 2; round++) {
      breakDisk(place.file, 'end');
      const refused = {
        kind: 'storage',
        details: { class: 'unavailable', retryable: true, next: expect.stringContaining('Read the thread first') },
      };
      const tries = [append(id, 3 + round), store.create(headOf()), store.lease('x', 'me', 1_000, start)];
      for (const each of tries) await expect(each).rejects.toMatchObject(refused);
      breakDisk(place.file, 'none');
      expect(await append(id, 3 + round)).toBe(3 + round);
      await expect.poll(activeThreads).toBe(idle);
    }
    expect((await liveThread(store, id)).turns).toHaveLength(4);
    expect(await store.list({ owner: 'local', limit: 9, now: start })).toHaveLength(1);
    await store.close();
    expect(place.warnings).toEqual([]);
  });

  it('refuses all where its writer cannot be started, and is closed without one where it was not used', async () => {
    const broken = { program: 'data:text/javascript,throw new Error("It does not start.")' };
    const other = place.open(broken);
    const refused = { kind: 'storage', details: { class: 'unavailable', retryable: true } };
    for (let tries = 0; tries < 2; tries++) await expect(other.create(headOf())).rejects.toMatchObject(refused);
    await expect(other.read(headOf().id, start)).rejects.toMatchObject(refused);
    await place.open(broken).close();
    expect(place.warnings).toEqual([]);
  });

  it('says what it could not do when it was closed, and has lost nothing', async () => {
    const { id } = await threadWith(store, ['a', 'b']);
    breakDisk(place.file, 'at close');
    await store.close();
    expect(place.warnings).toEqual([expect.stringMatching(/disk I\/O error/)]);
    expect((await liveThread(place.open(), id)).turns).toHaveLength(2);
  });

  it('answers a change once it is durable, not when all that were asked for are', async () => {
    await threadWith(store, ['a']);
    breakDisk(place.file, 'slow');
    let isLast = false;
    const changes = Array.from({ length: 300 }, () => store.create(headOf()));
    const last = changes.at(-1)?.then(() => {
      isLast = true;
    });
    await changes[0];
    await new Promise(resolve => setImmediate(resolve));
    expect(isLast).toBe(false);
    await last;
    await Promise.all(changes);
  });

  it('is not replaced while another process writes to it', async () => {
    const { id } = await threadWith(store, ['a', 'words that will be damaged']);
    await store.close();
    const bytes = readFileSync(place.file);
    bytes.write('WORDS', bytes.indexOf('words that'));
    writeFileSync(place.file, bytes);
    const other = new DatabaseSync(place.file);
    other.exec('BEGIN IMMEDIATE');
    store = place.open({ program });
    writeFileSync(locksOf(place.file), '');
    const found = liveThread(store, id);
    const setAside = () => readdirSync(place.directory).filter(name => name.includes('.corrupt'));
    await expect.poll(() => readFileSync(locksOf(place.file), 'utf8') !== '' || setAside().length > 0).toBe(true);
    expect(setAside()).toEqual([]);
    other.exec("INSERT INTO leases VALUES ('x', 'me', 1); COMMIT");
    other.close();
    expect((await found).turns).toHaveLength(2);
    expect(setAside().length).toBeGreaterThan(0);
  });

  it('lets a process end by itself also when its writer ended before', () => {
    const root = new URL('../../../', import.meta.url).href;
    const script = `
      const { createSqliteStore } = await import('${root}src/storage/sqlite/sqlite.ts');
      const { realClock } = await import('${root}test/support/clock.ts');
      const { breakDisk } = await import('${root}test/support/break-disk.ts');
      const { headOf } = await import('${root}test/contracts/store-fixtures.ts');
      const [file, program] = process.argv.slice(1);
      const store = createSqliteStore({ file, program, clock: realClock(), onWarning: console.error });
      await store.create(headOf());
      breakDisk(file, 'end');
      const tries = [store.create(headOf()), store.create(headOf())];
      console.log((await Promise.allSettled(tries)).map(({ status }) => status).join());
      breakDisk(file, 'none');
      await store.create(headOf());
      console.log('durable');`;
    const args = ['--input-type=module', '-e', script, place.file, program];
    const ran = spawnSync(process.execPath, args, { timeout: 30_000 });
    expect({ status: ran.status, out: String(ran.stdout), err: String(ran.stderr) }).toEqual({
      status: 0,
      out: 'rejected,rejected\ndurable\n',
      err: '',
    });
  });

  describe('while it is opened', () => {
    let id: ThreadId;
    let before: Buffer;
    beforeEach(async () => {
      ({ id } = await threadWith(store, ['a', 'b']));
      await store.close();
      before = readFileSync(place.file);
      store = place.open({ program });
    });

    const setAside = () => readdirSync(place.directory).filter(name => /\.corrupt-[^.]*Z$/.test(name));

    it('is read where there is no room to open it, says so once, and stays free for others', async () => {
      breakDisk(place.file, 'full start');
      for (let n = 0; n < 3; n++) expect((await liveThread(store, id)).turns).toHaveLength(2);
      await expect(store.create(headOf())).rejects.toMatchObject({ details: { class: 'storage_full' } });
      const other = new DatabaseSync(place.file, { timeout: 0 });
      other.exec('BEGIN IMMEDIATE; ROLLBACK');
      other.close();
      expect(place.warnings).toEqual([expect.stringMatching(/Threads can be read, but nothing can be stored/)]);
      breakDisk(place.file, 'none');
      expect(await append(id, 3)).toBe(3);
      expect((await liveThread(store, id)).turns).toHaveLength(3);
      await store.close();
      // The next time is another one.
      breakDisk(place.file, 'full start');
      store = place.open({ program });
      await liveThread(store, id);
      expect(place.warnings).toHaveLength(2);
    });

    it('is not taken for damaged where a second look finds nothing', async () => {
      breakDisk(place.file, 'damaged once');
      expect((await liveThread(store, id)).turns).toHaveLength(2);
      expect([setAside(), place.warnings]).toEqual([[], []]);
    });

    it('is not taken for damaged where a check tells of a read that failed, and is untouched', async () => {
      breakDisk(place.file, 'misread');
      const message = expect.stringContaining('failed while reading');
      await expect(store.read(id, start)).rejects.toMatchObject({ message, details: { class: 'unavailable' } });
      expect([setAside(), place.warnings, readFileSync(place.file).equals(before)]).toEqual([[], [], true]);
      breakDisk(place.file, 'none');
      expect((await liveThread(store, id)).turns).toHaveLength(2);
    });

    it('is replaced where both looks find damage, which is named in one line', async () => {
      breakDisk(place.file, 'damaged');
      expect((await liveThread(store, id)).turns).toHaveLength(2);
      expect(place.warnings).toEqual([
        expect.stringMatching(/error code 11; Tree 3 page 6: never used\) and was set aside/),
      ]);
      expect(setAside()).toHaveLength(1);
    });
  });
});
