#!/usr/bin/env node
import module from 'node:module';
import { setFlagsFromString } from 'node:v8';

// Nothing above this line may need a newer Node than the one that is to read the message.
const needed = 24;
/** By then all that a first call needs is loaded. */
const cacheAfterMs = 3_000;
if (Number(process.versions.node.split('.')[0]) < needed) {
  process.stderr.write(
    `Polylogue needs Node ${needed} or newer; this is ${process.versions.node} (${process.execPath}).\n` +
      'Install it from https://nodejs.org or with your version manager (nvm install 24), and start Polylogue with that node.\n',
  );
  process.exitCode = 1;
} else {
  module.enableCompileCache?.();
  // By V8's own measure the garbage of a server takes several times the memory of what is in use. Not during the start,
  // which has more to collect than it has time for.
  setTimeout(() => {
    setFlagsFromString('--semi-space-growth-factor=1');
    setFlagsFromString('--heap-growing-percent=40');
  }, 1_000).unref();
  // Hosts often end a server the hard way: the cache is not left to the end of the process.
  setTimeout(() => module.flushCompileCache?.(), cacheAfterMs).unref();
  const { runProgram } = await import('./cli/program.ts');
  await runProgram(process.argv.slice(2));
}
