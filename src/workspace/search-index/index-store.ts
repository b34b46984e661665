import { join, sep } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { wholeChange } from '../../core/concurrency.ts';
import type { KnownFile } from '../read-file.ts';
import { namesIn } from '../words.ts';
import type { FoundSymbol } from '../workers/run-job.ts';
import { type Chunk, chunksOf } from './chunks.ts';
import { TermCounter, type Terms } from './file-terms.ts';
import type { FileToCut, Hit, IndexResults, Job } from './index-client.ts';
import { cosineSimilarity, matches, packVector, type Ranked, ranked, reciprocalRankFusion } from './ranking.ts';

/** Files whose chunks are looked at: those that the words of a question bring near. */
const maxNear = 40;
/** Hits of each ranking that are brought together. */
const maxRanked = 150;
/** Of one file, no more hits than this are among the best. */
const maxPerFile = 3;
/** What the name of a chunk counts beside its text. */
const nameWeight = 3;
/** The fit of a file that only its vectors found. */
const leastFit = 0.1;
/** What a file is worth in the score of its chunks. */
const fileShare = 0.5;
/** What each further hit in one file is worth of the one before: other files may know something else. */
const furtherShare = 0.8;

/** A file as the index knows it. */
export interface IndexedFile {
  id: number;
  size: number;
  mtimeMs: number;
  /** What a hit in it counts for, at most 1. */
  weight: number;
  terms: Terms;
  /** Its chunks are in the index. */
  isCut: boolean;
}

/** A file that is put into the index. Its path is absolute. */
export interface FileToPut extends KnownFile {
  weight: number;
  terms: Terms;
}

/** The tables of one index, and in memory what a search goes through. Every change is whole or did not happen. */
export class IndexStore {
  readonly #db: DatabaseSync;
  readonly #start: string;
  readonly #counter = new TermCounter();
  readonly #files = new Map<string, IndexedFile>();
  /** Raised with each change: what was found for a question is right until then. */
  #changes = 0;
  #lastNear: { question: string; changes: number; near: Near } | undefined;
  /** Of the database, as others left it; undefined: not read yet. */
  #version: number | undefined;

  constructor(db: DatabaseSync, root: string) {
    this.#db = db;
    this.#start = root.endsWith(sep) ? root : `${root}${sep}`;
  }

  close(): void {
    this.#db.close();
  }

  /** All files by their absolute paths; read again where another process has changed something. */
  files(): ReadonlyMap<string, IndexedFile> {
    const version = this.#dataVersion();
    if (version === this.#version) return this.#files;
    this.#files.clear();
    this.#changes++;
    for (const row of this.#db.prepare('SELECT id, path, size, mtime, weight, cut, terms FROM files').iterate()) {
      const bytes = row.terms instanceof Uint8Array ? row.terms : new Uint8Array();
      const terms = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
      const { id, path, size, mtime, weight, cut } = row;
      const numbers = { id: Number(id), size: Number(size), mtimeMs: Number(mtime), weight: Number(weight) };
      this.#files.set(join(this.#start, String(path)), { ...numbers, terms, isCut: cut === 1 });
    }
    this.#version = version;
    return this.#files;
  }

  isSame(path: string, sha256: string): boolean {
    const select = this.#db.prepare('SELECT 1 FROM files WHERE path = ? AND sha256 = ?');
    return select.get(this.#nameOf(path), sha256) !== undefined;
  }

  put(files: readonly FileToPut[]): void {
    const add = this.#db.prepare(
      'INSERT INTO files (path, size, mtime, sha256, weight, terms) VALUES (?, ?, ?, ?, ?, ?)',
    );
    this.#whole(() => {
      const mayBeOthers = this.#dataVersion() !== this.#version;
      this.#drop(files.flatMap(({ path }) => (mayBeOthers || this.#files.has(path) ? path : [])));
      for (const { path, size, mtimeMs, sha256, weight, terms } of files) {
        const bytes = new Uint8Array(terms.buffer, 0, terms.byteLength);
        const { lastInsertRowid } = add.run(this.#nameOf(path), size, mtimeMs, sha256, weight, bytes);
        this.#files.set(path, { id: Number(lastInsertRowid), size, mtimeMs, weight, terms, isCut: false });
      }
    });
  }

