import { hash } from 'node:crypto';
import { join } from 'node:path';
import { inParallel, orAbort, withTimeout } from '../../core/concurrency.ts';
import { type AppError, isAppError, throwIfAborted } from '../../core/errors.ts';
import type { Clock, Embedder, Mask, Masked } from '../../core/ports.ts';
import { safeCut } from '../../core/text.ts';
import { estimateTokens } from '../../core/tokens.ts';
import { type Sandbox, searchedRoots } from '../sandbox.ts';
import { type Hit, IndexClient, type IndexResults, type Job, type LookProgress } from './index-client.ts';

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
  clock: Pick<Clock, 'after' | 'now'>;
}

type Payer = Parameters<Embedder['embed']>[2];

export interface RefreshOptions {
  signal: AbortSignal;
  /** Who pays for the vectors; absent: the operator. */
  payer?: Payer;
  /** Puts all files anew. */
  rebuild?: boolean;
  /** Milliseconds after which the files that are read so far have to do; the others are read in the background. Absent: all are read. */
  waitMs?: number;
  /** Told some twenty times on the way: what is done, and of how many. */
  onProgress?(stage: 'indexing' | 'embedding', done: number, total: number): void;
}

export type SearchIndex = ReturnType<typeof joinIndexes>;
export type SearchIndexes = ReturnType<typeof createSearchIndexes>;

/** Milliseconds that a call which is to have an answer waits for files that are not in the index yet. */
export const searchWaitMs = 1_000;
/** Files whose texts are asked of the thread at once. */
const cutAtOnce = 64;
/** Of one search. */
const maxCuts = 10;
/** Vendors take 300,000 tokens of all texts of a request, and 8,192 of each. */
const embedAtOnce = 32;
const embeddedTokens = 7_000;
const embeddedChars = 6_000;
/** What is stored of secrets is the same in all indexes of a machine: it leads nowhere. */
const maskScope = 'index';

export function createSearchIndexes(options: SearchIndexesOptions) {
  const open = new Map<string, { index: RootIndex; client: IndexClient }>();

  function indexOf(real: string, sandbox: Sandbox): RootIndex {
    const known = open.get(real);
    if (known) return known.index;
    // What may be read decides what stands in it.
    const name = hash('sha256', `${real}${sandbox.options.allowSecrets ? '\0secrets' : ''}`).slice(0, 24);
    const file = options.folder && join(options.folder, `${name}.sqlite`);
    // What lies below a folder is the same for everybody who may read the folder: links in it are not followed.
    const thread = { ...(file && { file }), root: real, sandbox: sandbox.options };
    const client = new IndexClient(thread, options.clock);
    const index = createIndex(options, client, real);
    open.set(real, { index, client });
    return index;
  }

  return {
    /** The index of a workspace and of the other roots. Throws SECURITY for a folder outside the roots, those of `sandbox` if given. */
    async of(root: string, sandbox = options.sandbox): Promise<SearchIndex> {
      const real = await sandbox.assertWithin(root);
      const indexes = (await searchedRoots(sandbox, real)).map(each => indexOf(each, sandbox));
      return joinIndexes(options, indexes);
    },
    async close(): Promise<void> {
      await Promise.all([...open.values()].map(({ client }) => client.close()));
    },
  };
}

type RootIndex = ReturnType<typeof createIndex>;

