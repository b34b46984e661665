import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemEnvironment } from '../../src/app/system-environment.ts';
import { createSqliteStore } from '../../src/storage/sqlite/sqlite.ts';
import type { Store } from '../../src/storage/store.ts';
import { createThreads, type Threads } from '../../src/threads/threads.ts';
import { turnOf } from '../contracts/store-fixtures.ts';
import { startRedis } from '../support/redis-server.ts';
import { redisStore } from '../support/redis-store.ts';
import { type SqliteProcess, startSqliteProcess } from '../support/sqlite-process.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

const { clock, random } = systemEnvironment();
const place = { owner: 'local', workspace: '' };
const { signal } = new AbortController();

let folder: TempProject;
let store: Store;
let threads: Threads;
let other: SqliteProcess | undefined;
let closers: (() => Promise<unknown>)[];

const stores = {
  async sqlite() {
    const file = join(folder.root, 'threads.sqlite');
    store = createSqliteStore({ file, clock, onWarning: () => undefined });
    return file;
  },
  async redis() {
    const server = await startRedis();
    closers.push(() => server.dispose());
    const prefix = `${randomUUID()}:`;
    store = redisStore(server.url, { prefix });
    return `${server.url}#${prefix}`;
  },
};

beforeEach(async () => {
  [closers, other] = [[], undefined];
  folder = await tempProject();
});

afterEach(async () => {
  other?.child.kill('SIGKILL');
  await other?.ended;
  await store.close();
  for (const close of closers) await close();
  await folder.dispose();
});

describe.each(['sqlite', 'redis'] as const)('a thread on %s whose holder is stopped', kind => {
  it('is taken over after one wait, and the holder that continues can not write over it', async () => {
    const address = await stores[kind]();
    threads = createThreads({ store, clock, random, emit: () => undefined });
    const opening = threads.newExchange();
    const { id } = await threads.add(threads.start(place, 'chat'), opening, {
      turns: [turnOf(1, { exchange: opening }), turnOf(2, { exchange: opening })],
      status: 'done',
    });
    const stopped = startSqliteProcess('work', address, id);
    other = stopped;
    await stopped.said(line => line === 'working');
    stopped.child.kill('SIGSTOP');

    await threads.exclusively(id, { signal }, async () => {
      const thread = await threads.refresh({ id, owner: place.owner });
      // It continues before anything new is in the thread.
      stopped.child.kill('SIGCONT');
      await stopped.said(line => line.startsWith('refused') || line === 'stored');
      const exchange = threads.newExchange();
      const turns = [turnOf(4, { role: 'user', exchange }), turnOf(5, { role: 'assistant', exchange })];
      await threads.add(thread, exchange, { turns, status: 'done' });
    });
    await stopped.ended;
    expect(stopped.lines()).toEqual(['working', 'refused conflict true']);
    const { turns } = await threads.find(id, place);
    expect(turns.map(({ seq, status }) => `${seq} ${status}`)).toEqual([
      '1 done',
      '2 done',
      '3 interrupted',
      '4 done',
      '5 done',
    ]);
  });
});
