/** Changes critical modules in one place at a time, and fails when their tests notice fewer than 90% of the changes. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import accepted from './mutate/accepted.json' with { type: 'json' };
import { mutatedModules } from './mutate/modules.ts';
import { instrument } from './mutate/mutants.ts';
import {
  type Figures,
  header,
  killedShare,
  leastKilled,
  nameOf,
  type PlacedMutant,
  row,
  survivors,
  type TriedMutant,
} from './mutate/report.ts';
import { runMutants } from './mutate/session.ts';
import { refusedByTypes } from './mutate/types.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    file: { type: 'string' },
    again: { type: 'string' },
  },
});
const names = positionals.length > 0 ? positionals : Object.keys(mutatedModules);
const unknown = names.find(name => !Object.hasOwn(mutatedModules, name));
const sample = values.sample === undefined ? Number.POSITIVE_INFINITY : Number(values.sample);
if (unknown !== undefined || !(sample > 0)) {
  console.error(
    'Usage: npm run mutate -- [module …] [--sample number] [--seed number] [--file part of a path] [--again earlier output]',
  );
  console.error(`Modules: ${Object.keys(mutatedModules).join(', ')}`);
  process.exit(2);
}

/** Picks mutants by a seed and by what each changes, so that a sample stays the same while other code changes. */
function pick(mutants: readonly PlacedMutant[]): PlacedMutant[] {
  return mutants
    .map(mutant => ({
      mutant,
      rank: hash('sha256', [values.seed, mutant.file, mutant.text, mutant.change].join('\n')),
    }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
    .slice(0, sample)
    .map(({ mutant }) => mutant);
}

/** Survivors of an earlier run, to be tried alone. */
const again =
  values.again === undefined ? undefined : new Set(readFileSync(values.again, 'utf8').split('\n').map(unplaced));

/** Lines move. */
function unplaced(name: string): string {
  return name.replace(/:\d+ /, ':').replace(/ {2}\(reached by no test\)$/, '');
}

async function tryModule(name: string): Promise<Record<string, Figures>> {
  const { files = [], tests = [] } = mutatedModules[name] ?? {};
  const all: PlacedMutant[] = [];
  const code = new Map<string, string>();
  const sources = new Map<string, string>();
  for (const file of files.filter(each => each.includes(values.file ?? ''))) {
    const source = readFileSync(join(root, file), 'utf8');
    const made = instrument(file, source, all.length + 1);
    sources.set(file, source);
    code.set(join(root, file), made.code);
    all.push(...made.mutants.map(mutant => ({ ...mutant, file })));
  }
  const wanted = again ? all.filter(mutant => again.has(unplaced(nameOf(mutant)))) : all;
  const sampled = pick(wanted);
  const refused = refusedByTypes(root, sources, sampled);
  const chosen = all.flatMap((mutant, index) => (sampled.includes(mutant) && !refused.has(mutant) ? [index + 1] : []));
  const figures = Object.fromEntries(
    [...sources.keys()].map(file => [
      file,
      {
        refused: [...refused].filter(each => each.file === file).length,
        tried: [] as TriedMutant[],
        untried: all.filter(each => each.file === file && !sampled.includes(each)),
      },
    ]),
  );
  let tried = 0;
  await runMutants({
    root,
    code,
    tests,
    mutants: chosen,
    size: all.length + 1,
    onOutcome(id, outcome) {
      const mutant = all[id - 1];
      if (mutant !== undefined) figures[mutant.file]?.tried.push({ ...mutant, outcome });
      tried += 1;
      if (process.stderr.isTTY) process.stderr.write(`\r${name}: ${tried} of ${chosen.length}`);
    },
  });
  if (sampled.length < all.length && !again)
    console.log(`${name}: a sample of ${sampled.length} of ${all.length} mutants, by the seed ${values.seed}`);
  return figures;
}

const together = (parts: readonly Figures[]): Figures => ({
  refused: parts.reduce((sum, { refused }) => sum + refused, 0),
  tried: parts.flatMap(({ tried }) => tried),
  untried: parts.flatMap(({ untried }) => untried),
});

const started = performance.now();
const modules: Figures[] = [];
console.log(header);
for (const name of names) {
  const files = await tryModule(name);
  for (const [file, figures] of Object.entries(files)) console.log(row(`  ${file}`, figures, accepted));
  const module = together(Object.values(files));
  console.log(row(name, module, accepted));
  modules.push(module);
}
const all = together(modules);
console.log(row('all', all, accepted));
console.log(`${((performance.now() - started) / 1000).toFixed(0)} s`);
const { open, stale } = survivors(all, accepted);
const isBelow = modules.some(({ tried }) => killedShare(tried, accepted) < leastKilled);
if (open.length > 0) console.log(`\nSurvivors without a reason in scripts/mutate/accepted.json:\n${open.join('\n')}`);
if (stale.length > 0)
  console.log(`\nReasons in scripts/mutate/accepted.json for what is not there or is killed:\n${stale.join('\n')}`);
if (isBelow) console.log(`\nFewer than ${leastKilled * 100}% of the mutants of a module were killed.`);
process.exit(isBelow || stale.length > 0 ? 1 : 0);
