import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CliMachine, provideClis, type TestCli, testClis } from './test-needs/provide-clis.ts';

/** Other vendors' CLIs for the tests, into a cache beside the packages. */
export function installTestClis(clis: readonly TestCli[] = testClis, cache?: string): string[] {
  const machine: CliMachine = {
    exists: existsSync,
    makeFolder(path) {
      rmSync(path, { recursive: true, force: true });
      mkdirSync(path, { recursive: true });
      // Without one, npm would install into the package above.
      writeFileSync(join(path, 'package.json'), '{"private":true}\n');
    },
    move(from, to) {
      rmSync(to, { recursive: true, force: true });
      renameSync(from, to);
    },
    npm: args => spawnSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'] }).status === 0,
    tell: text => console.log(text),
  };
  return provideClis(clis, machine, cache);
}

if (import.meta.main) {
  const problems = installTestClis();
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exit(1);
}
