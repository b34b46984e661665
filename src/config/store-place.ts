import { join } from 'node:path';
import type { OptionValues } from './option-values.ts';
import type { options } from './options.ts';

type Values = Pick<OptionValues<typeof options>, 'private' | 'store' | 'redisUrl' | 'redisPrefix' | 'redisTimeoutMs'>;

/** Where threads live, in the form in which the store takes it: a file, a server, or neither. */
export interface StorePlace {
  file?: string;
  redis?: { url: string; prefix: string; patienceMs: number };
  /** Nothing outlives the process. */
  isPrivate: boolean;
  /** For people, without credentials. */
  name: string;
}

export function storePlace(values: Values, home: string): StorePlace {
  if (values.private || values.store === 'memory') return { isPrivate: true, name: 'memory, until this process ends' };
  if (values.store === 'sqlite') {
    const file = join(home, 'threads.sqlite');
    return { file, isPrivate: false, name: file };
  }
  const { redisUrl: url, redisPrefix: prefix, redisTimeoutMs: patienceMs } = values;
  const name = `Redis at ${URL.parse(url)?.host ?? 'REDIS_URL'}`;
  return { redis: { url, prefix, patienceMs }, isPrivate: false, name };
}