  /** The text is the same, the time of the last change is not. */
  touch(path: string, size: number, mtimeMs: number): void {
    this.#db.prepare('UPDATE files SET size = ?, mtime = ? WHERE path = ?').run(size, mtimeMs, this.#nameOf(path));
    const file = this.#files.get(path);
    if (file) Object.assign(file, { size, mtimeMs });
  }

  remove(paths: readonly string[]): void {
    if (paths.length > 0) this.#whole(() => this.#drop(paths));
  }

  clear(): void {
    this.#whole(() => this.#db.exec('DELETE FROM chunks; DELETE FROM files;'));
    this.#files.clear();
  }

  counts(model = ''): IndexResults['counts'] {
    const count = (sql: string, ...values: string[]) => Number(this.#db.prepare(sql).get(...values)?.count);
    return {
      chunks: count('SELECT count(*) AS count FROM chunks'),
      vectors: count('SELECT count(*) AS count FROM chunks WHERE model = ?', model),
    };
  }

  /** Files that come near a question. */
  near = (question: string): string[] => this.#near(question).best.map(({ item }) => item);

  /** Files that are not cut yet: those that come near a question or, without one, any. */
  uncut({ question, limit }: Job<'uncut'>): string[] {
    const files = this.files();
    const found = question === undefined ? [...files.keys()] : this.near(question);
    return found.filter(path => files.get(path)?.isCut === false).slice(0, limit);
  }

  async cut(files: readonly FileToCut[], symbolsOf: (file: FileToCut) => Promise<FoundSymbol[] | undefined>) {
    const known = this.files();
    const cut: { id: number; file: FileToCut; chunks: Chunk[] }[] = [];
    for (const file of files) {
      const id = known.get(file.path)?.id;
      if (id !== undefined) cut.push({ id, file, chunks: chunksOf(file.text, await symbolsOf(file)) });
    }
    // One that was put anew meanwhile has another id; one that another process has cut meanwhile is cut.
    const mark = this.#db.prepare('UPDATE files SET cut = 1 WHERE id = ? AND cut = 0');
    const add = this.#db.prepare('INSERT INTO chunks (file, from_line, to_line, name, text) VALUES (?, ?, ?, ?, ?)');
    this.#whole(() => {
      for (const { id, file, chunks } of cut) {
        if (mark.run(id).changes === 1) {
          for (const { from, to, name, text } of chunks) add.run(id, from, to, name, text);
        }
        const now = known.get(file.path);
        if (now?.id === id) now.isCut = true;
      }
    });
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

