import { randomUUID } from 'node:crypto';
import { systemEnvironment } from '../../src/app/system-environment.ts';
import { createRedisStore, type RedisStoreOptions } from '../../src/storage/redis/redis.ts';
import type { Store } from '../../src/storage/store.ts';

const { clock, random } = systemEnvironment();

/** A store on a real server, under a prefix of its own unless one is given. Patient: the machine may be busy. */
export function redisStore(url: string, options: Partial<RedisStoreOptions> = {}): Store {
  const settings = { url, prefix: `${randomUUID()}:`, patienceMs: 5_000, clock, random, onWarning: () => undefined };
  return createRedisStore({ ...settings, ...options });
}
