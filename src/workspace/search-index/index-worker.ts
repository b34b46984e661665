import { parentPort, workerData } from 'node:worker_threads';
import { dropIndexFile, isDamage, isFull, openIndexDatabase } from '../../files/index/index-database.ts';
import type {
  FileToIndex,
  IndexFailure,
  IndexJob,
  IndexResults,
  IndexThreadOptions,
} from '../../files/index/index-job.ts';
import { doJob } from '../workers/run-job.ts';
import { IndexStore } from './index-store.ts';

const port = parentPort;
const { file }: IndexThreadOptions = workerData ?? {};
let store: IndexStore | undefined;

/** Beyond this a parse takes long; such sources are generated or data. */
const mostParsed = 512 * 1024;

async function symbolsIn({ path, language, text }: FileToIndex) {
  if (!language || text.length > mostParsed) return undefined;
  const found = await doJob({ kind: 'symbols', path, language, text });
  return Array.isArray(found) ? found : undefined;
}

async function answerTo(job: IndexJob): Promise<IndexResults[IndexJob['op']]> {
  if (job.op === 'close') return close();
  store ??= new IndexStore(openIndexDatabase(file), symbolsIn);
  switch (job.op) {
    case 'files':
      return store.files();
    case 'counts':
      return store.counts(job.model);
    case 'bare':
      return store.bare(job.model, job.limit);
    case 'search':
      return store.search(job);
    case 'put':
      await store.put(job.files);
      return undefined;
    default:
      change(store, job);
      return undefined;
  }
}

function change(open: IndexStore, job: Extract<IndexJob, { op: 'touch' | 'remove' | 'clear' | 'embed' }>): void {
  switch (job.op) {
    case 'touch':
      open.touch(job.files);
      return;
    case 'remove':
      open.remove(job.paths);
      return;
    case 'clear':
      open.clear();
      return;
    case 'embed':
      open.embed(job.model, job.vectors);
      return;
  }
}

function close(): undefined {
  store?.close();
  store = undefined;
}

function failureOf(error: unknown): IndexFailure {
  const damaged = isDamage(error);
  if (damaged) {
    close();
    if (file !== undefined) dropIndexFile(file);
  }
  return { failure: error instanceof Error ? error.message : String(error), full: isFull(error), damaged };
}

port?.on('message', (job: IndexJob) => {
  answerTo(job).then(
    done => port.postMessage({ done }),
    error => port.postMessage(failureOf(error)),
  );
});
