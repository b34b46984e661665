import { rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { changeOf, newThreadId, start, threadWith, turnOf } from '../../contracts/store-fixtures.ts';
import { watchLoop } from '../../support/loop.ts';
import { type SqliteProcess, startSqliteProcess } from '../../support/sqlite-process.ts';
import { liveThread, type SqlitePlace, sqlitePlace } from '../../support/sqlite-temp.ts';

describe('a SQLite file that several processes use', () => {
  let place: SqlitePlace;
  let processes: SqliteProcess[];
  const run = (...args: string[]) => {
    const started = startSqliteProcess(...args);
    processes.push(started);
    return started;
  };

  beforeEach(async () => {
    place = await sqlitePlace();
    processes = [];
  });
  afterEach(async () => {
    for (const { child } of processes) child.kill('SIGKILL');
    await Promise.all(processes.map(({ ended }) => ended));
    await place.dispose();
  });

  it('takes all turns of eight processes, each once and in one row', { timeout: 240_000 }, async () => {
    const store = place.open();
    const { id } = await threadWith(store, []);
    const names = Array.from({ length: 8 }, (_, index) => `process-${index}`);
    const writers = names.map(name => run('append', place.file, id, '100', name));
    for (const writer of writers) expect(await writer.ended).toEqual({ code: 0, errors: '' });
    const { turns } = await liveThread(store, id);
    expect(turns.map(turn => turn.seq)).toEqual(Array.from({ length: 800 }, (_, index) => index + 1));
    for (const [index, name] of names.entries()) {
      const own = turns.filter(turn => turn.content.startsWith(`${name} `));
      expect(own.map(turn => turn.content)).toEqual(Array.from({ length: 100 }, (_, n) => `${name} ${n + 1}`));
      expect(writers[index]?.lines().map(Number)).toEqual(own.map(turn => turn.seq));
    }
  });

  it('is made once by processes that all start on nothing', async () => {
    const writers = Array.from({ length: 6 }, () => run('write', place.file));
    await Promise.all(writers.map(writer => writer.said(line => Number(line) >= 4)));
    for (const { child } of writers) child.kill('SIGKILL');
    for (const writer of writers) expect((await writer.ended).errors).toBe('');
    const store = place.open();
    expect(await store.list({ owner: 'local', limit: 10, now: start })).toHaveLength(6);
    expect(place.warnings).toEqual([]);
  });

  it('never stops the event loop, and answers reads, while another process holds its lock', async () => {
    const store = place.open();
    const { id } = await threadWith(store, ['a']);
    const holder = run('hold', place.file, '120000');
    await holder.said(line => line === 'held');
    const began = performance.now();
    const watched = watchLoop();
    let done = false;
    const commit = store.commit(id, changeOf(1, { turns: [turnOf(2)] })).then(seq => {
      done = true;
      return seq;
    });
    const lease = store.lease(newThreadId(), 'me', 1000, start);
    for (let n = 0; n < 20; n++) {
      expect((await liveThread(store, id)).turns).toHaveLength(1);
      await wait(20);
    }
    await wait(Math.max(0, 1_000 - (performance.now() - began)));
    expect(done).toBe(false);
    const loop = watched();
    holder.child.kill('SIGKILL');
    expect(await commit).toBe(2);
    expect(await lease).toBe(true);
    // A wait for the lock in this thread would be one pause for as long as SQLite waits, ten seconds.
    expect(loop.longest).toBeLessThan(5_000);
    expect(loop.ticks).toBeGreaterThan(20);
  });

  it('shows a process what another one has just made durable', async () => {
    const [first, second] = [place.open(), place.open()];
    const { id } = await threadWith(first, ['a']);
    expect((await liveThread(second, id)).seq).toBe(1);
    for (let seq = 1; seq < 20; seq++) {
      const [writer, reader] = seq % 2 === 0 ? [first, second] : [second, first];
      await writer.commit(id, changeOf(seq, { turns: [turnOf(seq + 1)] }));
      expect((await liveThread(reader, id)).seq).toBe(seq + 1);
    }
  });

  it('goes on in the new file when the old one was deleted under it', async () => {
    const store = place.open();
    const { id } = await threadWith(store, ['a']);
    const other = place.open();
    await other.head(id, start);
    for (const suffix of ['', '-wal', '-shm']) rmSync(place.file + suffix, { force: true });
    expect(await store.read(id, start)).toEqual({ state: 'unknown' });
    const later = await threadWith(store, ['b']);
    expect((await liveThread(other, later.id)).seq).toBe(1);
    const db = new DatabaseSync(place.file, { readOnly: true });
    expect(db.prepare('SELECT count(DISTINCT thread) AS threads FROM records').get()).toEqual({ threads: 1 });
    db.close();
  });
});
