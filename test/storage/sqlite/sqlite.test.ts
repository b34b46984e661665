import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSqliteStore } from '../../../src/storage/sqlite/sqlite.ts';
import { storeSuite } from '../../contracts/store-suite.ts';
import { realClock } from '../../support/clock.ts';

storeSuite('sqlite', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'polylogue-store-'));
  const open = () =>
    createSqliteStore({
      file: join(directory, 'threads.sqlite'),
      clock: realClock(),
      onWarning: message => {
        throw new Error(message);
      },
    });
  const stores = [open()];
  return {
    store: stores[0]!,
    async reopen() {
      await stores[0]?.close();
      const next = open();
      stores.push(next);
      return next;
    },
    async close() {
      for (const store of stores) await store.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
});
