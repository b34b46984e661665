import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isAppError } from '../../../src/core/errors.ts';
import { type ThreadId, threadId } from '../../../src/core/ids.ts';
import { damagedTool, type Thread } from '../../../src/core/thread.ts';
import { sealRecord } from '../../../src/storage/records.ts';
import { logReader } from '../../../src/storage/sqlite/pages.ts';
import { sqliteReads } from '../../../src/storage/sqlite/reader.ts';
import { createSqliteStore } from '../../../src/storage/sqlite/sqlite.ts';
import type { Store } from '../../../src/storage/store.ts';
import {
  changeOf,
  hashOf,
  headOf,
  jobOf,
  newExchangeId,
  newThreadId,
  start,
  threadWith,
  turnOf,
} from '../../contracts/store-fixtures.ts';
import { realClock } from '../../support/clock.ts';
import { seededRandom } from '../../support/random.ts';
import { startSqliteProcess } from '../../support/sqlite-process.ts';
import { liveThread, type SqlitePlace, sqlitePlace } from '../../support/sqlite-temp.ts';

const damage = (kind: string) => ({ kind: 'storage', details: { code: 'STORAGE', class: kind } });

describe('a damaged SQLite file', () => {
  let place: SqlitePlace;
  beforeEach(async () => {
    place = await sqlitePlace();
  });
  afterEach(() => place.dispose());

  /** Threads of many sizes, with all that a thread can have; closed and in one file. */
  async function fill(count: number): Promise<Map<ThreadId, Thread>> {
    const store = place.open();
    const threads = new Map<ThreadId, Thread>();
    for (let index = 0; index < count; index++) {
      const texts = Array.from({ length: 2 + (index % 4) * 2 }, (_, n) =>
        `thread ${index} turn ${n} `.repeat(1 + ((index * 37 + n * 101) % 700)),
      );
      const { id } = await threadWith(store, texts, { title: `thread ${index}` });
      const exchange = newExchangeId();
      const blob = { sha256: hashOf(`blob ${index}`), text: `blob ${index} `.repeat(50) };
      const image = { source: 'data:', mediaType: 'image/png', blob: blob.sha256 };
      await store.commit(
        id,
        changeOf(texts.length, {
          turns: [turnOf(texts.length + 1, { exchange, images: [image] })],
          exchange: { id: exchange, status: 'failed' },
          blobs: [blob],
          workflow: { tool: 'debug', state: { step: index } },
          compaction: { window: 1000, upToSeq: 2, summary: `summary ${index}`, trims: [], createdAt: start },
          tokens: index,
        }),
      );
      threads.set(id, await liveThread(store, id));
    }
    const gone = await threadWith(store, ['gone']);
    await store.remove(gone.id, start);
    await store.close();
    return threads;
  }

  const setAside = () => readdirSync(place.directory).filter(name => /\.corrupt-[^.]*Z$/.test(name));

  /** Overwrites the page where a table begins, also while stores have the file open. */
  function breakTable(name: string): void {
    const db = new DatabaseSync(place.file);
    const page = Number(db.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').get(name)?.rootpage);
    db.close();
    const bytes = readFileSync(place.file);
    bytes.fill(0xff, (page - 1) * 4096, page * 4096);
    writeFileSync(place.file, bytes);
  }

  /** Changes a byte of all records that begin like this and have `id` near that, as far as they still stand in the file. */
  function breakRecords(begin: string, id: string): void {
    const bytes = readFileSync(place.file);
    for (let at = bytes.indexOf(begin); at !== -1; at = bytes.indexOf(begin, at + 1)) {
      const near = bytes.indexOf(id, at);
      if (near !== -1 && near < at + 120) bytes.write('#', near + id.length + 4);
    }
    writeFileSync(place.file, bytes);
  }

  /** Damages the head of a thread, with those that it had before, as far as they still stand in the file. */
  function breakHeads(id: ThreadId): void {
    const bytes = readFileSync(place.file);
    const begin = `{"kind":"head","head":{"id":"${id}"`;
    for (let at = bytes.indexOf(begin); at !== -1; at = bytes.indexOf(begin, at + 1)) bytes.write('#', at + 100);
    writeFileSync(place.file, bytes);
  }

  /** Every thread is as it was but for turns that say that they are lost, is refused, or is not there: never anything else. */
  async function check(store: Store, threads: ReadonlyMap<ThreadId, Thread>): Promise<number> {
    let whole = 0;
    for (const [id, thread] of threads) {
      const found = await store.read(id, start).catch((error: unknown) => {
        if (!isAppError(error) || error.details.class !== 'corrupt') throw error;
        return undefined;
      });
      if (found?.state !== 'live') continue;
      const { turns, seq } = found.value;
      expect(turns).toHaveLength(seq);
      if (turns.every(({ toolName }) => toolName !== damagedTool) && seq === thread.seq) whole++;
      for (const [index, turn] of turns.entries()) {
        if (turn.toolName === damagedTool) continue;
        const { status: _status, ...stored } = turn;
        expect(thread.turns[index]).toMatchObject(stored);
      }
      for (const sha of turns.flatMap(turn => turn.images.map(image => image.blob))) {
        const text = (await store.blobs([sha]).catch(() => new Map())).get(sha);
        if (text !== undefined) expect(hashOf(text.slice(0, text.indexOf(' ', 5)))).toBe(sha);
      }
    }
    return whole;
  }

  it('gives up its jobs too, the later state of each', async () => {
    const store = place.open();
    await threadWith(store, ['a', 'b']);
    const [open, ended] = [jobOf({ createdAt: start + 1 }), jobOf()];
    for (const job of [open, ended]) await store.createJob(job);
    const end = { status: 'done' as const, updatedAt: start + 2, expiresAt: start + 9e9 };
    await store.endJob(ended.id, end);
    await store.close();
    breakTable('records');
    const again = place.open();
    const found = await again.jobs({ owner: 'local', limit: 9, now: start });
    expect(found).toEqual([open, { ...ended, ...end }]);
    expect(setAside()).toHaveLength(1);
  });

  it('that is no database at all is set aside, never deleted, and a new one begun', async () => {
    writeFileSync(place.file, 'These are my notes.\n'.repeat(500));
    const store = place.open();
    const { id } = await threadWith(store, ['a']);
    expect((await liveThread(store, id)).seq).toBe(1);
    expect(setAside()).toEqual([`${basename(place.file)}.corrupt-2027-01-15T08-00-00-000Z`]);
    expect(readFileSync(`${place.file}.corrupt-2027-01-15T08-00-00-000Z`, 'utf8')).toBe(
      'These are my notes.\n'.repeat(500),
    );
    expect(place.warnings).toEqual([expect.stringMatching(/was damaged .* set aside as .*0 threads were kept whole/)]);
  });

  it.each([
    'CREATE TABLE bookmarks (url TEXT)',
    'PRAGMA user_version = 3',
    'PRAGMA application_id = 7',
    'PRAGMA application_id = 7; CREATE TABLE bookmarks (url TEXT)',
    'PRAGMA application_id = 7; PRAGMA user_version = 9; CREATE TABLE bookmarks (url TEXT)',
  ])('of another program is refused and left alone, and is not looked at twice: %s', async sql => {
    const db = new DatabaseSync(place.file);
    db.exec(sql);
    db.close();
    const before = readFileSync(place.file);
    const store = place.open();
    await expect(store.create(headOf())).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('another program'),
    });
    const clock = { ...realClock(), sleep: () => Promise.reject(new Error('It waits.')) };
    const another = createSqliteStore({ file: place.file, clock, onWarning() {} });
    await expect(another.read(headOf().id, start)).rejects.toMatchObject({ kind: 'config' });
    await another.close();
    expect(readFileSync(place.file)).toEqual(before);
    expect(setAside()).toEqual([]);
  });

  it('of a newer version is refused and left alone', async () => {
    await fill(1);
    const db = new DatabaseSync(place.file);
    db.exec('CREATE TABLE later (n INTEGER); PRAGMA user_version = 7');
    db.close();
    const store = place.open();
    await expect(store.list({ owner: 'local', limit: 1, now: start })).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('schema 7'),
      details: { next: expect.stringContaining('Update') },
    });
    expect(setAside()).toEqual([]);
  });

  it('whose first page is lost still gives up every thread', async () => {
    const threads = await fill(12);
    const bytes = readFileSync(place.file);
    bytes.fill(0, 0, 4096);
    writeFileSync(place.file, bytes);
    const store = place.open();
    for (const [id, thread] of threads) expect(await liveThread(store, id)).toEqual(thread);
    expect(await check(store, threads)).toBe(12);
    expect(place.warnings).toEqual([expect.stringContaining('12 threads were kept whole.')]);
    expect(await store.search({ owner: 'local', text: 'thread 11', limit: 20, now: start })).not.toEqual([]);
    expect(await store.list({ owner: 'local', limit: 20, now: start })).toHaveLength(12);
    const blob = hashOf('blob 3');
    expect((await store.blobs([blob])).get(blob)).toBe('blob 3 '.repeat(50));
    await store.commit([...threads.keys()][0]!, changeOf(3, { turns: [turnOf(4)] }));
    await store.close();
    const db = new DatabaseSync(place.file);
    expect(db.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
    expect(db.prepare('PRAGMA foreign_key_check').all()).toEqual([]);
    db.close();
  });

  it('is replaced although an earlier try to do so was cut short, before its end or at it', async () => {
    const threads = await fill(3);
    const bytes = readFileSync(place.file);
    const damaged = Buffer.from(bytes).fill(0, 0, 4096);
    writeFileSync(place.file, damaged);
    for (const name of ['.salvaging', '.salvaging-journal'])
      writeFileSync(place.file + name, 'What is this?'.repeat(99));
    const store = place.open();
    expect(await check(store, threads)).toBe(3);
    await store.close();
    rmSync(place.file);
    writeFileSync(`${place.file}.salvaged`, bytes);
    expect(await check(place.open(), threads)).toBe(3);
    expect(readdirSync(place.directory).filter(name => name.includes('salvag'))).toEqual([]);
    expect(place.warnings).toHaveLength(1);
  });

  it('of which something was set aside before, at the same moment, is set aside under another name', async () => {
    const names: string[][] = [];
    for (let round = 0; round < 3; round++) {
      writeFileSync(place.file, `These are my notes ${round}.\n`.repeat(500));
      const store = place.open();
      await store.list({ owner: 'local', limit: 1, now: start });
      await store.close();
      names.push(readdirSync(place.directory).filter(name => name.includes('.corrupt')));
    }
    const first = `${basename(place.file)}.corrupt-2027-01-15T08-00-00-000Z`;
    expect(names).toEqual([[first], [first, `${first}-2`], [first, `${first}-2`, `${first}-3`]]);
  });

  it('keeps what was deleted deleted, also where the note of it is damaged, and says how many threads are lost', async () => {
    const store = place.open();
    const removed = [await threadWith(store, ['gone', 'too']), await threadWith(store, ['gone'])];
    const [kept, lost] = [await threadWith(store, ['a', 'b'], { owner: 'ann' }), await threadWith(store, ['c'])];
    for (const { id } of removed) await store.remove(id, start + 5);
    await store.close();
    const bytes = readFileSync(place.file);
    const note = bytes.indexOf(`{"kind":"tombstone","id":"${removed[1]!.id}"`);
    bytes.write('#', bytes.indexOf('"state"', note) + 1);
    // Nobody knows whose it was: neither its beginning nor its head is left, and there are two owners.
    for (const kind of ['origin', 'head'])
      for (let at = bytes.indexOf(`{"kind":"${kind}"`); at !== -1; at = bytes.indexOf(`{"kind":"${kind}"`, at + 1))
        if (bytes.indexOf(lost.id, at) < at + 200) bytes.write('#', at + 60);
    bytes.fill(0, 0, 100);
    writeFileSync(place.file, bytes);
    const again = place.open();
    for (const { id } of removed)
      expect(await again.read(id, start + 6)).toEqual({ state: 'deleted', deletedAt: start + 5 });
    expect(await again.read(lost.id, start)).toEqual({ state: 'unknown' });
    expect((await liveThread(again, kept.id)).turns).toHaveLength(2);
    expect(place.warnings).toEqual([expect.stringContaining('1 threads were kept whole. 1 could not be kept.')]);
  });

  it('is checked in full and replaced when that is asked for, and told to be intact where it is', async () => {
    const threads = await fill(2);
    let now = start;
    const onWarning = (message: string) => void place.warnings.push(message);
    const store = createSqliteStore({ file: place.file, clock: { ...realClock(), now: () => now }, onWarning });
    const intact = { isReplaced: false, text: expect.stringContaining('is intact, with every record in it') };
    expect(await store.repair?.()).toEqual(intact);
    expect(await check(store, threads)).toBe(2);
    const bytes = readFileSync(place.file);
    bytes.write('THREAD', bytes.indexOf('thread 1 turn 2'));
    writeFileSync(place.file, bytes);
    // What a full check found holds for a minute.
    now += 59_999;
    expect(await store.repair?.()).toEqual(intact);
    now += 1;
    const [, id] = threads.keys();
    const replaced = { isReplaced: true, text: expect.stringContaining(`${id} without turn 3`) };
    expect(await store.repair?.()).toEqual(replaced);
    now += 1;
    expect(await store.repair?.()).toEqual(intact);
    // Another time only what was lost then is told of; a text that no turn has any more is not kept.
    const [first] = threads.keys();
    const other = new DatabaseSync(place.file);
    other.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    other.close();
    writeFileSync(
      place.file,
      readFileSync(place.file, 'latin1').replaceAll('Turn number 3.', '#urn number 3.'),
      'latin1',
    );
    now += 60_000;
    const again = await store.repair?.();
    expect(again).toEqual({ isReplaced: true, text: expect.stringContaining(`${first} without turn 3`) });
    expect(again?.text).not.toContain(id);
    const db = new DatabaseSync(place.file, { readOnly: true });
    expect(db.prepare('SELECT sha FROM blobs').all()).toEqual([{ sha: hashOf('blob 1') }]);
    db.close();
    await store.close();
    await expect(store.repair?.()).rejects.toMatchObject({ message: expect.stringContaining('closed') });
    expect(place.warnings).toHaveLength(2);
  });

  it('tells that the index of its records leads nowhere, instead of knowing nothing of a thread', async () => {
    const [id] = (await fill(1)).keys();
    const db = new DatabaseSync(place.file, { defensive: false });
    // The index of another table in the place of its own, which no quick check finds.
    db.exec(`CREATE TABLE other (thread INTEGER); CREATE INDEX others ON other (thread); PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'others') WHERE name = 'records_by_thread'`);
    db.close();
    const read = new DatabaseSync(place.file, { readOnly: true });
    const reads = sqliteReads(read, thread => expect.fail(thread));
    expect(() => reads.head(id!, start)).toThrow(/the index of its records/);
    expect(reads.head(newThreadId(), start)).toEqual({ state: 'unknown' });
    read.close();
  });

  it.each(['PRAGMA user_version = 3', 'PRAGMA user_version = 1', 'PRAGMA user_version'])(
    'whose tables are not those of its version gives up every thread: %s',
    async sql => {
      const threads = await fill(3);
      const db = new DatabaseSync(place.file);
      db.exec(`DROP INDEX records_by_thread; ${sql}`);
      db.close();
      expect(await check(place.open(), threads)).toBe(3);
      expect(setAside()).toHaveLength(1);
      expect(place.warnings).toHaveLength(1);
    },
  );

  it('is found damaged at its start in each table that counts, also where it is large', async () => {
    const store = place.open();
    const { id } = await threadWith(store, ['a', 'large '.repeat(900_000)]);
    await store.close();
    const intact = place.open();
    expect(await intact.list({ owner: 'local', limit: 1, now: start })).toHaveLength(1);
    await intact.close();
    expect(place.warnings).toEqual([]);
    breakTable('tombstones');
    const again = place.open();
    expect(await again.jobs({ owner: 'local', limit: 1, now: start })).toEqual([]);
    expect(setAside()).toHaveLength(1);
    expect((await liveThread(again, id)).turns).toHaveLength(2);
  });

  it('is found damaged at its start in its search index too, as long as it is small', async () => {
    const threads = await fill(3);
    const before = place.open();
    await before.search({ owner: 'local', text: 'thread', limit: 1, now: start });
    await before.close();
    breakTable('turn_words_data');
    const store = place.open();
    expect(await store.jobs({ owner: 'local', limit: 1, now: start })).toEqual([]);
    expect(setAside()).toHaveLength(1);
    expect(await store.search({ owner: 'local', text: 'thread', limit: 9, now: start })).toHaveLength(3);
    expect(await check(store, threads)).toBe(3);
  });

  it('leaves out of lists, once told, what its index says of another owner, and is not looked through for it again', async () => {
    const [[id] = []] = await fill(2);
    const before = place.open();
    expect(await before.list({ owner: 'local', limit: 9, now: start })).toHaveLength(2);
    await before.close();
    const db = new DatabaseSync(place.file);
    db.prepare("UPDATE threads SET owner = 'eve' WHERE id = ?").run(id!);
    db.close();
    const store = place.open();
    for (let n = 0; n < 2; n++) expect(await store.list({ owner: 'eve', limit: 9, now: start })).toEqual([]);
    expect(place.warnings).toEqual([
      expect.stringContaining(`Thread ${id} is damaged on the disk; lists and searches`),
    ]);
    expect(setAside()).toEqual([]);
  });

  it('has the latest head of each thread, whose turns or time went on, and what came again after it was deleted', async () => {
    const store = place.open();
    const { id } = await threadWith(store, ['a', 'b']);
    for (let later = 1; later < 4; later++) await store.commit(id, changeOf(2, { updatedAt: start + later }));
    const again = headOf();
    await store.create(again);
    await store.remove(again.id, start);
    await store.create(again, 'revive');
    await store.commit(again.id, changeOf(0, { turns: [turnOf(1)] }));
    const log = readFileSync(`${place.file}-wal`);
    await store.close();
    for (const [name, bytes] of [
      ['', Buffer.alloc(4096, 0x5a)],
      ['-wal', log],
    ] as const)
      writeFileSync(place.file + name, bytes);
    const fresh = place.open();
    expect(await liveThread(fresh, id)).toMatchObject({ seq: 2, updatedAt: start + 3 });
    expect((await liveThread(fresh, again.id)).turns).toHaveLength(1);
  });

  it('keeps threads whose beginning is lost by their head, and by their turns where all are of one owner', async () => {
    const store = place.open();
    const [ann, bob] = ['ann', 'bob'];
    const byHead = await threadWith(store, ['a', 'b'], { owner: ann, title: 'By its head' });
    const compaction = { window: 1000, upToSeq: 2, summary: 'All of it.', trims: [], createdAt: start };
    await store.commit(byHead.id, changeOf(2, { compaction }));
    await threadWith(store, ['c'], { owner: bob });
    await store.close();
    breakRecords('{"kind":"origin"', byHead.id);
    const again = place.open();
    const compactions = [compaction];
    expect(await liveThread(again, byHead.id)).toMatchObject({ owner: ann, title: 'By its head', seq: 2, compactions });
    await again.close();
    rmSync(place.file);
    const alone = place.open();
    const byTurns = await threadWith(alone, ['a', 'b']);
    await alone.commit(byTurns.id, changeOf(2, { compaction }));
    // Its life is short; a thread without its own record lives as long as threads do by default.
    const other = await threadWith(alone, ['c'], { expiresAt: start + 3_600_000 });
    await alone.close();
    for (const kind of ['origin', 'head']) breakRecords(`{"kind":"${kind}"`, byTurns.id);
    const bytes = readFileSync(place.file);
    writeFileSync(place.file, bytes.fill(0, 0, 100));
    const found = place.open();
    const { owner, workspace, turns, ...rest } = await liveThread(found, byTurns.id);
    expect(rest.compactions).toEqual(compactions);
    expect(rest.expiresAt - rest.updatedAt).toBeGreaterThanOrEqual(720 * 3_600_000);
    expect({ owner, workspace, texts: turns.slice(0, 2).map(({ content }) => content) }).toEqual({
      owner: other.owner,
      workspace: other.workspace,
      texts: ['a', 'b'],
    });
    await found.close();
    rmSync(place.file);
    const apart = place.open();
    const lost = await threadWith(apart, ['a', 'b']);
    for (const name of ['one', 'two']) await threadWith(apart, ['c'], { workspace: `/home/ann/${name}` });
    await apart.close();
    for (const kind of ['origin', 'head']) breakRecords(`{"kind":"${kind}"`, lost.id);
    writeFileSync(place.file, readFileSync(place.file).fill(0, 0, 100));
    // Nobody knows of which project it was.
    expect(await liveThread(place.open(), lost.id)).toMatchObject({ owner: lost.owner, workspace: '/' });
  });

  it('gives turns that are lost side by side one exchange, and names them, of many threads the first 20', async () => {
    const store = place.open();
    const ids: ThreadId[] = [];
    for (let n = 0; n < 22; n++) ids.push((await threadWith(store, ['one', 'two', `ask ${n}`, `say ${n}`, 'five'])).id);
    await store.close();
    const bytes = readFileSync(place.file);
    for (let n = 0; n < 22; n++)
      for (const text of [`"ask ${n}"`, `"say ${n}"`]) bytes.write('#', bytes.indexOf(text) + 1);
    writeFileSync(place.file, bytes);
    const again = place.open();
    for (const id of ids) {
      const { turns } = await liveThread(again, id);
      const [asked, said] = turns.slice(2, 4);
      expect([asked?.toolName, said?.toolName]).toEqual([damagedTool, damagedTool]);
      expect([asked?.role, said?.role, said?.exchange]).toEqual(['user', 'assistant', asked?.exchange]);
      expect(asked?.status).toBe('done');
    }
    const [told = ''] = place.warnings;
    expect(told).toMatch(/22 were kept in part: .* without turn 3, 4; .* without turn 3, 4; …\.$/);
    expect(ids.filter(id => told.includes(id))).toHaveLength(20);
  });

  it('serves no thread of which a record is damaged that is no turn, until it is built again', async () => {
    const store = place.open();
    const { id } = await threadWith(store, ['a', 'b']);
    const exchange = newExchangeId();
    const turns = [turnOf(3, { exchange })];
    await store.commit(id, changeOf(2, { turns, exchange: { id: exchange, status: 'failed' } }));
    await store.close();
    breakRecords('{"kind":"exchange"', id);
    const again = place.open();
    // How an exchange ended is judged by whether it has an answer.
    const statuses = (await liveThread(again, id)).turns.map(({ role, status }) => `${role} ${status}`);
    expect(statuses).toEqual(['user done', 'assistant done', 'user interrupted']);
    expect(place.warnings).toEqual([expect.stringContaining('1 threads were kept whole')]);
  });

  it('that was cut off gives up what stands before the cut', async () => {
    const threads = await fill(20);
    truncateSync(place.file, Math.floor((readFileSync(place.file).length * 0.6) / 4096) * 4096 + 1000);
    const store = place.open();
    const whole = await check(store, threads);
    expect(whole, place.warnings.join()).toBeGreaterThan(0);
    expect(whole).toBeLessThan(20);
    expect(setAside()).toHaveLength(1);
    expect(place.warnings).toHaveLength(1);
  });

  it.each([
    'PRAGMA application_id = 1',
    'PRAGMA user_version = 0',
    'PRAGMA application_id = 0; PRAGMA user_version = 9',
  ])('whose header says that it is another one gives up every thread: %s', async sql => {
    const threads = await fill(3);
    const db = new DatabaseSync(place.file);
    db.exec(sql);
    db.close();
    expect(await check(place.open(), threads)).toBe(3);
    expect(setAside()).toHaveLength(1);
  });

  it('that is empty beside its log gives up what the log has', async () => {
    const store = place.open();
    const { id } = await threadWith(store, ['a', 'b']);
    const log = readFileSync(`${place.file}-wal`);
    await store.close();
    writeFileSync(place.file, '');
    writeFileSync(`${place.file}-wal`, log);
    expect((await liveThread(place.open(), id)).turns.map(({ content }) => content)).toEqual(['a', 'b']);
    expect(place.warnings).toEqual([expect.stringContaining('it is empty next to its log')]);
  });

  it('whose turns stand with another thread than their own gives each thread its own', async () => {
    const threads = await fill(3);
    const db = new DatabaseSync(place.file);
    const [one, other] = db.prepare('SELECT DISTINCT thread FROM records ORDER BY thread').all();
    db.prepare("UPDATE records SET thread = ? WHERE thread = ? AND kind = 'turn'").run(other!.thread!, one!.thread!);
    db.close();
    expect(await check(place.open(), threads)).toBe(3);
    expect(setAside()).toHaveLength(1);
  });

  it('is not taken for damaged where another process moves its log and begins it anew while it is looked at', async () => {
    const { id } = await threadWith(place.open(), ['a', 'b', 'c', 'd']);
    const log = logReader(place.file);
    expect([log.frames > 4, log.leavesOut(log.frames), log.leavesOut(1)]).toEqual([true, false, true]);
    const db = new DatabaseSync(place.file);
    db.exec('PRAGMA wal_checkpoint(RESTART)');
    expect(log.leavesOut(1)).toBe(false);
    for (let round = 0; round < 3; round++)
      db.exec(`INSERT INTO leases VALUES ('${round}', 'me', 1); PRAGMA wal_checkpoint`);
    db.exec('DELETE FROM records; PRAGMA wal_checkpoint');
    expect(log.leavesOut(1)).toBe(false);
    db.close();
    expect(await place.open().read(id, start)).toEqual({ state: 'unknown' });
  });

  it('is healthy where the power failed as its log began anew, and gives up what is in a log with a damaged header', async () => {
    const store = place.open();
    const { id } = await threadWith(store, ['a', 'b', 'c', 'd']);
    const [early, log] = ['', '-wal'].map(suffix => readFileSync(place.file + suffix));
    const db = new DatabaseSync(place.file);
    db.exec("PRAGMA wal_checkpoint(RESTART); INSERT INTO leases VALUES ('x', 'me', 1)");
    const [file, next] = ['', '-wal'].map(suffix => readFileSync(place.file + suffix));
    db.close();
    await store.close();
    // The header of the new round is on the disk, and parts of its pages over what is left of the round before.
    const begun = Buffer.concat([next!.subarray(0, 32), log!.subarray(32)]);
    for (let at = 32 + 24 + 1_000; at < begun.length; at += 4_096 + 24) begun.fill(7, at, at + 512);
    const flipped = Buffer.from(log!);
    flipped[20]! ^= 1;
    for (const [bytes, left, warned] of [
      [file!, begun, 0],
      [early!, flipped, 1],
    ] as const) {
      for (const [suffix, content] of [
        ['', bytes],
        ['-wal', left],
      ] as const)
        writeFileSync(place.file + suffix, content);
      const again = place.open();
      expect((await liveThread(again, id)).turns.map(({ content }) => content)).toEqual(['a', 'b', 'c', 'd']);
      await again.close();
      expect(place.warnings).toHaveLength(warned);
    }
  });

  it('brings its latest transactions along, although they are not in the main file yet', async () => {
    const store = place.open();
    const { id } = await threadWith(store, ['a', 'b', 'c', 'd']);
    const copies = ['', '-wal'].map(suffix => [place.file + suffix, `${place.file}${suffix}.copy`] as const);
    for (const [from, to] of copies) copyFileSync(from, to);
    await store.close();
    for (const [to, from] of copies) copyFileSync(from, to);
    writeFileSync(place.file, Buffer.alloc(4096, 0x5a));
    const again = place.open();
    expect((await liveThread(again, id)).turns.map(turn => turn.content)).toEqual(['a', 'b', 'c', 'd']);
    expect(readdirSync(place.directory).filter(name => name.endsWith('Z-wal'))).toHaveLength(1);
  });

  it.each([
    [2, 'user'],
    [3, 'assistant'],
  ])(
    'keeps all of a thread but turn %i that is lost, in whose place stands that it is, and names it',
    async (n, role) => {
      const threads = await fill(3);
      const [id, thread] = [...threads][2]!;
      const bytes = readFileSync(place.file);
      const at = bytes.indexOf(`thread 2 turn ${n}`);
      bytes.write('THREAD', at);
      bytes.fill(0, 0, 100);
      writeFileSync(place.file, bytes);
      const store = place.open();
      const kept = await liveThread(store, id);
      const lost = kept.turns[n]!;
      expect(kept.turns).toEqual(thread.turns.with(n, lost));
      expect(lost).toMatchObject({ seq: n + 1, role, toolName: damagedTool, exchange: thread.turns[n]!.exchange });
      expect(lost.content).toMatch(/^\[Turn [34] of this thread was damaged .* kept as threads\.sqlite\.corrupt-/);
      // A step of it may rest on what is lost.
      expect(kept.workflows).toEqual({});
      expect(place.warnings[0]).toContain(`${id} without turn ${n + 1}`);
      expect(await store.commit(id, changeOf(kept.seq, { turns: [turnOf(kept.seq + 1)] }))).toBe(kept.seq + 1);
    },
  );

  it('serves a thread with a turn that only its checksum shows to be damaged, and says which', async () => {
    const threads = await fill(3);
    const [id, thread] = [...threads][1]!;
    const bytes = readFileSync(place.file);
    bytes.write('THREAD', bytes.indexOf('thread 1 turn 2'));
    writeFileSync(place.file, bytes);
    const store = place.open();
    const { turns } = await liveThread(store, id);
    expect(turns.map(({ toolName }) => toolName)).toEqual(['chat', 'chat', damagedTool, 'chat', 'chat']);
    expect(turns.toSpliced(2, 1)).toEqual(thread.turns.toSpliced(2, 1));
    for (const [other, intact] of threads) if (other !== id) expect(await liveThread(store, other)).toEqual(intact);
    expect(await store.remove(id, start)).toBe(true);
    expect(setAside()).toHaveLength(1);
  });

  it('builds the head and the place in lists of a thread again, and never shows it to another owner', async () => {
    const threads = await fill(3);
    const before = place.open();
    expect(await before.list({ owner: 'local', limit: 9, now: start })).toHaveLength(3);
    await before.close();
    const [id] = [...threads][1]!;
    const db = new DatabaseSync(place.file);
    db.prepare("UPDATE threads SET owner = 'eve' WHERE id = ?").run([...threads][2]![0]);
    db.close();
    breakHeads(id);
    const store = place.open();
    expect(await store.list({ owner: 'eve', limit: 9, now: start })).toEqual([]);
    const listed = await store.list({ owner: 'local', limit: 9, now: start });
    expect(new Set(listed.map(head => head.id))).toEqual(new Set(threads.keys()));
    const { turns } = await liveThread(store, id);
    expect(turns.slice(0, -1)).toEqual([...threads.values()][1]!.turns);
    expect(turns.at(-1)?.content).toContain('What followed turn 5 of this thread may have been damaged');
    expect(place.warnings).toHaveLength(1);
    await store.commit(id, changeOf(6, { turns: [turnOf(7)] }));
  });

  it('searches a thread whose head is damaged, once that is built again', async () => {
    const threads = await fill(3);
    const before = place.open();
    const find = (store: Store) => store.search({ owner: 'local', text: 'turn 1', limit: 9, now: start });
    expect(await find(before)).toHaveLength(3);
    await before.close();
    const [, id] = threads.keys();
    breakHeads(id!);
    const found = await find(place.open());
    expect(new Set(found.map(({ thread }) => thread.id))).toEqual(new Set(threads.keys()));
    expect(place.warnings).toHaveLength(1);
  });

  it('takes a turn whose thread has a damaged head: the head is built again first', async () => {
    const threads = await fill(2);
    const [id, { seq }] = [...threads][1]!;
    breakHeads(id);
    const store = place.open();
    // What comes at the same moment is made once.
    const made = store.create(headOf());
    // The turn that says that more may be lost stands where the caller expected its own.
    await expect(store.commit(id, changeOf(seq))).rejects.toMatchObject(damage('conflict'));
    await made;
    expect(await store.commit(id, changeOf(seq + 1, { turns: [turnOf(seq + 2)] }))).toBe(seq + 2);
  });

  it('never serves a stored text that changed', async () => {
    await fill(1);
    const sha = hashOf('blob 0');
    const bytes = readFileSync(place.file);
    bytes.write('BLOB', bytes.indexOf('blob 0 blob 0'));
    writeFileSync(place.file, bytes);
    await expect(place.open().blobs([sha])).rejects.toMatchObject(damage('corrupt'));
  });

  it('takes no record from a stored text that looks like one, whatever it begins with', async () => {
    const [id, thread] = [...(await fill(1))][0]!;
    const before = place.open();
    const { body, seal } = sealRecord({ kind: 'tombstone', id, state: 'deleted', at: start });
    const texts = ['', 'Ł\r', `${'x'.repeat(4_090)}Ł\r`].map(begin => `${begin}${body}${seal}`);
    const blobs = texts.map(text => ({ sha256: hashOf(text), text }));
    await before.commit(id, changeOf(thread.seq, { blobs }));
    await before.close();
    breakTable('workflows');
    const { turns } = await liveThread(place.open(), id);
    expect(turns).toEqual(thread.turns);
    expect(setAside()).toHaveLength(1);
  });

  it('that breaks while it is open is set aside at once, and the read is answered', async () => {
    const threads = await fill(30);
    const store = place.open();
    await store.list({ owner: 'local', limit: 1, now: start });
    breakTable('workflows');
    for (const [id, thread] of threads) expect(await liveThread(store, id)).toEqual(thread);
    expect(setAside()).toHaveLength(1);
    expect(existsSync(place.file)).toBe(true);
    const other = place.open();
    expect(await check(other, threads)).toBe(30);
  });

  it('is replaced once by processes that all find it damaged', async () => {
    const threads = await fill(40);
    for (let round = 0; round < 2; round++) {
      const bytes = readFileSync(place.file);
      bytes.fill(0, 0, 4096);
      writeFileSync(place.file, bytes);
      const writers = Array.from({ length: 5 }, () => startSqliteProcess('write', place.file));
      await Promise.all(writers.map(writer => writer.said(line => Number(line) >= 4)));
      for (const { child } of writers) child.kill('SIGKILL');
      const ends = await Promise.all(writers.map(writer => writer.ended));
      expect(ends.filter(({ errors }) => errors !== '')).toEqual([
        { code: null, errors: expect.stringMatching(/^warning: .* was set aside/) },
      ]);
      const store = place.open();
      expect(await check(store, threads)).toBe(40);
      for (const writer of writers) {
        const [name = '', ...acks] = writer.lines();
        expect((await liveThread(store, threadId(name))).seq).toBeGreaterThanOrEqual(acks.length);
      }
      await store.close();
    }
    expect(setAside()).toHaveLength(2);
  });

  it('moves every process that has it open to the new file, so that none writes into the old one', async () => {
    const threads = await fill(10);
    const [first, second] = [place.open(), place.open()];
    const [id, thread] = [...threads][0]!;
    for (const store of [first, second]) await liveThread(store, id);
    await second.commit(id, changeOf(thread.seq, { turns: [turnOf(thread.seq + 1)] }));
    breakTable('records');
    await liveThread(first, id);
    expect(setAside()).toHaveLength(1);
    await second.commit(id, changeOf(thread.seq + 1, { turns: [turnOf(thread.seq + 2)] }));
    expect((await liveThread(first, id)).seq).toBe(thread.seq + 2);
  });

  it('never makes the store fall over or serve a wrong turn, whichever bit is flipped', {
    timeout: 240_000,
  }, async () => {
    const threads = await fill(10);
    const original = readFileSync(place.file);
    const random = seededRandom(7);
    let whole = 0;
    const rounds = 75;
    for (let round = 0; round < rounds; round++) {
      const bytes = Buffer.from(original);
      // Every third time in the first pages, which say what all the others are.
      const range = round % 3 === 0 ? 8192 : bytes.length;
      for (let flips = 1 + (round % 4); flips > 0; flips--) {
        const at = Math.floor(random.fraction() * range);
        bytes[at] = bytes[at]! ^ (1 << Math.floor(random.fraction() * 8));
      }
      writeFileSync(place.file, bytes);
      const store = place.open();
      whole += await check(store, threads);
      await threadWith(store, [`round ${round}`, 'works']);
      await store.close();
    }
    expect(whole / (rounds * threads.size)).toBeGreaterThan(0.9);
  });
});
