import { createHash } from 'node:crypto';
import { join, relative, sep } from 'node:path';
import { inParallel } from '../../core/concurrency.ts';
import { isAppError, throwIfAborted } from '../../core/errors.ts';
import type { Skip } from '../../core/file.ts';
import type { Clock, Embedder, Mask } from '../../core/ports.ts';
import { safeCut } from '../../core/text.ts';
import { estimateTokens } from '../../core/tokens.ts';
import { languageOf } from '../outline/outline.ts';
import { isSkip, skip } from '../paths.ts';
import type { KnownFile } from '../read-file.ts';
import { readFile } from '../read-file.ts';
import type { Sandbox } from '../sandbox.ts';
import { classifyFile, type FileClass, walkDirectory } from '../walk.ts';
import { questionWords } from '../words.ts';
import type { FileToIndex, Hit } from './index-client.ts';
import { IndexClient } from './index-client.ts';

export interface SearchIndexesOptions {
  /** Folder of the databases; undefined: they are in memory alone. */
  folder?: string;
  sandbox: Sandbox;
  /** What is stored is masked; the same for all files of an index. */
  mask: Mask;
  /** Absent: words alone decide. */
  embedder?: Embedder;
  /** Why it is absent, where one was wanted; told with each refresh. */
  noEmbedder?: string;
  clock: Pick<Clock, 'after' | 'monotonic'>;
}

type Payer = Parameters<Embedder['embed']>[2];

export interface RefreshOptions {
  signal: AbortSignal;
  /** Who pays for the vectors; absent: the operator. */
  payer?: Payer;
  /** Puts all files anew. */
  rebuild?: boolean;
  /** Told some twenty times on the way: what is done, and of how many. */
  onProgress?(stage: 'indexing' | 'embedding', done: number, total: number): void;
}

/** What a refresh did. Counts of files, but for the last three. */
export interface RefreshReport {
  files: number;
  /** Put or put anew. */
  indexed: number;
  removed: number;
  /** What may or can not be read. */
  skipped: Skip[];
  chunks: number;
  /** Chunks that have a vector; absent where no model makes them. */
  vectors?: number;
  /** Why there are not more of them. */
  warning?: string;
}

export type SearchIndex = ReturnType<typeof createIndex>;
export type SearchIndexes = ReturnType<typeof createSearchIndexes>;

const walkLimits = { maxDepth: 100, maxEntries: 300_000 };
const maxFiles = 30_000;
/** Of all files together. */
const maxTotalBytes = 256 * 1024 * 1024;
/** Larger files are data. */
const maxBytes = 1024 * 1024;
const maxConcurrent = 8;
/** One message to the thread: files, and characters of all of them. */
const batch = { files: 64, chars: 500_000 };
/** Vendors take 300,000 tokens of all texts of a request, and 8,192 of each. */
const embedAtOnce = 32;
const embeddedTokens = 7_000;
const embeddedChars = 6_000;
/** Hits in source come before equal ones elsewhere. */
const weights: Readonly<Record<FileClass, number>> = {
  source: 1,
  doc: 0.85,
  test: 0.75,
  config: 0.7,
  log: 0.4,
  generated: 0.3,
};
/** What is stored of secrets is the same in all indexes of a machine: it leads nowhere. */
const maskScope = 'index';

export function createSearchIndexes(options: SearchIndexesOptions) {
  const open = new Map<string, { index: SearchIndex; client: IndexClient }>();
  return {
    /**
     * The index of a workspace, by its folder. Throws an `AppError` of kind `security` for one outside the roots: those of
     * `sandbox`, where callers have roots of their own.
     */
    async of(root: string, sandbox = options.sandbox): Promise<SearchIndex> {
      const real = await sandbox.assertWithin(root);
      const known = open.get(real);
      if (known) return known.index;
      const name = createHash('sha256').update(real).digest('hex').slice(0, 24);
      const file = options.folder && join(options.folder, `${name}.sqlite`);
      const client = new IndexClient({ ...(file && { file }) }, options.clock);
      // What lies below a folder is the same for everybody who may read the folder: links in it are not followed.
      const index = createIndex({ ...options, sandbox }, real, client);
      open.set(real, { index, client });
      return index;
    },
    async close(): Promise<void> {
      await Promise.all([...open.values()].map(({ client }) => client.close()));
    },
  };
}

