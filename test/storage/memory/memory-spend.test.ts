import { createMemoryStore } from '../../../src/storage/memory/memory.ts';
import { spendSuite } from '../../contracts/spend-suite.ts';

spendSuite('memory', async () => {
  const store = createMemoryStore();
  return { store, lasts: false, close: () => store.close() };
});
