/** Breaks the product on purpose: `npm run torture -- --help`. */
import { printable } from '../bench/measure/table.ts';
import { type PartName, readArguments, type TortureArguments } from './torture/arguments.ts';
import type { Part } from './torture/part.ts';

const parts: Record<PartName, () => Promise<Part>> = {
  kills: async () => (await import('./torture/kills.ts')).kills,
  calls: async () => (await import('./torture/calls.ts')).calls,
  power: async () => (await import('./torture/power/power.ts')).power,
  damage: async () => (await import('./torture/damage.ts')).damage,
  floods: async () => (await import('./torture/floods.ts')).floods,
  soak: async () => (await import('./torture/soak/soak.ts')).soak,
};

/** Lines of what was broken that are printed of each part. */
const shown = 20;

async function run(given: TortureArguments): Promise<number> {
  if ('help' in given) {
    process.stdout.write(given.help);
    return 0;
  }
  let broken = 0;
  for (const name of given.parts) {
    const part = await parts[name]();
    const table = await part(given.options);
    const failed = table.failed ?? [];
    const lines = failed.slice(0, shown).map(what => `  FAILED ${what}`);
    if (failed.length > shown) lines.push(`  FAILED ${failed.length - shown} more`);
    process.stdout.write(`${[printable(table), ...lines].join('\n')}\n\n`);
    broken += failed.length;
  }
  process.stdout.write(broken === 0 ? 'All promises held.\n' : `${broken} promises were broken.\n`);
  return broken === 0 ? 0 : 1;
}

function read(): TortureArguments | undefined {
  try {
    return readArguments(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\nSee npm run torture -- --help.\n`);
    return undefined;
  }
}

const given = read();
process.exitCode = given ? await run(given) : 2;