interface Work extends SearchIndexesOptions, RefreshOptions {
  root: string;
  client: IndexClient;
  report: RefreshReport;
  /** Bytes of the files that were looked at. */
  bytes: number;
}

/** What stands where in the files of one workspace. */
function createIndex(options: SearchIndexesOptions, root: string, client: IndexClient) {
  const { embedder } = options;
  let last: Promise<unknown> = Promise.resolve();

  async function refresh(how: RefreshOptions): Promise<RefreshReport> {
    throwIfAborted(how.signal);
    const report: RefreshReport = { files: 0, indexed: 0, removed: 0, skipped: [], chunks: 0 };
    const work: Work = { ...options, ...how, root, client, report, bytes: 0 };
    if (how.rebuild) await client.ask({ op: 'clear' });
    await putChanged(work);
    report.warning = embedder ? await embedBare(work, embedder) : options.noEmbedder;
    const counts = await client.ask({ op: 'counts', ...(embedder && { model: embedder.model }) });
    report.files = counts.files;
    report.chunks = counts.chunks;
    if (embedder) report.vectors = counts.vectors;
    return report;
  }

  return {
    /** Makes the index equal to the files: only those that changed are read. An abort keeps what is done so far. */
    refresh(how: RefreshOptions): Promise<RefreshReport> {
      // One after another: the second finds done what the first did.
      const mine = last.then(() => refresh(how));
      last = mine.catch(() => undefined);
      return mine;
    },
    /** The best stretches of files for a question, the best first; `path` is absolute. */
    async search(question: string, limit: number, signal: AbortSignal, payer?: Payer): Promise<Hit[]> {
      throwIfAborted(signal);
      const words = questionWords(question);
      const near = embedder && (await vectorOf(options, embedder, { question, signal, payer }));
      const hits = await client.ask({ op: 'search', words, limit, ...(near && { near }) });
      return hits.map(hit => ({ ...hit, path: join(root, hit.path) }));
    },
  };
}

async function vectorOf(
  { mask }: SearchIndexesOptions,
  embedder: Embedder,
  { question, signal, payer }: { question: string; signal: AbortSignal; payer: Payer | undefined },
) {
  // Like the files: who makes the vectors is somebody else.
  const { text } = await mask(question.toWellFormed(), maskScope);
  try {
    const [vector] = await embedder.embed([embeddable(text)], signal, payer);
    return vector && { model: embedder.model, vector };
  } catch (error) {
    // Words find something too; that there are no vectors is told when they are made.
    if (signal.aborted || !isAppError(error)) throw error;
    return undefined;
  }
}

/** The beginning of a text that any model takes: one that is refused would hold up all others. */
function embeddable(text: string): string {
  const cut = safeCut(text, embeddedChars);
  const tokens = estimateTokens(cut);
  return tokens <= embeddedTokens ? cut : safeCut(cut, Math.floor((cut.length * embeddedTokens) / tokens));
}

/** Looks at every file of the workspace and puts, touches or removes what is not as it was. */
async function putChanged(work: Work): Promise<void> {
  const { client, root, sandbox, report, signal } = work;
  const known = new Map((await client.ask({ op: 'files' })).map(file => [file.path, file]));
  const walk = await walkDirectory(sandbox, root, walkLimits, signal);
  report.skipped.push(...walk.skipped);
  const paths = inReach(walk.files, report);
  const reportDone = progressReporter(work, 'indexing', paths.length);
  let done = 0;
  let waiting: Found[] = [];
  for (let at = 0; at < paths.length; at += batch.files) {
    throwIfAborted(signal);
    const part = paths.slice(at, at + batch.files);
    const found = await inParallel(part, maxConcurrent, path => look(work, path, known));
    for (const each of found) {
      known.delete(each.path);
      waiting.push(each);
      if (charsOf(waiting) > batch.chars) {
        await flush(work, waiting);
        waiting = [];
      }
    }
    await flush(work, waiting);
    waiting = [];
    done += part.length;
    // Looking at files that are as they were is over before anybody wonders.
    if (report.indexed > 0) reportDone(done);
  }
  // What is left is gone, or no longer allowed; where not all was looked at, it may still be there.
  const complete = !walk.skipped.some(({ code }) => code === 'too_many_files');
  const gone = complete ? [...known.keys()] : [];
  if (gone.length > 0) await client.ask({ op: 'remove', paths: gone });
  report.removed += gone.length;
}

