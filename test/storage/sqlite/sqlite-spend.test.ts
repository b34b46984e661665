import { openSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { dayOf } from '../../../src/core/usage.ts';
import { spendSuite } from '../../contracts/spend-suite.ts';
import { hour, start } from '../../contracts/store-fixtures.ts';
import { type SqlitePlace, sqlitePlace } from '../../support/sqlite-temp.ts';

spendSuite('sqlite', async () => {
  const place = await sqlitePlace();
  const store = place.open();
  return {
    store,
    async reopen() {
      await store.close();
      return place.open();
    },
    close: () => place.dispose(),
  };
});

describe('the ledger of a SQLite file', () => {
  let place: SqlitePlace;
  beforeEach(async () => {
    place = await sqlitePlace();
  });
  afterEach(() => place.dispose());

  const day = dayOf(start);
  const usage = { input: 10, output: 5, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
  const entry = { at: start, owner: 'local', tool: 'chat', provider: 'openai', model: 'm', usage, costUsd: 0.1 };
  const holdOf = (id: string) => {
    const scope = { owner: 'local', day, now: start, expiresAt: start + hour };
    return { id, ...scope, usd: 0.1, dayLimit: 1 };
  };

  it('holds all who use the file to one limit', async () => {
    const stores = [place.open(), place.open(), place.open()];
    await stores[0]!.spend.add(entry);
    const asked = stores.flatMap((store, at) =>
      Array.from({ length: 8 }, (_, n) => store.spend.hold(holdOf(`${at}/${n}`))),
    );
    expect((await Promise.all(asked)).filter(held => held)).toHaveLength(9);
    for (const store of stores) {
      expect((await store.spend.used({ owner: 'local', day, now: start })).day).toBeCloseTo(1, 9);
    }
  });

  it('refuses what cannot be handed to the thread that writes, and goes on', async () => {
    const store = place.open();
    await expect(store.spend.hold({ ...holdOf('a'), id: (() => 'a') as never })).rejects.toBeDefined();
    expect(await store.spend.hold(holdOf('b'))).toBe(true);
  });

  it('is saved from a damaged file, each sum at its latest', async () => {
    const store = place.open();
    for (let n = 0; n < 40; n++) await store.spend.add({ ...entry, model: `m${n % 4}` });
    await store.close();
    const db = new DatabaseSync(place.file);
    const page = Number(db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'records'").get()?.rootpage);
    db.close();
    writeSync(openSync(place.file, 'r+'), Buffer.alloc(4096, 0xff), 0, 4096, (page - 1) * 4096);
    const rows = await place.open().spend.rows({ owner: 'local', from: day });
    expect(rows.map(row => [row.model, row.calls]).sort()).toEqual([0, 1, 2, 3].map(n => [`m${n}`, 10]));
    expect(place.warnings.join()).toContain('threads.sqlite');
  });
});