  embed(model: string, vectors: Job<'embed'>['vectors']): void {
    // A chunk that another process has put anew meanwhile has another id.
    const statement = this.#db.prepare('UPDATE chunks SET model = ?, vector = ? WHERE id = ?');
    this.#whole(() => {
      for (const { id, vector } of vectors) statement.run(model, packVector(vector), id);
    });
  }

  search({ question, near, limit }: Job<'search'>): Hit[] {
    const rankings = [this.#byWords(question)];
    if (near) rankings.push(this.#byNearness(near));
    const row = this.#db.prepare(
      `SELECT path, from_line, to_line, name, text FROM chunks JOIN files ON files.id = chunks.file WHERE chunks.id = ?`,
    );
    const { rarity, best } = this.#near(question);
    const whole = rarity.reduce((sum, rare) => sum + rare, 0);
    const fits = new Map(best.map(({ item, score }) => [item, score / whole]));
    const hits = [...reciprocalRankFusion(rankings)].flatMap(([id, score]): Hit[] => {
      const found = row.get(id);
      if (!found) return [];
      const { path, name, text, from_line: from, to_line: to } = found;
      const where = { path: join(this.#start, String(path)), from: Number(from), to: Number(to) };
      const fit = fits.get(where.path) ?? leastFit;
      return [{ ...where, name: String(name), text: String(text), score, fit }];
    });
    const perFile = new Map<string, number>();
    return hits
      .sort((a, b) => b.score - a.score)
      .flatMap(hit => {
        const before = perFile.get(hit.path) ?? 0;
        perFile.set(hit.path, before + 1);
        return before < maxPerFile ? { ...hit, score: hit.score * furtherShare ** before } : [];
      })
      .sort((a, b) => b.score - a.score)
      .slice(0, limit);
  }

  /** What is looked for, and the files that speak of it. */
  #near(question: string): Near {
    const files = this.files();
    const last = this.#lastNear;
    if (last?.question === question && last.changes === this.#changes) return last.near;
    const asked = question.slice(0, maxQuestion);
    const wanted = this.#counter
      .termsOf([
        { text: Buffer.from(namesIn(asked).join(' ')), weight: 1, names: true },
        { text: Buffer.from(asked), weight: 1 },
      ])
      .slice(0, maxWanted);
    const found = matches(wanted, files);
    const rarity = Array.from(wanted, (_, place) => {
      const having = found.reduce((sum, { entries }) => sum + (entries[place] === 0 ? 0 : 1), 0);
      return Math.log(1 + (files.size - having + 0.5) / (having + 0.5));
    });
    const best = ranked(rarity, found, path => files.get(path)?.weight ?? 0).slice(0, maxNear);
    const near = { wanted, rarity, best };
    this.#lastNear = { question, changes: this.#changes, near };
    return near;
  }

  /** Chunks that speak of a question, in files that do. */
  #byWords(question: string): number[] {
    const { wanted, rarity, best } = this.#near(question);
    const select = this.#db.prepare('SELECT id, name, text FROM chunks WHERE file = ?');
    const texts = best.flatMap(({ item: path, score: fileScore }) => {
      const { id: file = 0, weight = 0 } = this.#files.get(path) ?? {};
      return select.all(file).map(({ id, name, text }) => {
        const counted = [
          { text: Buffer.from(String(name)), weight: nameWeight },
          { text: Buffer.from(String(text)), weight: 1 },
        ];
        return [{ id: Number(id), path, weight, fileScore }, { terms: this.#counter.termsOf(counted) }] as const;
      });
    });
    const found = ranked(rarity, matches(wanted, texts), ({ weight }) => weight);
    // Where the path alone speaks of it, the file is shown by its beginning.
    const has = new Set(found.map(({ item }) => item.path));
    const others = texts.flatMap(([item]) => {
      if (has.has(item.path)) return [];
      has.add(item.path);
      return { item, score: 0 };
    });
    return bestOf(
      [...found, ...others].map(({ item: { id, fileScore }, score }) => ({ id, score: score + fileShare * fileScore })),
    );
  }

  #byNearness({ model, vector }: { model: string; vector: Float32Array }): number[] {
    const wanted = packVector(vector);
    const rows = this.#db
      .prepare(
        'SELECT chunks.id AS id, vector, weight FROM chunks JOIN files ON files.id = chunks.file WHERE model = ?',
      )
      .iterate(model);
    const near: { id: number; score: number }[] = [];
    for (const { id, vector: stored, weight } of rows) {
      if (!(stored instanceof Uint8Array)) continue;
      const packed = new Int8Array(stored.buffer, stored.byteOffset, stored.byteLength);
      const score = cosineSimilarity(wanted, packed) * Number(weight);
      if (score > 0) near.push({ id: Number(id), score });
    }
    return bestOf(near);
  }

  #drop(paths: readonly string[]): void {
    const chunks = this.#db.prepare('DELETE FROM chunks WHERE file = (SELECT id FROM files WHERE path = ?)');
    const file = this.#db.prepare('DELETE FROM files WHERE path = ?');
    for (const path of paths) {
      chunks.run(this.#nameOf(path));
      file.run(this.#nameOf(path));
      this.#files.delete(path);
    }
  }

  /** Relative to the workspace, with slashes. */
  #nameOf(path: string): string {
    return path.slice(this.#start.length).replaceAll(sep, '/');
  }

  /** Changes when another process has changed something. */
  #dataVersion(): number {
    return Number(this.#db.prepare('PRAGMA data_version').get()?.data_version);
  }

  #whole(change: () => void): void {
    this.#changes++;
    try {
      wholeChange(this.#db, change);
    } catch (error) {
      this.#version = undefined;
      throw error;
    }
  }
}

const bestOf = (scored: { id: number; score: number }[]): number[] =>
  scored
    .sort((a, b) => b.score - a.score)
    .slice(0, maxRanked)
    .map(({ id }) => id);

const maxQuestion = 20_000;
const maxWanted = 120;

interface Near {
  wanted: Terms;
  /** What each of them counts. */
  rarity: readonly number[];
  /** The best first. */
  best: readonly Ranked<string>[];
}
