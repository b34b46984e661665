import { configError } from '../core/errors.ts';
import type { Clock, Emit, Random } from '../core/ports.ts';
import { createMemoryStore } from '../storage/memory/memory.ts';
import { createStoreTime, withStoreTime } from '../storage/shared-state.ts';
import { createSqliteStore } from '../storage/sqlite/sqlite.ts';
import type { Store } from '../storage/store.ts';
import type { OpenableStorePlace } from './stores.ts';

export interface StoreChoice extends Pick<OpenableStorePlace, 'file' | 'redis' | 'own'> {
  clock: Clock;
  random: Random;
  emit: Emit;
}

const timeEveryMs = 60_000;
const retryMs = 1_000;

export interface OpenedStore {
  store: Store;
  clock: Clock;
}

/** The store that the operator chose, and the clock with its time. Opens nothing yet; a server is asked for its time. */
export async function openStore({ clock, emit, ...choice }: StoreChoice): Promise<OpenedStore> {
  const warn = (message: string) => emit({ type: 'warning', where: 'clock', message });
  const { ahead, follow } = createStoreTime(clock, choice.file && `${choice.file}-clock`, warn);
  const own: Clock = { ...clock, storeTime: () => clock.now() - ahead() };
  const chosen = await chosenStore({ ...choice, clock: own, emit });
  // One from outside may be an instance of a class, which is not copied.
  if (choice.own) return { store: chosen, clock: own };
  let stop = () => {};
  let isClosed = false;
  const ask = async () => {
    const time = await chosen.time?.().catch(() => undefined);
    if (time !== undefined) follow(time);
    if (chosen.time && !isClosed) stop = clock.after(time === undefined ? retryMs : timeEveryMs, ask);
  };
  await ask();
  const close = () => {
    isClosed = true;
    stop();
    return chosen.close();
  };
  return { store: { ...withStoreTime(chosen, ahead), close }, clock: own };
}

async function chosenStore({ file, redis, own, clock, random, emit }: StoreChoice): Promise<Store> {
  const onWarning = (message: string) => emit({ type: 'warning', where: 'store', message });
  if (own) return own({ clock, random, onWarning });
  if (redis) {
    const url = redisUrl(redis.url);
    if (url === undefined)
      throw configError('REDIS_URL is not a valid Redis URL.', {
        next: 'Write it as redis://user:password@host:port/database, or rediss:// for TLS; signs in the password such as / # % are written as %2F %23 %25.',
      });
    if (/[{}]/.test(redis.prefix))
      throw configError('REDIS_PREFIX holds a brace, by which a Redis Cluster would put all keys into one place.', {
        next: 'Leave braces out of it.',
      });
    const { createRedisStore } = await import('../storage/redis/redis.ts');
    return createRedisStore({ ...redis, url, clock, random, onWarning });
  }
  return file === undefined ? createMemoryStore() : createSqliteStore({ file, clock, onWarning });
}

/** As the client takes it; undefined where it can make nothing of it: what is wrong here does not heal by trying again. */
function redisUrl(text: string): string | undefined {
  const url = URL.parse(text);
  if (!url || !/^rediss?:$/.test(url.protocol) || !/^(\/\d*)?$/.test(url.pathname)) return undefined;
  const database = url.searchParams.get('db');
  if (!/^\d*$/.test(database ?? '')) return undefined;
  try {
    decodeURIComponent(`${url.username}:${url.password}`);
  } catch {
    return undefined;
  }
  // Some write the number of the database as `?db=1`: the client reads it from the path alone.
  if (database !== null && url.pathname.length <= 1) url.pathname = `/${database}`;
  url.search = '';
  return url.href;
}
