import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { sealRecord, splitHead } from '../../src/storage/records.ts';
import { headOf, newExchangeId, turnOf } from '../../test/contracts/store-fixtures.ts';
import { Ledger, textOf, threadOf } from './ledger.ts';

const fixture = new URL('../../test/fixtures/schema-4/threads.sql', import.meta.url);

/** How long its migration takes depends on it: long enough to be hit. */
const threads = 40;
const turns = 40;

/** Writes a file of the fourth schema; what a store must read from it is in the ledger. */
export function writeOldFile(file: string, seed: number): Ledger {
  const ledger = new Ledger(seed);
  const db = new DatabaseSync(file);
  db.exec(`PRAGMA journal_mode = WAL; BEGIN; ${readFileSync(fixture, 'utf8')}`);
  const first = Number(Object.values(db.prepare('SELECT max(n) + 1 FROM threads').get() ?? {})[0]);
  for (let number = 0; number < threads; number++) addThread(db, first + number, seed, number);
  db.exec('COMMIT');
  db.close();
  ledger.note(`turn 0 ${threads} ${turns}`);
  ledger.writes = 0;
  return ledger;
}

function addThread(db: DatabaseSync, n: number, seed: number, number: number): void {
  const id = threadOf(seed, number);
  const head = headOf({ id });
  const [origin, state] = splitHead(head);
  const latest = sealRecord({ kind: 'head', head: { ...state, seq: turns } });
  const { body, seal } = sealRecord({ kind: 'origin', origin });
  const place = [n, id, null, head.owner, head.workspace, head.updatedAt, head.expiresAt];
  db.prepare('INSERT INTO threads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)').run(...place, latest.body, latest.seal);
  db.prepare('INSERT INTO origins VALUES (?, ?, ?)').run(n, body, seal);
  const exchange = newExchangeId();
  const addTurn = db.prepare('INSERT INTO turns VALUES (NULL, ?, ?, ?, ?, ?)');
  for (let seq = 1; seq <= turns; seq++) {
    const turn = sealRecord({ kind: 'turn', thread: id, turn: turnOf(seq, { content: textOf(id, seq), exchange }) });
    addTurn.run(n, seq, exchange, turn.body, turn.seal);
  }
  const done = sealRecord({ kind: 'exchange', thread: id, id: exchange, status: 'done' });
  db.prepare('INSERT INTO exchanges VALUES (NULL, ?, ?, ?, ?)').run(n, exchange, done.body, done.seal);
}
