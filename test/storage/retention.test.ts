import { createMemoryStore } from '../../src/storage/memory/memory.ts';
import { retentionSuite } from '../contracts/retention-suite.ts';
import { sqlitePlace } from '../support/sqlite-temp.ts';

retentionSuite('memory', async () => {
  const store = createMemoryStore();
  return { store, close: () => store.close() };
});

retentionSuite('sqlite', async () => {
  const place = await sqlitePlace();
  return { store: place.open(), close: () => place.dispose() };
});
