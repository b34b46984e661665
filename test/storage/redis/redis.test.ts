import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { retentionSuite } from '../../contracts/retention-suite.ts';
import { spendSuite } from '../../contracts/spend-suite.ts';
import { storeSuite } from '../../contracts/store-suite.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';
import { redisStore } from '../../support/redis-store.ts';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis('--appendfsync', 'no');
});
afterAll(() => server.dispose());

const open = async () => {
  const prefix = `${randomUUID()}:`;
  const stores = [redisStore(server.url, { prefix })];
  return {
    store: stores[0]!,
    async reopen() {
      await stores.at(-1)!.close();
      stores.push(redisStore(server.url, { prefix }));
      return stores.at(-1)!;
    },
    async close() {
      for (const store of stores) await store.close();
    },
  };
};

storeSuite('redis', open);
retentionSuite('redis', open);
spendSuite('redis', open);
