import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { retentionSuite } from '../../contracts/retention-suite.ts';
import { spendSuite } from '../../contracts/spend-suite.ts';
import { storeSuite } from '../../contracts/store-suite.ts';
import { type RedisCluster, startRedisCluster } from '../../support/redis-server.ts';
import { redisStore } from '../../support/redis-store.ts';

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster();
});
afterAll(() => cluster.dispose());

const open = async () => {
  const prefix = `${randomUUID()}:`;
  const stores = [redisStore(cluster.url, { prefix })];
  return {
    store: stores[0]!,
    async reopen() {
      await stores.at(-1)!.close();
      stores.push(redisStore(cluster.url, { prefix }));
      return stores.at(-1)!;
    },
    async close() {
      for (const store of stores) await store.close();
    },
  };
};

storeSuite('redis cluster', open);
retentionSuite('redis cluster', open);
spendSuite('redis cluster', open);
