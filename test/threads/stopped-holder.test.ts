import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemEnvironment } from '../../src/app/system-environment.ts';
import { createSqliteStore } from '../../src/storage/sqlite/sqlite.ts';
import type { Store } from '../../src/storage/store.ts';
import { createThreads } from '../../src/threads/threads.ts';
import { turnOf } from '../contracts/store-fixtures.ts';
import { startRedis } from '../support/redis-server.ts';
import { redisStore } from '../support/redis-store.ts';
import { startSqliteProcess } from '../support/sqlite-process.ts';
import { tempProject } from '../support/temp-project.ts';

const { clock, random } = systemEnvironment();
const place = { owner: 'local', workspace: '' };
const { signal } = new AbortController();

interface Place {
  store: Store;
  /** As a process takes it that works on the same threads. */
  address: string;
  close(): Promise<unknown>;
}

const places = {
  async sqlite(): Promise<Place> {
    const folder = await tempProject();
    const address = join(folder.root, 'threads.sqlite');
    const store = createSqliteStore({ file: address, clock, onWarning: () => undefined });
    return { store, address, close: () => folder.dispose() };
  },
  async redis(): Promise<Place> {
    const server = await startRedis();
    const prefix = `${randomUUID()}:`;
    const address = `${server.url}#${prefix}`;
    return { store: redisStore(server.url, { prefix }), address, close: () => server.dispose() };
  },
};

// Each waits for ten seconds.
describe.concurrent.each(['sqlite', 'redis'] as const)('a thread on %s whose holder is stopped', kind => {
  it('is taken over after one wait, and the holder that continues can not write over it', async ({
    onTestFinished,
  }) => {
    const { store, address, close } = await places[kind]();
    onTestFinished(async () => {
      await store.close();
      await close();
    });
    const threads = createThreads({ store, clock, random, emit: () => undefined });
    const opening = threads.newExchange();
    const { id } = await threads.add(threads.start(place, 'chat'), opening, {
      turns: [turnOf(1, { exchange: opening }), turnOf(2, { exchange: opening })],
      status: 'done',
    });
    const stopped = startSqliteProcess('work', address, id);
    onTestFinished(async () => {
      stopped.child.kill('SIGKILL');
      await stopped.ended;
    });
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
