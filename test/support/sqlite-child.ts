/**
 * A process of its own on a store's file, for tests of what several processes do to each other and of what a kill leaves:
 *   append FILE THREAD COUNT NAME   adds turns "NAME n", again after each conflict; prints every turn's seq once it is durable
 *   write FILE                      adds turns to a new thread without end; prints the thread, then every seq
 *   add FILE KEY COUNT              counts a value of the shared state up, so often
 *   fill FILE COUNT                 adds turns to a new thread until COUNT were refused, a moment later once more each time;
 *                                   prints the thread, every seq, and "refused CLASS"
 *   read FILE THREAD                prints how many turns the thread has, whether it is listed, and "refused CLASS" of a change
 *   lease FILE ID                   takes a lease for an hour and keeps it; prints whether it got it
 *   work FILE THREAD                asks a question on the thread under its lock and says "working"; continued after a stop it adds
 *                                   the answer; prints "stored", or "refused CLASS RETRYABLE"
 *   hold FILE MS                    holds the file's write lock; prints "held" and "freed"
 * For all but the last, FILE may be a Redis, too: redis://host:port#prefix
 */
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemEnvironment } from '../../src/app/system-environment.ts';
import { isAppError } from '../../src/core/errors.ts';
import { threadId } from '../../src/core/ids.ts';
import { isRecord } from '../../src/core/json.ts';
import { createStoredState } from '../../src/storage/shared-state.ts';
import { createSqliteStore } from '../../src/storage/sqlite/sqlite.ts';
import type { Store } from '../../src/storage/store.ts';
import { createThreads } from '../../src/threads/threads.ts';
import { changeOf, headOf, newExchangeId, start, threadWith, turnOf } from '../contracts/store-fixtures.ts';
import { manualClock, realClock } from './clock.ts';

const [mode, file = '', ...rest] = process.argv.slice(2);
// Straight to the descriptor: what the parent has read was said before the kill.
function say(line: string | number): void {
  while (true) {
    try {
      writeSync(1, `${line}\n`);
      return;
    } catch (error) {
      // A parent that is busy has not read what came before.
      if (!isRecord(error) || error.code !== 'EAGAIN') throw error;
    }
  }
}

async function open(): Promise<Store> {
  const onWarning = (message: string) => void writeSync(2, `warning: ${message}\n`);
  const [url = '', prefix] = file.split('#');
  if (prefix) {
    // Loaded only where it is used, because most of these processes are started for SQLite, and often.
    const { redisStore } = await import('./redis-store.ts');
    return redisStore(url, { prefix, onWarning });
  }
  return createSqliteStore({ file, clock: realClock(), onWarning });
}

async function append(store: Store, [thread = '', count, name]: string[]): Promise<void> {
  const id = threadId(thread);
  for (let n = 1; n <= Number(count); ) {
    const found = await store.head(id, start);
    if (found.state !== 'live') throw new Error(`the thread is ${found.state}`);
    const { seq } = found.value;
    try {
      say(await store.commit(id, changeOf(seq, { turns: [turnOf(seq + 1, { content: `${name} ${n}` })] })));
      n++;
    } catch (error) {
      if (!isAppError(error) || error.details.class !== 'conflict') throw error;
    }
  }
}

async function add(store: Store, [key = '', count]: string[]): Promise<void> {
  const state = createStoredState(store, manualClock(start));
  for (let n = 0; n < Number(count); n++) {
    await state.change(key, 1_000, before => ({ n: Number(before?.n ?? 0) + 1 }));
  }
}

async function write(store: Store): Promise<void> {
  const { id } = await threadWith(store, []);
  say(id);
  for (let seq = 0; ; ) {
    // Several at once, as calls come: they share transactions, and each size of text meets the kill at another point.
    const burst = Array.from({ length: 4 }, async (_, index) => {
      const exchange = newExchangeId();
      const content = `turn ${seq + index + 1} ${'x'.repeat((seq * 977) % 20_000)}`;
      const turns = [turnOf(seq + index + 1, { content, exchange })];
      say(await store.commit(id, changeOf(seq + index, { turns, exchange: { id: exchange, status: 'done' } })));
    });
    await Promise.all(burst);
    seq += burst.length;
  }
}

async function fill(store: Store, [count]: string[]): Promise<void> {
  const { id } = await threadWith(store, []);
  say(id);
  let seq = 0;
  for (let refused = 0; refused < Number(count); ) {
    const exchange = newExchangeId();
    const content = `turn ${seq + 1} ${'y'.repeat(20_000)}`;
    const turns = [turnOf(seq + 1, { content, exchange })];
    try {
      seq = await store.commit(id, changeOf(seq, { turns, exchange: { id: exchange, status: 'done' } }));
      say(seq);
    } catch (error) {
      if (!isAppError(error) || error.kind !== 'storage') throw error;
      say(`refused ${error.details.class}`);
      refused++;
      await sleep(200);
    }
  }
}

async function work(store: Store, [thread = '']: string[]): Promise<void> {
  const { clock, random } = systemEnvironment();
  const threads = createThreads({ store, clock, random, emit: () => undefined });
  const id = threadId(thread);
  await threads.exclusively(id, { signal: new AbortController().signal }, async () => {
    const { seq } = await threads.refresh({ id, owner: 'local' });
    const exchange = threads.newExchange();
    const add = async (at: number, status: 'pending' | 'done') => {
      const before = await threads.find(id, { owner: 'local', workspace: '' });
      return threads.add({ ...before, seq: at }, exchange, { turns: [turnOf(at + 1, { exchange })], status });
    };
    await add(seq, 'pending');
    const continued = once(process, 'SIGCONT');
    // A signal that is waited for keeps no process alive.
    const alive = setInterval(() => undefined, 1_000);
    say('working');
    await continued;
    clearInterval(alive);
    try {
      await add(seq + 1, 'done');
      say('stored');
    } catch (error) {
      if (!isAppError(error)) throw error;
      say(`refused ${error.details.class} ${error.details.retryable}`);
    }
  });
}

async function read(store: Store, [thread = '']: string[]): Promise<void> {
  const id = threadId(thread);
  try {
    const found = await store.read(id, start);
    const listed = await store.list({ owner: 'local', limit: 9, now: start });
    say(found.state === 'live' ? `${found.value.turns.length} ${listed.some(head => head.id === id)}` : found.state);
    await store.create(headOf());
  } catch (error) {
    if (!isAppError(error)) throw error;
    say(`refused ${error.details.class}: ${error.message} ${error.details.next}`);
  }
}

if (mode === 'hold') {
  const db = new DatabaseSync(file, { timeout: 5000 });
  db.exec('BEGIN IMMEDIATE');
  say('held');
  await sleep(Number(rest[0]));
  db.exec('COMMIT');
  db.close();
  say('freed');
} else {
  const store = await open();
  if (mode === 'append') await append(store, rest);
  else if (mode === 'add') await add(store, rest);
  else if (mode === 'read') await read(store, rest);
  else if (mode === 'fill') await fill(store, rest);
  else if (mode === 'work') await work(store, rest);
  else if (mode === 'lease') {
    say(String(await store.lease(rest[0] ?? '', 'child', 3_600_000, start)));
    await sleep(60_000);
  } else await write(store);
  await store.close();
}
