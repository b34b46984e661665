#!/usr/bin/env node
import { createRequire } from 'node:module';

// Nothing above this line may need a newer Node than the one that is to read the message.
const needed = 24;
if (Number(process.versions.node.split('.')[0]) < needed) {
  process.stderr.write(
    `Polylogue needs Node ${needed} or newer; this is ${process.versions.node} (${process.execPath}).\n` +
      'Install it from https://nodejs.org or with your version manager (nvm install 24), and start Polylogue with that node.\n',
  );
  process.exitCode = 1;
} else {
  const { runProgram } = import.meta.url.endsWith('.ts') ? await import('./cli/program.ts') : builtProgram();
  await runProgram(process.argv.slice(2));
}

function builtProgram(): typeof import('./cli/program.ts') {
  const require = createRequire(import.meta.url);
  const { loadCompiled, tuneMemory }: typeof import('./code-cache.ts') = require('./code-cache.cjs');
  tuneMemory();
  return loadCompiled(require.resolve('./program.cjs'));
}
