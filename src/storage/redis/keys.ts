import { hash } from 'node:crypto';

export type RedisKeys = ReturnType<typeof redisKeys>;

export const ownerHash = (owner: string): string => hash('sha256', owner).slice(0, 32);

/** Names of everything that is kept. What changes in one step stands in the same braces, by which a cluster decides where a key lives. */
export function redisKeys(prefix: string) {
  return {
    /** The keys of one thread, in the order in which scripts expect them: the head first. All of them in one slot of a cluster. */
    thread(id: string) {
      const head = `${prefix}{${id}}`;
      const parts = ['turns', 'exchanges', 'summaries', 'workflows', 'blobs', 'words', 'forks'];
      return {
        head,
        blobs: `${head}:blobs`,
        forks: `${head}:forks`,
        all: [head, ...parts.map(part => `${head}:${part}`)],
      };
    },
    /** The text and who refers to it. */
    blob: (sha: string) => [`${prefix}{blob:${sha}}`, `${prefix}{blob:${sha}}:users`] as const,
    job: (id: string) => `${prefix}{job:${id}}`,
    /** In the slot of the thread of that id, whose changes look at it. */
    lease: (id: string) => `${prefix}{${id}}:lease`,
    /** What an owner has: an index by the last use, by the end, of ids that are gone, of jobs, and of one workspace. */
    owner(owner: string) {
      const begin = `${prefix}{owner:${owner}}`;
      return {
        threads: `${begin}:threads`,
        ends: `${begin}:ends`,
        gone: `${begin}:gone`,
        jobs: `${begin}:jobs`,
        workspace: (path: string) => `${begin}:in:${hash('sha256', path).slice(0, 32)}`,
      };
    },
    /** What an owner's calls cost. */
    spend: (owner: string) => `${prefix}{owner:${owner}}:spend`,
    /** Whose money was put aside. */
    hold: (id: string) => `${prefix}{hold:${id}}`,
    owners: `${prefix}{owners}`,
    /** Begins the keys of all facts. */
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
