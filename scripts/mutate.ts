/** Changes critical modules in one place at a time, and fails when their tests notice fewer than 90% of the changes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import accepted from './mutate/accepted.json' with { type: 'json' };
import { mutatedModules } from './mutate/modules.ts';
import { instrument, type Mutant } from './mutate/mutants.ts';
import { header, killedShare, leastKilled, row, survivors, type TriedMutant } from './mutate/report.ts';
import { runMutants } from './mutate/session.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { sample: { type: 'string' }, seed: { type: 'string', default: '1' }, file: { type: 'string' } },
});
const names = positionals.length > 0 ? positionals : Object.keys(mutatedModules);
const unknown = names.find(name => !Object.hasOwn(mutatedModules, name));
const sample = values.sample === undefined ? Number.POSITIVE_INFINITY : Number(values.sample);
if (unknown !== undefined || !(sample > 0)) {
  console.error('Usage: npm run mutate -- [module …] [--sample number] [--seed number] [--file part of a path]');
  console.error(`Modules: ${Object.keys(mutatedModules).join(', ')}`);
  process.exit(2);
}

/** Picks mutants by a seed, so that a sample can be tried again. */
function pick<Item>(items: readonly Item[]): Item[] {
  let state = Number(values.seed) >>> 0;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state;
  };
  return items
    .map(item => ({ item, rank: random() }))
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, sample)
    .map(({ item }) => item);
}

async function tryModule(name: string): Promise<TriedMutant[]> {
  const { files = [], tests = [] } = mutatedModules[name] ?? {};
  const all: (Mutant & { file: string })[] = [];
  const code = new Map<string, string>();
  for (const file of files.filter(each => each.includes(values.file ?? ''))) {
    const path = join(root, file);
    const made = instrument(path, readFileSync(path, 'utf8'), all.length + 1);
    code.set(path, made.code);
    all.push(...made.mutants.map(mutant => ({ ...mutant, file })));
  }
  const chosen = pick(all.map((_, index) => index + 1)).toSorted((a, b) => a - b);
  const tried: TriedMutant[] = [];
  await runMutants({
    root,
    code,
    tests,
    mutants: chosen,
    size: all.length + 1,
    onOutcome(id, outcome) {
      const mutant = all[id - 1];
      if (mutant !== undefined) tried.push({ ...mutant, outcome });
      if (process.stderr.isTTY) process.stderr.write(`\r${name}: ${tried.length} of ${chosen.length}`);
    },
  });
  return tried;
}

const started = performance.now();
const total: TriedMutant[] = [];
const open: string[] = [];
let isBelow = false;
console.log(header);
for (const name of names) {
  const tried = await tryModule(name);
  const found = survivors(tried, accepted);
  for (const file of new Set(tried.map(mutant => mutant.file))) {
    console.log(
      row(
        `  ${file}`,
        tried.filter(mutant => mutant.file === file),
      ),
    );
  }
  console.log(row(name, tried));
  isBelow ||= killedShare(tried) < leastKilled;
  open.push(...found.open);
  total.push(...tried);
}
console.log(row('all', total));
console.log(`${((performance.now() - started) / 1000).toFixed(0)} s`);
if (open.length > 0) console.log(`\nSurvivors without a reason in scripts/mutate/accepted.json:\n${open.join('\n')}`);
if (isBelow) console.log(`\nFewer than ${leastKilled * 100}% of the mutants of a module were killed.`);
process.exit(open.length > 0 || isBelow ? 1 : 0);
