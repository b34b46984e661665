import type { DatabaseSync } from 'node:sqlite';
import { sha256 } from '../../core/ids.ts';
import type { KnownFile } from '../read-file.ts';
import { searchable } from '../words.ts';
import type { FoundSymbol } from '../workers/run-job.ts';
import { type Chunk, chunksOf } from './chunks.ts';
import type { FileToIndex, Hit, IndexJob, IndexResults } from './index-client.ts';

/** A vector in one byte a number: near enough for comparing, and a quarter of the size. */
export function packVector(vector: Float32Array): Int8Array {
  let maxMagnitude = 0;
  for (const value of vector) maxMagnitude = Math.max(maxMagnitude, Math.abs(value));
  return Int8Array.from(vector, value => (maxMagnitude === 0 ? 0 : Math.round((value / maxMagnitude) * 127)));
}

/** The cosine of the angle between two packed vectors; 0 where they can't be compared. */
export function cosineSimilarity(a: Int8Array, b: Int8Array): number {
  if (a.length !== b.length) return 0;
  let dot = 0;
  let aa = 0;
  let bb = 0;
  for (let at = 0; at < a.length; at++) {
    const x = a[at] ?? 0;
    const y = b[at] ?? 0;
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  return aa === 0 || bb === 0 ? 0 : dot / Math.sqrt(aa * bb);
}

/** The constant of reciprocal rank fusion as its authors have it: high ranks count, but none decides alone. */
const flattening = 60;

/** Brings rankings of the same things together: each gives a thing one part in its place. */
export function reciprocalRankFusion<Key>(rankings: readonly (readonly Key[])[]): Map<Key, number> {
  const scores = new Map<Key, number>();
  for (const ranking of rankings) {
    for (const [place, key] of ranking.entries()) {
      scores.set(key, (scores.get(key) ?? 0) + 1 / (flattening + place + 1));
    }
  }
  return scores;
}

/** How much a word in a path, in a name or in the text itself counts. */
const bm25 = 'bm25(words, 4.0, 5.0, 1.0)';

/** Hits of each ranking that are brought together. */
const maxRanked = 150;

/** Of one file, no more hits than this are among the best: the others may know more. */
const maxPerFile = 3;

/** The tables of one index. Every change is whole or did not happen. */
export class IndexStore {
  readonly #db: DatabaseSync;
  readonly #symbols: (file: FileToIndex) => Promise<FoundSymbol[] | undefined>;

  constructor(db: DatabaseSync, symbols: (file: FileToIndex) => Promise<FoundSymbol[] | undefined>) {
    this.#db = db;
    this.#symbols = symbols;
  }

  close(): void {
    this.#db.close();
  }

  files(): KnownFile[] {
    const rows = this.#db.prepare('SELECT path, size, mtime, sha256 FROM files').all();
    return rows.map(row => ({
      path: String(row.path),
      size: Number(row.size),
      mtimeMs: Number(row.mtime),
      sha256: sha256(String(row.sha256)),
    }));
  }

  async put(files: readonly FileToIndex[]): Promise<void> {
    const cut: { file: FileToIndex; chunks: Chunk[] }[] = [];
    for (const file of files) cut.push({ file, chunks: chunksOf(file.text, await this.#symbols(file)) });
    const addFile = this.#db.prepare(
      'INSERT INTO files (path, size, mtime, sha256, weight) VALUES (?, ?, ?, ?, ?) RETURNING id',
    );
    const addChunk = this.#db.prepare(
      'INSERT INTO chunks (file, from_line, to_line, name, text) VALUES (?, ?, ?, ?, ?) RETURNING id',
    );
    const addWords = this.#db.prepare('INSERT INTO words (rowid, path, name, body) VALUES (?, ?, ?, ?)');
    this.#whole(() => {
      for (const { file, chunks } of cut) {
        this.#drop(file.path);
        const row = addFile.get(file.path, file.size, file.mtimeMs, file.sha256, file.weight);
        const path = searchable(file.path);
        for (const { from, to, name, text } of chunks) {
          const chunk = addChunk.get(Number(row?.id), from, to, name, text);
          addWords.run(Number(chunk?.id), path, searchable(name), searchable(text));
        }
      }
    });
  }

  touch(files: readonly KnownFile[]): void {
    const statement = this.#db.prepare('UPDATE files SET size = ?, mtime = ? WHERE path = ?');
    this.#whole(() => {
      for (const { path, size, mtimeMs } of files) statement.run(size, mtimeMs, path);
    });
  }

  remove(paths: readonly string[]): void {
    this.#whole(() => {
      for (const path of paths) this.#drop(path);
    });
  }

  clear(): void {
    this.#whole(() => {
      this.#db.exec('DELETE FROM words WHERE rowid IN (SELECT id FROM chunks); DELETE FROM chunks; DELETE FROM files;');
    });
  }

  counts(model = ''): IndexResults['counts'] {
    const count = (sql: string, ...values: string[]) => Number(this.#db.prepare(sql).get(...values)?.count);
    return {
      files: count('SELECT count(*) AS count FROM files'),
      chunks: count('SELECT count(*) AS count FROM chunks'),
      vectors: count('SELECT count(*) AS count FROM chunks WHERE model = ?', model),
    };
  }

  bare(model: string, limit: number): IndexResults['bare'] {
    const rows = this.#db
      .prepare(
        `SELECT chunks.id, path, name, text FROM chunks JOIN files ON files.id = chunks.file
         WHERE model IS NOT ? ORDER BY files.weight DESC, chunks.id LIMIT ?`,
      )
      .all(model, limit);
    return rows.map(({ id, path, name, text }) => ({ id: Number(id), text: `${path} ${name}\n${text}` }));
  }

  embed(model: string, vectors: Extract<IndexJob, { op: 'embed' }>['vectors']): void {
    // A chunk that another process has put anew meanwhile has another id.
    const statement = this.#db.prepare('UPDATE chunks SET model = ?, vector = ? WHERE id = ?');
    this.#whole(() => {
      for (const { id, vector } of vectors) statement.run(model, packVector(vector), id);
    });
  }

  search({ words, near, limit }: Extract<IndexJob, { op: 'search' }>): Hit[] {
    const rankings = [this.#byWords(words)];
    if (near) rankings.push(this.#byNearness(near));
    const row = this.#db.prepare(
      `SELECT path, weight, from_line, to_line, name, text FROM chunks JOIN files ON files.id = chunks.file
       WHERE chunks.id = ?`,
    );
    const hits = [...reciprocalRankFusion(rankings)].flatMap(([id, score]): Hit[] => {
      const found = row.get(id);
      if (!found) return [];
      const { path, name, text, from_line: from, to_line: to } = found;
      const where = { path: String(path), from: Number(from), to: Number(to) };
      return [{ ...where, name: String(name), text: String(text), score }];
    });
    const perFile = new Map<string, number>();
    return hits
      .sort((a, b) => b.score - a.score)
      .filter(({ path }) => {
        const count = (perFile.get(path) ?? 0) + 1;
        perFile.set(path, count);
        return count <= maxPerFile;
      })
      .slice(0, limit);
  }

  #byWords(words: readonly string[]): number[] {
    if (words.length === 0) return [];
    const query = words.map(word => `"${word.replaceAll('"', '')}"`).join(' OR ');
    const rows = this.#db
      .prepare(
        `SELECT found.id AS id FROM (SELECT rowid AS id, ${bm25} AS rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?) found
         JOIN chunks ON chunks.id = found.id JOIN files ON files.id = chunks.file ORDER BY found.rank * files.weight`,
      )
      .all(query, maxRanked * 2);
    return rows.slice(0, maxRanked).map(({ id }) => Number(id));
  }

  #byNearness({ model, vector }: { model: string; vector: Float32Array }): number[] {
    const wanted = packVector(vector);
    const rows = this.#db
      .prepare(
        'SELECT chunks.id AS id, vector, weight FROM chunks JOIN files ON files.id = chunks.file WHERE model = ?',
      )
      .iterate(model);
    const near: { id: number; worth: number }[] = [];
    for (const { id, vector: stored, weight } of rows) {
      if (!(stored instanceof Uint8Array)) continue;
      const packed = new Int8Array(stored.buffer, stored.byteOffset, stored.byteLength);
      const worth = cosineSimilarity(wanted, packed) * Number(weight);
      if (worth > 0) near.push({ id: Number(id), worth });
    }
    return near
      .sort((a, b) => b.worth - a.worth)
      .slice(0, maxRanked)
      .map(({ id }) => id);
  }

  #drop(path: string): void {
    const file = this.#db.prepare('SELECT id FROM files WHERE path = ?').get(path);
    if (!file) return;
    const id = Number(file.id);
    this.#db.prepare('DELETE FROM words WHERE rowid IN (SELECT id FROM chunks WHERE file = ?)').run(id);
    this.#db.prepare('DELETE FROM chunks WHERE file = ?').run(id);
    this.#db.prepare('DELETE FROM files WHERE id = ?').run(id);
  }

  #whole(change: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      change();
      this.#db.exec('COMMIT');
    } catch (error) {
      this.#db.exec('ROLLBACK');
      throw error;
    }
  }
}