/** What stands where in the files of one root. */
function createIndex(options: SearchIndexesOptions, client: IndexClient, root: string) {
  const { embedder, clock, mask } = options;
  const watching = new Set<(progress: LookProgress) => void>();
  let latest: LookProgress = { done: 0, total: 0 };
  let last: Promise<unknown> = Promise.resolve();
  let next: Promise<IndexResults['look']> | undefined;

  /** One look after another: the second finds done what the first did. */
  function look(rebuild: boolean, signal?: AbortSignal): Promise<IndexResults['look']> {
    const mine = last.then(() => {
      next = undefined;
      latest = { done: 0, total: 0 };
      return client.ask<'look'>({ op: 'look', now: clock.now(), rebuild }, signal, progress => {
        latest = progress;
        for (const tell of watching) tell(progress);
      });
    });
    last = mine.catch(() => undefined);
    return mine;
  }

  /** Undefined: it goes on in the background, for whoever asks next. */
  async function lookFor(waitMs: number, signal: AbortSignal): Promise<IndexResults['look'] | undefined> {
    next ??= look(false);
    return orAbort(withTimeout(clock, waitMs, next), signal).finally(() => throwIfAborted(signal));
  }

  async function cut(question?: string): Promise<boolean> {
    const files = await client.ask<'uncut'>({ op: 'uncut', limit: cutAtOnce, question });
    for (const file of files) file.text = withLines(file.text, await mask(file.text, maskScope));
    if (files.length > 0) await client.ask<'cut'>({ op: 'cut', files });
    return files.length > 0;
  }

  return {
    root,
    /**
     * Makes the index equal to the files: only those that changed are read. An abort keeps what is done so far. Answers counts of
     * files (`indexed`: put or put anew), what may or can not be read (`skipped`), and how many `chunks` there are: stretches of
     * those files that a search came near to, or of all files where a model makes vectors. Then `vectors` of them have one, and
     * `warning` says why not more.
     */
    async refresh(how: RefreshOptions) {
      const { signal, waitMs, rebuild = false } = how;
      throwIfAborted(signal);
      const tell = stepReporter(how, 'indexing');
      watching.add(tell);
      try {
        const seen = waitMs === undefined ? await look(rebuild, signal) : await lookFor(waitMs, signal);
        let warning = seen ? options.noEmbedder : unfinished(latest);
        if (seen && embedder) {
          while (await cut()) throwIfAborted(signal);
          warning = await embedBare(client, how, embedder);
        }
        const { chunks, vectors } = await client.ask<'counts'>({ op: 'counts', model: embedder?.model });
        const done = seen ?? { files: latest.done, indexed: 0, removed: 0, skipped: [] };
        return { ...done, chunks, ...(embedder && { vectors }), ...(warning !== undefined && { warning }) };
      } finally {
        watching.delete(tell);
      }
    },
    /** The best stretches of files for a question, the best first. */
    async search(question: string, limit: number, signal: AbortSignal, near?: Job<'search'>['near']): Promise<Hit[]> {
      // While files come in, others may always be nearer.
      for (let left = maxCuts; left > 0 && (await cut(question)); left--) throwIfAborted(signal);
      return client.ask<'search'>({ op: 'search', question, limit, ...(near && { near }) });
    },
  };
}

/** Roots whose indexes are brought up to date, or searched, at once. */
const rootsAtOnce = 8;

