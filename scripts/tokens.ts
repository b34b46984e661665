import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { listTools } from './tokens/list-tools.ts';
import { ceilings, isOver, measureTools, type Size, standardTools } from './tokens/measure-tools.ts';

const { values, positionals } = parseArgs({ options: { check: { type: 'boolean' } }, allowPositionals: true });
const program = positionals[0] ?? 'dist/main.js';

if (!existsSync(program)) {
  console.error(`${program} is not there: run "npm run build" first`);
  process.exit(1);
}

const sizes = measureTools(await listTools(program));
const found = standardTools.length - sizes.missing.length;

function row(name: string, { bytes, tokens }: Size): void {
  console.log(name.padEnd(36) + String(bytes).padStart(8) + String(tokens).padStart(8));
}

console.log(`${'tool'.padEnd(36)}${'bytes'.padStart(8)}${'tokens'.padStart(8)}`);
for (const tool of sizes.tools) row(tool.name, tool);
row(`all ${sizes.tools.length} listed`, sizes.all);
row(`core + code, ${found} of ${standardTools.length}`, sizes.standard);
if (sizes.missing.length > 0) row(`core + code, extrapolated to ${standardTools.length}`, sizes.extrapolated);
row('core + code, ceiling', ceilings);

// The extrapolation warns only: the tools that came first may be the large ones.
if (found > 0 && sizes.missing.length > 0 && isOver(sizes.extrapolated)) {
  console.log(
    'At this rate core + code will cost more than the ceiling: shorten descriptions, advertise fewer fields.',
  );
}
if (values.check && found === 0) {
  console.error(`${program} lists no tool of core or code: there is nothing to hold the ceiling against`);
  process.exit(1);
}
if (values.check && isOver(sizes.standard)) {
  console.error('core + code cost more than the ceiling: shorten descriptions, advertise fewer fields');
  process.exit(1);
}
