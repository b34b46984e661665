import { hash } from 'node:crypto';

/** The keys of one thread: all of them in one slot of a cluster. */
export interface ThreadKeys {
  head: string;
  /** In the order in which scripts expect them; the head first. */
  all: readonly string[];
}

/**
 * Names of everything that is kept. What has to change in one step stands in the same braces, which is what a cluster goes by
 * when it decides where a key lives.
 */
export interface RedisKeys {
  thread(id: string): ThreadKeys;
  /** The text and who refers to it. */
  blob(sha: string): readonly [string, string];
  job(id: string): string;
  lease(id: string): string;
  /** What an owner has: an index by the last use, by the end, of ids that are gone, of jobs, and of one workspace. */
  owner(hash: string): { threads: string; ends: string; gone: string; jobs: string; workspace(path: string): string };
  /** What an owner's calls cost. */
  spend(hash: string): string;
  /** Whose money was put aside. */
  hold(id: string): string;
  owners: string;
  /** Begins the keys of all facts. */
  fact: string;
  mark: string;
}

export function ownerHash(owner: string): string {
  return hash('sha256', owner).slice(0, 32);
}

export function redisKeys(prefix: string): RedisKeys {
  return {
    thread(id) {
      const head = `${prefix}{${id}}`;
      const parts = ['turns', 'exchanges', 'summaries', 'workflows', 'blobs', 'words', 'forks'];
      return { head, all: [head, ...parts.map(part => `${head}:${part}`)] };
    },
    blob: sha => [`${prefix}{blob:${sha}}`, `${prefix}{blob:${sha}}:users`],
    job: id => `${prefix}{job:${id}}`,
    lease: id => `${prefix}{lease:${id}}`,
    owner(owner) {
      const begin = `${prefix}{owner:${owner}}`;
      return {
        threads: `${begin}:threads`,
        ends: `${begin}:ends`,
        gone: `${begin}:gone`,
        jobs: `${begin}:jobs`,
        workspace: path => `${begin}:in:${hash('sha256', path).slice(0, 32)}`,
      };
    },
    spend: owner => `${prefix}{owner:${owner}}:spend`,
    hold: id => `${prefix}{hold:${id}}`,
    owners: `${prefix}{owners}`,
    fact: `${prefix}{fact}`,
    mark: `${prefix}{mark}`,
  };
}

/** The slot of a cluster in which a key lives: CRC16 (XMODEM) of what stands in its first braces, else of all of it. */
export function slotOf(key: string): number {
  const open = key.indexOf('{');
  const close = key.indexOf('}', open + 1);
  const tag = open !== -1 && close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
  }
  return crc % 16_384;
}
