import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createMask } from '../src/observability/secret-masking.ts';
import { createSandbox } from '../src/workspace/sandbox.ts';
import { createSearchIndexes, searchWaitMs } from '../src/workspace/search-index/search-index.ts';
import type { BenchFolder } from './measure/bench-folder.ts';
import { quantile } from './measure/statistics.ts';
import { figure, type Table } from './measure/table.ts';

const fileCount = 50_000;
const folderCount = 400;
const otherCallEveryMs = 5;

/** What the search index of a large project costs, and how long other calls wait meanwhile. */
export async function searchIndex(folder: BenchFolder): Promise<Table> {
  const root = folder.fresh('project');
  const { bytes, name, words } = writeProject(root);
  const sandbox = createSandbox({ roots: [root], allowSecrets: false });
  const { mask } = createMask({ secret: 'pepper', keys: [] });
  const clock = {
    now: Date.now,
    after(ms: number, run: () => void) {
      const timer = setTimeout(run, ms).unref();
      return () => clearTimeout(timer);
    },
  };
  const indexes = createSearchIndexes({ folder: folder.fresh('index'), sandbox, mask, clock });
  const { signal } = new AbortController();
  const index = await indexes.of(root);

  const cpuBefore = process.cpuUsage();
  const started = performance.now();
  await index.refresh({ signal, waitMs: searchWaitMs });
  const early = await index.search(words, 10, signal);
  const firstAnswerMs = performance.now() - started;
  const { files, skipped } = await index.refresh({ signal });
  const buildMs = performance.now() - started;
  const cpu = process.cpuUsage(cpuBefore);
  // Watching takes processor time, so that is done with a second build.
  const others = timeOtherCalls(async () => void (await sandbox.locate(root)));
  await index.refresh({ signal, rebuild: true });
  const { delayMs, callMs } = await others.end();

  const timed = async (work: () => Promise<unknown>) => {
    const from = performance.now();
    await work();
    return performance.now() - from;
  };
  const looks = [];
  for (let round = 0; round < 5; round++) looks.push(await timed(() => index.refresh({ signal })));
  const searches = [];
  for (let round = 0; round < 5; round++)
    searches.push(await timed(() => index.search(`${words} ${name}`, 10, signal)));
  const [found] = await index.search(name, 10, signal);
  await indexes.close();

  if (!found?.text.includes(name)) throw new Error(`${name} stands in one file, and the search did not find it`);
  const row = (what: string, value: number, unit: string, line?: number) => [
    what,
    `${figure(value, value < 10 ? 2 : 0)} ${unit}`,
    line === undefined ? '' : `≤ ${line} ${unit}`,
    line === undefined ? '' : value <= line ? 'yes' : 'no',
  ];
  return {
    title: `index: ${files} files of ${figure(bytes / fileCount, 0)} bytes in ${folderCount} folders`,
    columns: ['what', 'measured', 'line', 'kept'],
    rows: [
      row('processor time of the build, all threads', (cpu.user + cpu.system) / 1e6, 's', 8),
      row('time of the build', buildMs / 1e3, 's'),
      row('first answer of a search asked at once', firstAnswerMs / 1e3, 's', 2),
      ['places in it', String(early.length), '≥ 1', early.length > 0 ? 'yes' : 'no'],
      row('look again with nothing changed, median of 5', quantile(looks, 0.5) / 1e3, 's', 0.3),
      row('the first look again', (looks[0] ?? Number.NaN) / 1e3, 's', 0.3),
      row('a search in the whole index, median of 5', quantile(searches, 0.5), 'ms'),
      row('event loop delay of the main thread, p99', delayMs, 'ms', 50),
      row('another call meanwhile, p99', callMs, 'ms', 50),
    ],
    notes: skipped.slice(0, 3).map(({ path, reason }) => `left out: ${path}: ${reason}`),
  };
}

/** Asks for something small again and again, and watches the event loop, until `end`. */
function timeOtherCalls(call: () => Promise<void>) {
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  const took: number[] = [];
  let ended = false;
  const all = (async () => {
    while (!ended) {
      const due = performance.now() + otherCallEveryMs;
      await new Promise(resolve => setTimeout(resolve, otherCallEveryMs));
      await call();
      took.push(performance.now() - due);
    }
  })();
  return {
    async end() {
      ended = true;
      await all;
      delays.disable();
      return { delayMs: delays.percentile(99) / 1e6, callMs: quantile(took, 0.99) };
    },
  };
}

const syllables =
  'ba be co da de fi ga go ha in ka la li ma mo na ne or pa po ra re ri sa se so ta te ti to un va ve'.split(' ');

/** Small source files made of words and names, the same each time; a few words are in most of them, most words in few. */
function writeProject(root: string) {
  let seed = 1;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (seed >> 8) % below;
  };
  const pick = <One>(from: readonly One[], at: number): One => from[at % from.length] ?? from[0]!;
  const vocabulary = Array.from({ length: 12_000 }, () =>
    Array.from({ length: 2 + random(3) }, () => pick(syllables, random(syllables.length))).join(''),
  );
  vocabulary.splice(0, 12, ...'value index token result error key secret path name user request options'.split(' '));
  const word = () => pick(vocabulary, Math.min(random(12_000), random(12_000), random(12_000)));
  const capital = (text: string) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
  const name = () => `${word()}${capital(word())}${random(2) === 0 ? '' : capital(word())}`;
  const words = (count: number) => Array.from({ length: count }, word).join(' ');
  const lines = (count: number) =>
    Array.from({ length: count }, () => `  const ${word()} = ${name()}(${word()}.${word()}, '${words(2)}');\n`).join(
      '',
    );

  mkdirSync(join(root, '.git', 'info'), { recursive: true });
  writeFileSync(join(root, '.git', 'info', 'exclude'), '*.swp\n');
  writeFileSync(join(root, '.gitignore'), 'node_modules/\ndist/\n/coverage\n*.log\n*.tmp\n!keep.log\n');
  const folders = Array.from({ length: folderCount }, (_, n) => join(root, `area${n % 20}`, `part${n}`));
  for (const folder of folders) mkdirSync(folder, { recursive: true });
  let bytes = 0;
  const rare = 'calibrateUnicorn';
  for (let n = 0; n < fileCount; n++) {
    const functions = Array.from(
      { length: 2 + random(3) },
      (_, at) =>
        `/** ${capital(words(12))}. */\nexport function ${n === fileCount / 2 && at === 0 ? rare : name()}(${word()}: string, ${word()}: number) {\n${lines(4 + random(6))}  return ${word()};\n}\n`,
    );
    const text = `import { ${name()} } from './${word()}.ts';\n\n${functions.join('\n')}`;
    bytes += text.length;
    writeFileSync(join(pick(folders, n), `${word()}-${n}.ts`), text);
  }
  return { bytes, name: rare, words: words(4) };
}