/** Several indexes as one. Scores come from ranks within one; how much of the question a file speaks of tells which is nearer. */
function joinIndexes({ embedder, mask }: SearchIndexesOptions, indexes: readonly RootIndex[]) {
  async function vectorOf(question: string, embedder: Embedder, signal: AbortSignal, payer?: Payer) {
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

  /** Those that cannot be used, since the last refresh, and what that one had to say of all. */
  const failed = new Map<RootIndex, AppError>();
  let told: string | undefined;

  /** Asks those that can be used; throws where none can. */
  async function ofUsable<Answer>(signal: AbortSignal, ask: (index: RootIndex) => Promise<Answer>): Promise<Answer[]> {
    const tried = (index: RootIndex) =>
      ask(index).catch(error => {
        if (signal.aborted || !isAppError(error) || !/storage|bug/.test(error.kind)) throw error;
        failed.set(index, error);
      });
    const usable = indexes.filter(index => !failed.has(index));
    const answers = (await inParallel(usable, rootsAtOnce, tried, signal)).filter(each => each !== undefined);
    for (const error of answers.length === 0 ? failed.values() : []) throw error;
    return answers;
  }

  /** What those who ask have to know of what is not searched; undefined: nothing. */
  const warning = () =>
    [told ?? [], ...[...failed].map(([{ root }, { message }]) => `${root} is not searched: ${message}`)]
      .flat()
      .join(' ') || undefined;

  return {
    warning,
    /** Directories that are searched, the project first. */
    roots: indexes.map(({ root }) => root),
    /** Searches leave out what could not be refreshed. */
    async refresh(how: RefreshOptions) {
      failed.clear();
      const all = await ofUsable(how.signal, index => index.refresh(how));
      told = all.find(each => each.warning !== undefined)?.warning;
      const sum = (count: (each: (typeof all)[number]) => number) =>
        all.reduce((total, each) => total + count(each), 0);
      const warned = warning();
      return {
        files: sum(each => each.files),
        indexed: sum(each => each.indexed),
        removed: sum(each => each.removed),
        skipped: all.flatMap(each => each.skipped),
        chunks: sum(each => each.chunks),
        ...(all.some(each => each.vectors !== undefined) && { vectors: sum(each => each.vectors ?? 0) }),
        ...(warned !== undefined && { warning: warned }),
      };
    },
    async search(question: string, limit: number, signal: AbortSignal, payer?: Payer) {
      throwIfAborted(signal);
      const near = embedder && (await vectorOf(question, embedder, signal, payer));
      const hits = await ofUsable(signal, index => index.search(question, limit, signal, near));
      const [only = [], ...others] = hits;
      if (others.length === 0) return only;
      return hits
        .flat()
        .sort((a, b) => b.score * b.fit - a.score * a.fit)
        .slice(0, limit);
    },
  };
}

/** A masked text in which every line has the number that it has in the file: a secret may stand on several. */
function withLines(text: string, { text: masked, places = [] }: Masked): string {
  if (!places.some(({ start, end }) => text.slice(start, end).includes('\n'))) return masked;
  let out = '';
  let done = 0;
  for (const { start, end, placeholder } of places) {
    const ends = text.slice(start, end).split('\n').length - 1;
    out += text.slice(done, start) + placeholder + '\n'.repeat(ends);
    done = end;
  }
  return out + text.slice(done);
}

function unfinished({ done, total }: LookProgress): string {
  const how = total === 0 ? 'brought up to date' : `made, and ${done} of ${total} files are in it so far`;
  return `the index is being ${how}; resend the call in a minute to search the other files, too.`;
}

/** The beginning of a text that any model takes: one that is refused would hold up all others. */
function embeddable(text: string): string {
  const cut = safeCut(text, embeddedChars);
  const tokens = estimateTokens(cut);
  return tokens <= embeddedTokens ? cut : safeCut(cut, Math.floor((cut.length * embeddedTokens) / tokens));
}

/** Gives chunks that have none a vector; answers why it did not, where the model failed. */
async function embedBare(client: IndexClient, how: RefreshOptions, embedder: Embedder): Promise<string | undefined> {
  const { signal, payer } = how;
  const { model } = embedder;
  const { chunks, vectors } = await client.ask({ op: 'counts', model });
  const report = stepReporter(how, 'embedding');
  const total = chunks - vectors;
  for (let done = 0; ; ) {
    throwIfAborted(signal);
    const bare = await client.ask({ op: 'bare', model, limit: embedAtOnce });
    if (bare.length === 0) return undefined;
    try {
      const texts = bare.map(({ text }) => embeddable(text));
      const made = await embedder.embed(texts, signal, payer);
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
    report({ done, total });
  }
}

/** Tells each twentieth, and the end. */
function stepReporter({ onProgress }: RefreshOptions, stage: 'indexing' | 'embedding') {
  let reported = 0;
  return ({ done, total }: LookProgress): void => {
    const part = Math.floor((done * 20) / Math.max(1, total));
    if (part === reported && done < total) return;
    reported = part;
    onProgress?.(stage, done, total);
  };
}
