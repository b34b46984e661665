import { createHash } from 'node:crypto';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { afterEach, describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../../src/storage/memory/memory.ts';
import { sqliteSchema } from '../../../src/storage/sqlite/schema.ts';
import { sqliteWrites } from '../../../src/storage/sqlite/writes.ts';
import type { Store } from '../../../src/storage/store.ts';
import { readRecords } from '../../../src/threads/transfer/read-records.ts';
import { sealedFile, transferRig } from './transfer-rig.ts';

const uuid = (at: number) => `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`;
const sha = (text: string) => createHash('sha256').update(text).digest('hex');

interface Shape {
  /** The number of the exchange of a turn. */
  exchange(at: number): number;
  status?: string;
  images?: (at: number) => object[];
  files?: (at: number) => object[];
}

const image = (at: number) => ({ source: 'a.png', mediaType: 'image/png', blob: sha(`picture ${at}`) });
const file = (at: number) => ({
  path: 'a.ts',
  form: 'full',
  size: 1,
  mtimeMs: 1,
  lines: 1,
  sha256: sha(`file ${at}`),
  shown: sha(`file ${at}`),
});

const shapes: Record<string, Shape> = {
  'two turns in each exchange': { exchange: at => at >> 1 },
  'one exchange': { exchange: () => 1 },
  'two exchanges in turns': { exchange: at => at % 2 },
  'two exchanges in turns that failed': { exchange: at => at % 2, status: 'failed' },
  'a picture in each turn': { exchange: at => at >> 1, images: at => [image(at)] },
  'a picture and a file in each turn': { exchange: at => at >> 1, images: at => [image(at)], files: at => [file(at)] },
  'the same pictures again': { exchange: at => at >> 1, images: at => [image(at % 7), image(at % 5)] },
};

function fileOf({ exchange, status = 'done', images = () => [], files = () => [] }: Shape, turns: number): string {
  const head = {
    id: uuid(9),
    toolName: 'chat',
    title: 'Long',
    createdAt: 1,
    updatedAt: 1,
    totals: { tokens: 0, costUsd: 0 },
  };
  const lines = Array.from({ length: turns }, (_, at) => ({
    kind: 'turn',
    turn: {
      seq: at + 1,
      role: at % 2 === 0 ? 'user' : 'assistant',
      status,
      exchange: uuid(1_000 + exchange(at)),
      timestamp: 1,
      toolName: 'chat',
      content: `Turn ${at}.`,
      files: files(at),
      images: images(at),
      citations: [],
      tokens: 1,
    },
  }));
  return sealedFile([
    { format: 'polylogue.thread', version: 1 },
    { kind: 'head', head: { ...head, startSeq: 0, initialContext: {} } },
    ...lines,
    { kind: 'end', turns, blobs: 0 },
  ]);
}

/** A database that counts the statements that are run, and the rows that come back. */
function countingDatabase() {
  const db = new DatabaseSync(':memory:');
  sqliteSchema(db, ':memory:');
  let work = 0;
  const watched = (statement: StatementSync) =>
    new Proxy(statement, {
      get(target, name) {
        const member = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) => {
          const result = Reflect.apply(member, target, args);
          work += 1 + (Array.isArray(result) ? result.length : 0);
          return result;
        };
      },
    });
  const counting = new Proxy(db, {
    get(target, name) {
      if (name === 'prepare') return (sql: string) => watched(target.prepare(sql));
      const member = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  return { db, writes: sqliteWrites(counting), work: () => work };
}

/** A store in memory whose changes are made in a database, too. */
function twinStore({ writes }: ReturnType<typeof countingDatabase>): Store {
  const memory = createMemoryStore();
  return {
    ...memory,
    async create(head, over) {
      await memory.create(head, over);
      writes.create(head, over);
    },
    async commit(id, change) {
      const seq = await memory.commit(id, change);
      writes.commit(id, change);
      return seq;
    },
  };
}

const original = { has: Set.prototype.has, delete: Set.prototype.delete };
afterEach(() => void Object.assign(Set.prototype, original));

/** What one import does: in the database, and with sets of hashes. */
async function workOf(shape: Shape, turns: number): Promise<{ database: number; sets: number; indexed: number }> {
  const counting = countingDatabase();
  const rig = transferRig(twinStore(counting));
  const text = fileOf(shape, turns);
  let sets = 0;
  Set.prototype.has = function has(value) {
    sets += 1;
    return original.has.call(this, value);
  };
  Set.prototype.delete = function remove(value) {
    sets += 1;
    return original.delete.call(this, value);
  };
  const imported = await rig.imported(text);
  Object.assign(Set.prototype, original);
  expect(imported.turns).toBe(turns);
  while (counting.writes.index('words'));
  const indexed = Number(counting.db.prepare('SELECT count(*) AS n FROM turn_words').get()?.n);
  counting.db.close();
  return { database: counting.work(), sets, indexed };
}

describe('the work of an import', () => {
  it.each(Object.entries(shapes))('grows with the number of turns and no faster: %s', async (_name, shape) => {
    const [small, large] = [await workOf(shape, 200), await workOf(shape, 800)];
    expect(large.database / small.database).toBeLessThan(4.4);
    expect(large.sets / Math.max(1, small.sets)).toBeLessThan(4.4);
    // All of what is done is found by a search, and nothing else.
    expect([small.indexed, large.indexed]).toEqual(shape.status === undefined ? [200, 800] : [0, 0]);
  });

  it('puts turns of an exchange into the index, and takes them out, when it becomes another one', () => {
    const { db, writes } = countingDatabase();
    const place = { owner: 'local', workspace: '/project', toolName: 'chat', title: 'One', initialContext: {} };
    const id = uuid(5) as Parameters<typeof writes.commit>[0];
    writes.create({
      id,
      ...place,
      createdAt: 1,
      updatedAt: 1,
      expiresAt: 9_000,
      seq: 0,
      totals: { tokens: 0, costUsd: 0 },
    });
    const exchange = uuid(6) as NonNullable<Parameters<typeof writes.commit>[1]['exchange']>['id'];
    const turn = (seq: number) => ({
      ...{ seq, role: 'user' as const, exchange, timestamp: 1, toolName: 'chat', content: `word${seq}` },
      ...{ files: [], images: [], citations: [], tokens: 1 },
    });
    const indexed = () => Number(db.prepare('SELECT count(*) AS n FROM turn_words').get()?.n);
    const commit = (baseSeq: number, seqs: number[], status?: 'done' | 'failed') => {
      const change = { baseSeq, updatedAt: 2, expiresAt: 9_000, turns: seqs.map(turn) };
      writes.commit(id, status ? { ...change, exchange: { id: exchange, status } } : change);
      while (writes.index('words'));
      return indexed();
    };
    expect(commit(0, [1, 2])).toBe(0);
    expect(commit(2, [3], 'done')).toBe(3);
    expect(commit(3, [4])).toBe(4);
    expect(commit(4, [5], 'failed')).toBe(0);
    expect(commit(5, [6])).toBe(0);
    expect(commit(6, [], 'done')).toBe(6);
    db.close();
  });
});

describe('the size of a file', () => {
  const read = async (text: string, most?: number) => {
    const records: string[] = [];
    const open = async function* () {
      yield Buffer.from(text);
    };
    for await (const { record } of readRecords(open, undefined, most)) records.push(record.kind);
    return records.length;
  };
  const plain = shapes['two turns in each exchange']!;
  const pictures = { ...plain, images: (at: number) => [image(at), image(at + 100)] };

  it('is limited in lines, and in texts that turns refer to', async () => {
    expect(await read(fileOf(plain, 10))).toBe(12);
    expect(await read(fileOf(plain, 10), 13)).toBe(12);
    await expect(read(fileOf(plain, 11), 13)).rejects.toThrow('The file has more than 13 lines');
    expect(await read(fileOf(pictures, 10), 20)).toBe(12);
    await expect(read(fileOf(pictures, 11), 20)).rejects.toThrow('the turns refer to more than 20 texts');
  });
});
