import { readdirSync, statSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Embedder } from '../src/core/ports.ts';
import { createSandbox } from '../src/workspace/sandbox.ts';
import { createSearchIndexes } from '../src/workspace/search-index/search-index.ts';
import { httpEmbedder } from '../test/support/http-embedder.ts';
import { startEmbeddings } from '../test/support/vendors/start-embeddings.ts';
import type { BenchFolder } from './measure/bench-folder.ts';
import { figure, type Table } from './measure/table.ts';
import { questions } from './recall/questions.ts';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const places = 10;

export interface Recall {
  /** Questions with an answer among the first ten places. */
  found: number;
  /** Mean of 1 by the place of the first answer. */
  reciprocalRank: number;
  missed: string[];
  files: number;
  chunks: number;
  megabytes: number;
  buildMs: number;
  /** With nothing changed. */
  lookMs: number;
  searchMs: number;
}

/** How often the search index finds the file that answers a question about this repository. */
export async function measureRecall(folder: string, embedder?: Embedder): Promise<Recall> {
  const clock = {
    now: Date.now,
    after(ms: number, run: () => void) {
      const timer = setTimeout(run, ms).unref();
      return () => clearTimeout(timer);
    },
  };
  const indexes = createSearchIndexes({
    folder,
    sandbox: createSandbox({ roots: [root], allowSecrets: false }),
    mask: async text => ({ text, found: {} }),
    clock,
    ...(embedder && { embedder }),
  });
  const { signal } = new AbortController();
  const timed = async <Result>(work: () => Promise<Result>) => {
    const started = performance.now();
    return { result: await work(), ms: performance.now() - started };
  };
  try {
    const index = await indexes.of(root);
    const built = await timed(() => index.refresh({ signal }));
    const looked = await timed(() => index.refresh({ signal }));
    const missed: string[] = [];
    let sum = 0;
    let searchMs = 0;
    for (const { question, answers } of questions) {
      const { result, ms } = await timed(() => index.search(question, places, signal));
      searchMs += ms;
      // The questions themselves stand in a file of this repository.
      const paths = result.map(({ path }) => relative(root, path)).filter(path => !path.startsWith('bench/recall'));
      const place = paths.findIndex(path => answers.includes(path));
      if (place === -1) missed.push(question);
      else sum += 1 / (place + 1);
    }
    const bytes = readdirSync(folder).reduce((all, name) => all + statSync(`${folder}/${name}`).size, 0);
    return {
      found: questions.length - missed.length,
      reciprocalRank: sum / questions.length,
      missed,
      files: built.result.files,
      chunks: built.result.chunks,
      megabytes: bytes / 1e6,
      buildMs: built.ms,
      lookMs: looked.ms,
      searchMs: searchMs / questions.length,
    };
  } finally {
    await indexes.close();
  }
}

export async function recall(folder: BenchFolder): Promise<Table> {
  const server = await startEmbeddings();
  try {
    const words = await measureRecall(folder.fresh('words'));
    const both = await measureRecall(folder.fresh('vectors'), httpEmbedder(server.url, 'fake-embedding'));
    const row = (name: string, one: Recall) => [
      name,
      `${one.found}/${questions.length}`,
      figure(one.reciprocalRank),
      figure(one.buildMs / 1_000, 1),
      figure(one.lookMs, 0),
      figure(one.searchMs, 1),
      figure(one.megabytes, 1),
    ];
    const missed = (name: string, one: Recall) => one.missed.map(question => `not found by ${name}: ${question}`);
    return {
      title: `recall: ${questions.length} questions about this repository, ${words.files} files in ${words.chunks} places`,
      columns: ['how', 'recall@10', 'MRR', 'build s', 'look again ms', 'search ms', 'MB'],
      rows: [row('BM25', words), row('BM25 and vectors (fake model)', both)],
      notes: [...missed('BM25', words), ...missed('both', both)],
    };
  } finally {
    await server.close();
  }
}
