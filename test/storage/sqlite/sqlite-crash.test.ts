import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { threadId } from '../../../src/core/ids.ts';
import { start } from '../../contracts/store-fixtures.ts';
import { seededRandom } from '../../support/random.ts';
import { startSqliteProcess } from '../../support/sqlite-process.ts';
import { liveThread, type SqlitePlace, sqlitePlace } from '../../support/sqlite-temp.ts';

/** More of them where somebody asks for it: scripts/torture.ts. */
const rounds = Number(process.env.TORTURE_ROUNDS ?? 12);

describe('a process that is killed while it writes', () => {
  let place: SqlitePlace;
  beforeEach(async () => {
    place = await sqlitePlace();
  });
  afterEach(() => place.dispose());

  it('loses no turn that was acknowledged', { timeout: 60_000 + rounds * 8_000 }, async () => {
    const random = seededRandom(20_261_121);
    let acknowledged = 0;
    for (let round = 0; round < rounds; round++) {
      const writer = startSqliteProcess('write', place.file);
      // Every third kill comes at any moment of the start, the others while turns are written.
      if (round % 3 !== 0) await writer.said(line => Number(line) >= 1);
      await new Promise(resolve => setTimeout(resolve, random.fraction() * 250));
      writer.child.kill('SIGKILL');
      const { errors } = await writer.ended;
      expect(errors).toBe('');

      const [name, ...acks] = writer.lines();
      const store = place.open();
      if (name !== undefined) {
        const { turns } = await liveThread(store, threadId(name));
        expect(acks.map(Number)).toEqual(acks.map((_, index) => index + 1));
        expect(turns.length).toBeGreaterThanOrEqual(acks.length);
        expect(turns.map(turn => turn.seq)).toEqual(turns.map((_, index) => index + 1));
        for (const turn of turns) expect(turn.content.startsWith(`turn ${turn.seq} `)).toBe(true);
        acknowledged += acks.length;
      } else {
        await store.list({ owner: 'local', limit: 1, now: start });
      }
      await store.close();
      const db = new DatabaseSync(place.file);
      expect(db.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
      db.close();
    }
    // Whoever was killed while turns were written had written one.
    expect(acknowledged).toBeGreaterThanOrEqual(Math.floor((rounds * 2) / 3));
    expect(place.warnings).toEqual([]);
  });
});
