import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { threadId } from '../../../src/core/ids.ts';
import type { JsonObject } from '../../../src/core/json.ts';
import { sqliteReads } from '../../../src/storage/sqlite/reader.ts';
import { createSqliteStore } from '../../../src/storage/sqlite/sqlite.ts';
import type { ListQuery, Store } from '../../../src/storage/store.ts';
import {
  changeOf,
  hashOf,
  headOf,
  hour,
  newExchangeId,
  start,
  threadWith,
  turnOf,
} from '../../contracts/store-fixtures.ts';
import { asNobody } from '../../support/as-nobody.ts';
import { realClock } from '../../support/clock.ts';
import { startSqliteProcess } from '../../support/sqlite-process.ts';
import { activeThreads, liveThread, type SqlitePlace, sqlitePlace } from '../../support/sqlite-temp.ts';

describe('the SQLite store', () => {
  let place: SqlitePlace;
  beforeEach(async () => {
    place = await sqlitePlace();
  });
  afterEach(() => place.dispose());

  /** What a look into the file from outside finds. */
  function ask(sql: string): unknown {
    const db = new DatabaseSync(place.file);
    const [value] = Object.values(db.prepare(sql).get() ?? {});
    db.close();
    return value;
  }

  it('gives threads thirty days', () => {
    expect(place.open().defaultTimeoutHours).toBe(720);
  });

  it('touches nothing before its first use, and nothing when it is closed unused', async () => {
    const store = place.open();
    await store.close();
    await expect(store.read(headOf().id, start)).rejects.toMatchObject({ message: expect.stringContaining('closed') });
    expect(readdirSync(place.directory)).toEqual([]);
  });

  it('is made ready without a trace, and works', async () => {
    const [unused, store] = [place.open(), place.open()];
    for (const each of [unused, store]) each.warm?.();
    await unused.close();
    await expect(unused.list({ owner: 'local', limit: 9, now: start })).rejects.toThrow('closed');
    expect(readdirSync(place.directory)).toEqual([]);
    const { id } = await threadWith(store, ['a']);
    store.warm?.();
    expect((await liveThread(store, id)).turns).toHaveLength(1);
  });

  it('keeps no process alive while it has nothing to do', async () => {
    const store = place.open();
    await threadWith(store, ['a']);
    await new Promise(resolve => setImmediate(resolve));
    const before = activeThreads();
    const made = store.create(headOf());
    await new Promise(resolve => setImmediate(resolve));
    const during = activeThreads();
    await made;
    expect(during).toBeGreaterThan(before);
    await expect.poll(activeThreads).toBe(before);
  });

  it('is read while another process keeps its lock, lists all, and says that a search may miss the newest', async () => {
    const real = realClock();
    // An index that is not up to date is waited for by a list or a search for two seconds, of which a tenth passes.
    const clock = { ...real, after: (ms: number, run: () => void) => real.after(ms === 2_000 ? 200 : ms, run) };
    const store = place.open({ clock });
    const { id } = await threadWith(store, ['a', 'b']);
    expect(await store.list({ owner: 'local', limit: 9, now: start })).toHaveLength(1);
    await threadWith(store, ['c']);
    const third = place.open({ clock });
    await third.create(headOf({ owner: 'ann' }));
    const other = new DatabaseSync(place.file);
    other.exec('BEGIN IMMEDIATE');
    const waiting = third.create(headOf({ owner: 'ann' }));
    const change = store.create(headOf());
    let isChanged = false;
    void change.then(() => {
      isChanged = true;
    });
    // A store that does nothing else, and some whose writers wait, one of which reads for the first time.
    const second = place.open({ clock });
    for (const each of [second, third, store]) expect((await liveThread(each, id)).turns).toHaveLength(2);
    expect(await store.list({ owner: 'local', limit: 9, now: start })).toHaveLength(2);
    expect(place.warnings).toEqual([]);
    expect(await store.search({ text: 'c', owner: 'local', limit: 9, now: start })).toEqual([]);
    expect(place.warnings).toEqual([expect.stringMatching(/index of words is not up to date.* may miss/)]);
    expect(isChanged).toBe(false);
    other.exec('ROLLBACK');
    other.close();
    await Promise.all([change, waiting]);
    expect(await store.list({ owner: 'local', limit: 9, now: start })).toHaveLength(3);
  });

  it('lists what came in since the index was written, in its place and once', async () => {
    const store = place.open();
    expect(store.kind).toBe('sqlite');
    const { id: old } = await threadWith(store, ['a', 'b']);
    const { id: third } = await threadWith(store, ['a']);
    await store.list({ owner: 'local', limit: 9, now: start });
    const { id: newest } = await threadWith(store, ['c'], { updatedAt: start + 1 });
    await store.create(headOf({ owner: 'bob', updatedAt: start + 1 }));
    const { id: elsewhere } = await threadWith(store, [], { workspace: '/other', updatedAt: start + 2 });
    await store.create(headOf({ expiresAt: start }));
    await store.commit(old, changeOf(2, { turns: [turnOf(3)] }));
    await store.close();
    const db = new DatabaseSync(place.file, { readOnly: true });
    const reads = sqliteReads(db, thread => expect.fail(thread));
    const listed = (query: Partial<ListQuery>) =>
      reads.list({ owner: 'local', limit: 9, now: start, ...query }).map(head => head.id);
    const last = threadId('ffffffff-ffff-4fff-bfff-ffffffffffff');
    expect(reads.lags('threads')).toBe(true);
    expect(listed({})).toEqual([old, elsewhere, newest, third]);
    expect(listed({ limit: 2 })).toEqual([old, elsewhere]);
    expect(listed({ limit: 0 })).toEqual([]);
    expect(listed({ workspace: '/other' })).toEqual([elsewhere]);
    expect(listed({ before: start + 2 })).toEqual([newest, third]);
    expect(listed({ before: start + 2, beforeId: last })).toEqual([elsewhere, newest, third]);
    expect(listed({ before: start + 2, beforeId: elsewhere })).toEqual([newest, third]);
    db.close();
  });

  it('opens beside other work what its first use would open, and is closed meanwhile', async () => {
    const store = place.open();
    store.open?.();
    await expect.poll(() => existsSync(place.file)).toBe(true);
    await store.close();
    const again = place.open();
    again.open?.();
    await again.close();
    expect(ask('PRAGMA quick_check')).toBe('ok');
  });

  it('takes along what nobody waits for with the next change, before it, and loses none of it', async () => {
    const store = place.open();
    const noted = (key: string) =>
      store.swapFact({ key, version: 0, value: { key }, expiresAt: start + hour, now: start, unhurried: true });
    const alongside = noted('alongside');
    await threadWith(store, ['a']);
    expect(await store.fact('alongside', start)).toMatchObject({ value: { key: 'alongside' } });
    expect(await alongside).toBe(true);
    for (const key of ['alone', 'and alone again']) expect(await noted(key)).toBe(true);
    const atTheEnd = noted('at the end');
    await store.close();
    expect(await atTheEnd).toBe(true);
    const again = place.open();
    expect([...(await again.facts('a', start)).keys()]).toEqual([
      'alone',
      'alongside',
      'and alone again',
      'at the end',
    ]);
    await again.close();
  });

  it('keeps its files and directories from other users', async () => {
    const file = join(place.directory, 'home', 'data', 'threads.sqlite');
    const store = createSqliteStore({ file, clock: realClock(), onWarning: () => {} });
    await threadWith(store, ['a']);
    for (const name of ['', '-wal', '-shm', '.lock']) expect(statSync(file + name).mode & 0o777, name).toBe(0o600);
    for (const name of ['home', 'home/data']) expect(statSync(join(place.directory, name)).mode & 0o777).toBe(0o700);
    await store.close();
    chmodSync(file, 0o644);
    const again = createSqliteStore({ file, clock: realClock(), onWarning: () => {} });
    await again.list({ owner: 'local', limit: 1, now: start });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await again.close();
  });

  it('marks the file as its own and leaves all of it in one file when it closes', async () => {
    const store = place.open();
    await threadWith(store, ['a', 'b']);
    await store.close();
    expect(existsSync(`${place.file}-wal`)).toBe(false);
    expect(ask('PRAGMA application_id')).toBe(0x504c4f47);
    expect(ask('PRAGMA journal_mode')).toBe('wal');
    expect(ask("SELECT count(*) FROM records WHERE kind = 'turn'")).toBe(2);
  });

  it('goes on in a new file where it was deleted, for whoever reads or writes first', async () => {
    for (const isRead of [true, false]) {
      const store = place.open();
      const { id } = await threadWith(store, ['a']);
      await liveThread(store, id);
      for (const suffix of ['', '-wal', '-shm']) rmSync(place.file + suffix, { force: true });
      if (isRead) expect(await store.read(id, start)).toEqual({ state: 'unknown' });
      const next = await threadWith(store, ['b']);
      expect((await liveThread(store, next.id)).turns).toHaveLength(1);
      expect(await store.list({ owner: 'local', limit: 9, now: start })).toHaveLength(1);
      await store.close();
      rmSync(place.file);
    }
    expect(place.warnings).toEqual([]);
  });

  it('goes on in the same new file for all who had the one that was deleted, though its log was empty', async () => {
    const [store, other] = [place.open(), place.open()];
    for (const each of [store, other]) await threadWith(each, ['before']);
    ask('PRAGMA wal_checkpoint(TRUNCATE)');
    rmSync(place.file);
    for (const each of [store, other, store]) await threadWith(each, ['after']);
    for (const each of [store, other])
      expect(await each.list({ owner: 'local', limit: 9, now: start })).toHaveLength(3);
    expect(ask('PRAGMA integrity_check')).toBe('ok');
    for (const each of [store, other]) await each.close();
    expect(place.warnings).toEqual([]);
  });

  it('is opened by one process at a time', async () => {
    writeFileSync(`${place.file}.lock`, '');
    const opener = new DatabaseSync(`${place.file}.lock`);
    opener.exec('BEGIN EXCLUSIVE');
    const store = place.open();
    let isMade = false;
    const made = store.create(headOf()).then(() => {
      isMade = true;
    });
    const other = createSqliteStore({
      file: join(place.directory, 'other.sqlite'),
      clock: realClock(),
      onWarning() {},
    });
    await threadWith(other, ['a', 'b']);
    await other.close();
    expect([isMade, existsSync(place.file)]).toEqual([false, false]);
    opener.exec('ROLLBACK');
    opener.close();
    await made;
  });

  it('opens once for many first uses at the same time', async () => {
    const store = place.open();
    const lists = Array.from({ length: 20 }, () => store.list({ owner: 'local', limit: 1, now: start }));
    expect(await Promise.all(lists)).toEqual(lists.map(() => []));
    const heads = Array.from({ length: 20 }, () => headOf());
    await Promise.all(heads.map(head => store.create(head)));
    expect(await store.list({ owner: 'local', limit: 50, now: start })).toHaveLength(20);
  });

  it('works again once a directory that could not be written to can', async () => {
    const blocked = join(place.directory, 'blocked');
    writeFileSync(blocked, 'a file where the directory should be');
    const store = createSqliteStore({ file: join(blocked, 'threads.sqlite'), clock: realClock(), onWarning: () => {} });
    for (const use of [() => store.create(headOf()), () => store.list({ owner: 'local', limit: 1, now: start })]) {
      await expect(use()).rejects.toMatchObject({ kind: 'storage', details: { class: 'unavailable' } });
    }
    rmSync(blocked);
    mkdirSync(blocked);
    expect((await liveThread(store, (await threadWith(store, ['a'])).id)).seq).toBe(1);
    await store.close();
  });

  const obstacles: [string, (path: string) => void, string][] = [
    ['a directory', path => mkdirSync(path, { mode: 0o755 }), 'is not a file'],
    ['a link to itself', path => symlinkSync(path, path), 'is not a file'],
    ['a link to nothing', path => symlinkSync(`${path}.gone`, path), 'is not a file'],
    ['a file of another user', path => writeFileSync(path, '', { mode: 0o600 }), 'unable to open database file'],
  ];
  it.each(obstacles.flatMap(row => ['', '.lock'].map(suffix => [...row, suffix] as const)))(
    'names what %s is in the way of, whoever uses it, and leaves it alone',
    async (_, obstruct, said, suffix) => {
      const path = place.file + suffix;
      obstruct(path);
      const { mode } = lstatSync(path);
      chmodSync(place.directory, 0o777);
      const store = place.open();
      const uses = [
        () => store.inspect!(),
        () => store.create(headOf()),
        () => store.list({ owner: 'local', limit: 1, now: start }),
      ];
      await asNobody(async () => {
        for (const use of uses)
          await expect(use()).rejects.toMatchObject({
            message: expect.stringMatching(new RegExp(` ?${path}[: ].*${said}`)),
            details: { code: 'STORAGE', class: 'unavailable', next: expect.stringContaining('POLYLOGUE_HOME') },
          });
      });
      expect(lstatSync(path).mode).toBe(mode);
      rmSync(path, { recursive: true });
      const ready = `threads can be read and written in ${place.file}`;
      expect(await store.inspect!()).toEqual({ text: ready, warnings: [] });
    },
  );

  it.each([
    ['bytes of another program', randomBytes(500)],
    ['zeros', Buffer.alloc(8192)],
    ['the beginning of a database', 'SQLite format 3\0'],
  ])(
    'opens for many processes at once where its lock holds %s, and takes the threads for no worse',
    async (_, bytes) => {
      const { id } = await threadWith(place.open(), ['a', 'b']);
      writeFileSync(`${place.file}.lock`, bytes);
      const readers = Array.from({ length: 4 }, () => startSqliteProcess('read', place.file, id));
      for (const { ended, lines } of readers) {
        expect(await ended).toEqual({ code: 0, errors: '' });
        expect(lines()).toEqual(['2 true']);
      }
      // Here too.
      writeFileSync(`${place.file}.lock`, bytes);
      expect(await place.open().repair!()).toMatchObject({ isReplaced: false });
      expect([place.warnings, statSync(`${place.file}.lock`).size]).toEqual([[], 0]);
    },
  );

  it('answers reads that are under way when it closes, or says that it closed', async () => {
    const store = place.open();
    const { id } = await threadWith(store, ['a']);
    const reads = Array.from({ length: 10 }, () => store.read(id, start).catch((error: Error) => error.message));
    await store.close();
    for (const found of await Promise.all(reads)) {
      expect(typeof found === 'string' ? found : found.state).toMatch(/^live$|is closed/);
    }
  });

  it('answers for the head without a look at the turns', async () => {
    const store = place.open();
    const { id } = await threadWith(store, ['a', 'b']);
    const db = new DatabaseSync(place.file);
    db.exec("UPDATE records SET body = 'damaged' WHERE kind = 'turn'");
    db.close();
    expect(await store.head(id, start)).toMatchObject({ state: 'live', value: { seq: 2 } });
    expect(place.warnings).toEqual([]);
    // What they were before still stands in pages that SQLite no longer uses.
    expect((await liveThread(store, id)).turns.map(({ content }) => content)).toEqual(['a', 'b']);
    expect(place.warnings).toEqual([expect.stringContaining('1 threads were kept whole.')]);
  });

  it('finds threads, turns and expired threads by indexes', async () => {
    await threadWith(place.open(), ['a']);
    const db = new DatabaseSync(place.file, { readOnly: true });
    const plan = (sql: string) =>
      db
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(row => row.detail)
        .join('; ');
    const plans = [
      plan("SELECT * FROM threads WHERE owner = 'a' AND updated_at < 9 ORDER BY updated_at DESC, n DESC"),
      plan(
        "SELECT * FROM threads WHERE owner = 'a' AND workspace = 'w' AND updated_at < 9 ORDER BY updated_at DESC, n DESC",
      ),
      plan('SELECT * FROM records WHERE thread = 1 AND n > 9 ORDER BY n'),
      plan('SELECT * FROM records WHERE thread = 1 ORDER BY n DESC LIMIT 1'),
      plan("SELECT usd FROM spend WHERE owner = 'a' AND day = 'd' AND thread = 't' AND key = 'k'"),
      plan('SELECT n FROM threads WHERE expires_at <= 9'),
      plan("SELECT 1 FROM threads WHERE parent = 'p'"),
      plan("SELECT 1 FROM blob_refs WHERE sha = 's'"),
    ];
    db.close();
    for (const found of plans) {
      expect(found).toMatch(/USING (COVERING )?INDEX/);
      expect(found).not.toMatch(/SCAN|TEMP B-TREE/);
    }
  });

  it('leaves nothing in the file of threads that were removed or expired', async () => {
    const store = place.open();
    const fill = async (expiresAt: number) => {
      const { id } = await threadWith(store, ['secret plans', 'more'], { expiresAt });
      const exchange = newExchangeId();
      await store.commit(
        id,
        changeOf(2, {
          turns: [turnOf(3, { exchange })],
          exchange: { id: exchange, status: 'done' },
          blobs: [{ sha256: hashOf(id), text: 'blob' }],
          workflow: { tool: 'debug', state: {} },
          compaction: { window: 1, upToSeq: 1, summary: 's', trims: [], createdAt: start },
          expiresAt,
        }),
      );
      return id;
    };
    await store.remove(await fill(start + hour), start);
    await fill(start + hour);
    await store.prune(start + hour);
    for (const table of ['records', 'threads', 'workflows', 'blobs', 'blob_refs']) {
      expect(ask(`SELECT count(*) FROM ${table}`), table).toBe(0);
    }
    expect(ask(`SELECT count(*) FROM turn_words WHERE turn_words MATCH 'secret OR turn'`)).toBe(0);
  });

  it('refuses a change that cannot be copied to its writer, and makes those that were asked for with it', async () => {
    const store = place.open();
    const { id } = await threadWith(store, ['a']);
    const state = { call: () => undefined } as unknown as JsonObject;
    const tries = [
      store.create(headOf()),
      store.commit(id, changeOf(1, { workflow: { tool: 'debug', state } })),
      store.create(headOf()),
    ];
    const statuses = (await Promise.allSettled(tries)).map(({ status }) => status);
    expect(statuses).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('writes what may wait for others at the latest when it is closed', async () => {
    const store = place.open();
    const leased = store.lease('x', 'me', hour, start, true);
    await store.close();
    expect(ask(`SELECT count(*) FROM leases`)).toBe(1);
    expect(await leased).toBe(true);
  });

  it('is opened as it is where it is too large to be checked as a whole', async () => {
    const store = place.open();
    const { id } = await threadWith(store, ['a', 'long '.repeat(1_500_000)]);
    await store.close();
    expect(statSync(place.file).size).toBeGreaterThan(5 * 1024 * 1024);
    const { turns } = await liveThread(place.open(), id);
    expect([turns.length, place.warnings]).toEqual([2, []]);
    expect(readdirSync(place.directory).filter(name => name.includes('.corrupt'))).toEqual([]);
  });

  it('has another mark once the file is another one, however few changes both have seen', async () => {
    const store = place.open();
    await threadWith(store, ['a']);
    await store.mark();
    await store.close();
    const reading = place.open();
    const before = await reading.mark();
    copyFileSync(place.file, `${place.file}.copy`);
    for (const name of ['-wal', '-shm']) rmSync(`${place.file}${name}`, { force: true });
    renameSync(`${place.file}.copy`, place.file);
    const after = await reading.mark();
    expect(after).not.toBe(before);
    expect(await reading.mark()).toBe(after);
  });

  // As a backup is put back: SQLite would take what the old file left in its log for the new one's.
  it.each(['a reader', 'a writer', 'a repair'])(
    'is the file that was moved into its place, without the log of the one before, to %s',
    async first => {
      const [store, other] = [place.open(), place.open()];
      const kept = await threadWith(store, ['kept']);
      new DatabaseSync(place.file).exec(`VACUUM INTO '${place.file}.backup'`);
      const later = [];
      for (let n = 0; n < 40; n++) later.push((await threadWith(store, [`later ${n}`])).id);
      await liveThread(other, kept.id);
      renameSync(`${place.file}.backup`, place.file);
      if (first === 'a writer') await threadWith(other, ['new']);
      if (first === 'a repair') expect(await store.repair?.()).toMatchObject({ isReplaced: false });
      for (const each of [store, other]) {
        expect(await liveThread(each, kept.id)).toMatchObject({ turns: [{ content: 'kept' }] });
        for (const id of later) expect(await each.read(id, start)).toEqual({ state: 'unknown' });
        await threadWith(each, ['new']);
      }
      expect(ask('PRAGMA integrity_check')).toBe('ok');
      for (const each of [store, other]) await each.close();
      expect(place.warnings).toEqual([expect.stringContaining('-wal.former')]);
      expect(readdirSync(place.directory).filter(name => name.includes('.former'))).toHaveLength(1);
    },
  );

  it.each([true, false])(
    'is without that log to a process that opens it for the first time, too (log with changes: %s)',
    async hasLog => {
      const store = place.open();
      const kept = await threadWith(store, ['kept']);
      ask(`VACUUM INTO '${place.file}.backup'`);
      const later = await threadWith(store, ['later']);
      if (!hasLog) ask('PRAGMA wal_checkpoint(TRUNCATE)');
      renameSync(`${place.file}.backup`, place.file);
      const other = startSqliteProcess('lease', place.file, 'other');
      await other.said(line => line === 'true');
      const reader = startSqliteProcess('read', place.file, kept.id);
      expect(await reader.ended).toEqual({ code: 0, errors: '' });
      expect(reader.lines()).toEqual(['1 true']);
      expect(await store.read(later.id, start)).toEqual({ state: 'unknown' });
      await threadWith(store, ['new']);
      expect(await store.lease('other', 'me', hour, start)).toBe(false);
      other.child.kill();
      await store.close();
      expect(ask('PRAGMA integrity_check')).toBe('ok');
      expect(readdirSync(place.directory).filter(name => name.includes('.former'))).toHaveLength(hasLog ? 1 : 0);
    },
  );

  it('keeps its log where that has the number of another one by chance, as in a copied home', async () => {
    const store = place.open();
    const kept = await threadWith(store, ['kept']);
    writeFileSync(`${place.file}-log`, `1 ${statSync(`${place.file}-wal`).ino}:5`);
    const reader = startSqliteProcess('read', place.file, kept.id);
    expect(await reader.ended).toEqual({ code: 0, errors: '' });
    expect(reader.lines()).toEqual(['1 true']);
    await store.close();
    expect(readdirSync(place.directory).filter(name => name.includes('.former'))).toEqual([]);
  });

  it('is another one under the number of the first, too, without the log of the one between', async () => {
    const store = place.open();
    const first = await threadWith(store, ['first']);
    await liveThread(store, first.id);
    ask('PRAGMA wal_checkpoint(TRUNCATE)');
    linkSync(place.file, `${place.file}.first`);
    writeFileSync(`${place.file}.second`, '');
    await store.backUp?.(`${place.file}.second`);
    renameSync(`${place.file}.second`, place.file);
    const other = startSqliteProcess('lease', place.file, 'other');
    await other.said(line => line === 'true');
    const second = await threadWith(store, ['second']);
    await liveThread(store, second.id);
    renameSync(`${place.file}.first`, place.file);
    expect(await store.read(second.id, start)).toEqual({ state: 'unknown' });
    await liveThread(store, first.id);
    other.child.kill();
    await store.close();
  });

  it('lets an idle process end by itself, and a busy one finish first', async () => {
    const root = new URL('../../../', import.meta.url).href;
    const script = `
      const { createSqliteStore } = await import('${root}src/storage/sqlite/sqlite.ts');
      const { realClock } = await import('${root}test/support/clock.ts');
      const { headOf } = await import('${root}test/contracts/store-fixtures.ts');
      const open = file => createSqliteStore({ file, clock: realClock(), onWarning: console.error });
      open(process.argv[1] + '-unused').warm();
      const store = open(process.argv[1]);
      await store.create(headOf());
      store.create(headOf()).then(() => console.log('durable'));`;
    const ran = spawnSync(process.execPath, ['--input-type=module', '-e', script, place.file], { timeout: 20_000 });
    expect({ status: ran.status, out: String(ran.stdout), err: String(ran.stderr) }).toEqual({
      status: 0,
      out: 'durable\n',
      err: '',
    });
    expect(existsSync(`${place.file}-unused`)).toBe(false);
    expect(await place.open().list({ owner: 'local', limit: 9, now: start })).toHaveLength(2);
  });

  describe('without room', () => {
    const text = 'unrepeatable '.repeat(1000);
    const smallDisk = new URL('../../support/small-sqlite-writer.ts', import.meta.url).href;

    async function fillUp(store: Store): Promise<{ id: ReturnType<typeof headOf>['id']; turns: number }> {
      const { id } = await threadWith(store, []);
      for (let seq = 0; ; seq++) {
        const exchange = newExchangeId();
        try {
          const turns = [turnOf(seq + 1, { exchange, content: `${seq} ${text}` })];
          await store.commit(id, changeOf(seq, { turns, exchange: { id: exchange, status: 'done' } }));
        } catch (error) {
          expect(error).toMatchObject({
            kind: 'storage',
            details: { code: 'STORAGE', class: 'storage_full', next: expect.stringContaining('Free space') },
          });
          return { id, turns: seq };
        }
      }
    }

    it('refuses what does not fit, keeps the rest, and goes on when there is room again', async () => {
      const store = place.open({ program: smallDisk });
      const small = await threadWith(store, ['small', 'thread']);
      const full = await fillUp(store);
      expect(full.turns).toBeGreaterThan(5);
      expect((await liveThread(store, full.id)).seq).toBe(full.turns);
      expect(statSync(place.file).size).toBeLessThanOrEqual(1_000_000);
      expect((await liveThread(store, small.id)).seq).toBe(2);

      expect(await store.remove(full.id, start)).toBe(true);
      const again = await fillUp(store);
      expect(again.turns).toBeGreaterThanOrEqual(full.turns - 2);
      expect(place.warnings).toEqual([]);
    });

    it('does not let a change that is too big take others of the same moment with it', async () => {
      const store = place.open({ program: smallDisk });
      const heads = Array.from({ length: 10 }, () => headOf());
      const huge = await threadWith(store, []);
      const results = await Promise.allSettled([
        ...heads.map(head => store.create(head)),
        store.commit(huge.id, changeOf(0, { turns: [turnOf(1, { content: 'x'.repeat(3_000_000) })] })),
        store.lease(huge.id, 'me', 1000, start),
      ]);
      expect(results.map(result => result.status)).toEqual([...heads.map(() => 'fulfilled'), 'rejected', 'fulfilled']);
      expect(results[10]).toMatchObject({ reason: { details: { class: 'storage_full' } } });
      expect(await store.list({ owner: 'local', limit: 50, now: start })).toHaveLength(11);
    });
  });
});