function inReach(files: readonly string[], report: RefreshReport): readonly string[] {
  if (files.length <= maxFiles) return files;
  const [first = ''] = files.slice(maxFiles);
  const left = files.length - maxFiles;
  report.skipped.push(skip(first, 'too_many_files', `This and ${left - 1} more files are not in the index.`));
  return files.slice(0, maxFiles);
}

/** What was found out about one file. */
interface Found {
  /** Relative to the workspace. */
  path: string;
  put?: FileToIndex;
  touch?: KnownFile;
  remove?: boolean;
}

function charsOf(found: readonly Found[]): number {
  return found.reduce((sum, { put }) => sum + (put?.text.length ?? 0), 0);
}

/** Size and time first; only where one of them differs is the file read, and only where its hash differs is it put. */
async function look(work: Work, absolute: string, known: ReadonlyMap<string, KnownFile>): Promise<Found> {
  const { root, sandbox, mask, signal, report } = work;
  const path = relative(root, absolute).split(sep).join('/');
  const before = known.get(path);
  const none: Found = { path, ...(before && { remove: true }) };
  const located = await sandbox.locate(absolute);
  if (isSkip(located)) {
    report.skipped.push(located);
    return none;
  }
  // A larger one is refused when it is opened.
  if (located.size <= maxBytes) work.bytes += located.size;
  if (work.bytes > maxTotalBytes) {
    report.skipped.push(skip(absolute, 'over_budget', `The index takes ${maxTotalBytes} bytes of files together.`));
    return none;
  }
  if (before && before.size === located.size && before.mtimeMs === located.mtimeMs) return { path };
  const file = await readFile(sandbox, absolute, { maxBytes, signal });
  if (isSkip(file)) {
    report.skipped.push(file);
    return none;
  }
  const { size, mtimeMs, sha256 } = file;
  const fingerprint = { path, size, mtimeMs, sha256 };
  if (before?.sha256 === sha256) return { path, touch: fingerprint };
  const { text } = await mask(file.text, maskScope);
  const weight = weights[classifyFile(path, file.text)];
  const language = languageOf(path);
  return { path, put: { ...fingerprint, text, weight, ...(language && { language }) } };
}

async function flush({ client, report }: Work, found: readonly Found[]): Promise<void> {
  const put = found.flatMap(each => each.put ?? []);
  const touch = found.flatMap(each => each.touch ?? []);
  const paths = found.flatMap(each => (each.remove ? [each.path] : []));
  if (put.length > 0) await client.ask({ op: 'put', files: put });
  if (touch.length > 0) await client.ask({ op: 'touch', files: touch });
  if (paths.length > 0) await client.ask({ op: 'remove', paths });
  report.indexed += put.length;
  report.removed += paths.length;
}

/** Gives every chunk a vector; answers why it did not, where the model failed. */
async function embedBare(work: Work, embedder: Embedder): Promise<string | undefined> {
  const { client, signal } = work;
  const { model } = embedder;
  const { chunks, vectors } = await client.ask({ op: 'counts', model });
  const report = progressReporter(work, 'embedding', chunks - vectors);
  for (let done = 0; ; ) {
    throwIfAborted(signal);
    const bare = await client.ask({ op: 'bare', model, limit: embedAtOnce });
    if (bare.length === 0) return undefined;
    try {
      const made = await embedder.embed(
        bare.map(({ text }) => embeddable(text)),
        signal,
        work.payer,
      );
      const pairs = bare.flatMap(({ id }, index) => {
        const vector = made[index];
        return vector ? [{ id, vector }] : [];
      });
      if (pairs.length < bare.length) return `${model} answered fewer vectors than texts.`;
      await client.ask({ op: 'embed', model, vectors: pairs });
    } catch (error) {
      if (signal.aborted || !isAppError(error) || error.kind === 'storage') throw error;
      return `${model} made no vectors, so words alone decide: ${error.message}`;
    }
    done += bare.length;
    report(done);
  }
}

/** Tells each twentieth, and the end. */
function progressReporter(
  { onProgress }: Work,
  stage: 'indexing' | 'embedding',
  total: number,
): (done: number) => void {
  let reported = 0;
  return done => {
    const part = Math.floor((done * 20) / Math.max(1, total));
    if (part === reported && done < total) return;
    reported = part;
    onProgress?.(stage, done, total);
  };
}
