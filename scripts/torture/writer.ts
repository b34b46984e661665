/**
 * A process that writes to a SQLite store until it is killed and says what was acknowledged, as ledger.ts reads it:
 *   node scripts/torture/writer.ts KIND FILE SEED FIRST WIDTH [STEPS ACKS]
 * Each burst adds a turn to WIDTH threads, whose numbers begin with FIRST, at once. KIND says what happens between bursts:
 * `turns` nothing; `checkpoints` the log is moved into the file and the store opened again; `housekeeping` threads are
 * removed and pruned, and the indexes brought up to date; `mixed` all of this; `hasty` too, but without waiting for the disk. With STEPS it ends after so many, and writes
 * what it says into the file ACKS.
 */
import { openSync, writeSync } from 'node:fs';
import { createSqliteStore } from '../../src/storage/sqlite/sqlite.ts';
import type { Store } from '../../src/storage/store.ts';
import { changeOf, headOf, hour, newExchangeId, start, turnOf } from '../../test/contracts/store-fixtures.ts';
import { realClock } from '../../test/support/clock.ts';
import { seededRandom } from '../../test/support/random.ts';
import { type Said, textOf, threadOf } from './ledger.ts';

const [kind = '', file = '', ...rest] = process.argv.slice(2);
const [seed = 0, first = 0, width = 0, steps = Number.POSITIVE_INFINITY] = rest.slice(0, 4).map(Number);
const output = rest[4] === undefined ? 1 : openSync(rest[4], 'w');
const random = seededRandom(seed + first);

/** Straight to the descriptor: what was read was said before the kill. A reader that is busy is waited for. */
function say(said: Said | 'opening', ...numbers: number[]): void {
  const line = `${[said, ...numbers].join(' ')}\n`;
  for (;;) {
    try {
      writeSync(output, line);
      return;
    } catch (error) {
      if (!(error instanceof Error) || !('code' in error) || error.code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

const programs: Record<string, string> = {
  checkpoints: './small-log.ts',
  mixed: './small-log.ts',
  hasty: './small-log.ts?NORMAL',
};
const program = programs[kind] && new URL(programs[kind], import.meta.url).href;

function open(): Store {
  const onWarning = (message: string) => void writeSync(2, `warning: ${message}\n`);
  return createSqliteStore({ file, clock: realClock(), onWarning, ...(program && { program }) });
}

let store = open();
/** The number of the next thread that is made to be removed. */
let spare = first + width;
let seq = 0;

async function make(from: number, count: number, expiresAt = start + 720 * hour): Promise<void> {
  const heads = Array.from({ length: count }, (_, index) => headOf({ id: threadOf(seed, from + index), expiresAt }));
  await Promise.all(heads.map(head => store.create(head)));
  say('made', from, count);
}

async function write(from: number, count: number, turn: number, expiresAt = start + 720 * hour): Promise<void> {
  const ids = Array.from({ length: count }, (_, index) => threadOf(seed, from + index));
  const exchange = newExchangeId();
  const commit = (id: (typeof ids)[number]) => {
    const turns = [turnOf(turn, { content: textOf(id, turn), exchange })];
    return store.commit(id, changeOf(turn - 1, { turns, exchange: { id: exchange, status: 'done' }, expiresAt }));
  };
  await Promise.all(ids.map(commit));
  say('turn', from, count, turn);
}

async function reopen(): Promise<void> {
  await store.close();
  store = open();
}

/** Ends some threads that were made for it: by their time, or because somebody wants it. */
async function end(): Promise<void> {
  const [from, count] = [spare, 1 + Math.floor(random.fraction() * 8)];
  spare += count;
  const isPruned = random.fraction() < 0.5;
  const expiresAt = start + (isPruned ? 1 : 720) * hour;
  await make(from, count, expiresAt);
  await write(from, count, 1, expiresAt);
  say('ending', from, count);
  if (isPruned) await store.prune(start + 2 * hour);
  else for (let number = from; number < spare; number++) await store.remove(threadOf(seed, number), start);
  say('ended', from, count);
}

async function lookUp(): Promise<void> {
  await store.list({ owner: 'local', limit: 5, now: start });
  await store.search({ owner: 'local', text: 'turn', limit: 5, now: start });
}

const between: Record<string, (() => Promise<void>)[]> = {
  turns: [],
  checkpoints: [reopen],
  housekeeping: [end, lookUp],
  mixed: [reopen, end, lookUp],
  hasty: [reopen, end, lookUp],
};

say('opening');
await make(first, width);
for (let step = 0; step < steps; step++) {
  seq++;
  await write(first, width, seq);
  const others = between[kind] ?? [];
  if (random.fraction() < 0.4) await others[Math.floor(random.fraction() * others.length)]?.();
}
await store.close();
