import { cpus, platform, release } from 'node:os';
import { builds } from './builds.ts';
import { consensus } from './consensus.ts';
import { daemon } from './daemon.ts';
import { floodsOf } from './floods.ts';
import { floor } from './floor.ts';
import { gateways } from './gateways.ts';
import { masking } from './masking.ts';
import { openBenchFolder } from './measure/bench-folder.ts';
import { printable } from './measure/table.ts';
import { overhead } from './overhead.ts';
import { parallel } from './parallel.ts';
import { recall } from './recall.ts';
import { searchIndex } from './search-index.ts';
import { start } from './start.ts';
import { streams } from './streams.ts';
import { threads } from './threads.ts';
import { tokensEstimate } from './tokens-estimate.ts';
import { turns } from './turns.ts';

const parts = {
  floor,
  start,
  overhead,
  parallel,
  consensus,
  threads,
  turns,
  'tokens-estimate': tokensEstimate,
  masking,
  recall,
  index: searchIndex,
  daemon,
  streams,
  floods: floodsOf,
  gateways,
  builds,
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter(name => !Object.hasOwn(parts, name));
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(', ')}; there are ${Object.keys(parts).join(', ')}.`);
  process.exit(2);
}

const { node, sqlite } = process.versions;
console.log(`node ${node}, SQLite ${sqlite}, ${platform()} ${release()}, ${cpus().length} cores`);
console.log('Medians over rounds in which all contenders take turns; ratios are taken inside of a round.');
const folder = openBenchFolder();
try {
  for (const [name, part] of Object.entries(parts)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const table = await part(folder);
    if (table) console.log(`\n${printable(table)}`);
    for (const line of table?.failed ?? []) console.error(`${name}: ${line}`);
    if (table?.failed?.length) process.exitCode = 1;
    else if (wanted.length > 0) console.error('Set BENCH_BASELINE to another built checkout.');
  }
} catch (error) {
  console.error(error);
  // What the part left open, servers above all, would keep this process alive.
  process.exitCode = 1;
  setImmediate(() => process.exit());
} finally {
  folder.remove();
}
