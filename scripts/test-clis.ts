import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type CliMachine, provideClis, type TestCli, testClis } from './test-needs/provide-clis.ts';

export interface InstallLimits {
  /** Milliseconds for one package. */
  each: number;
  /** For all of them; what is not there then is not installed. */
  all: number;
}

/** Other vendors' CLIs for the tests, into a cache beside the packages. */
export function installTestClis(clis: readonly TestCli[] = testClis, cache?: string, limits?: InstallLimits): string[] {
  const since = Date.now();
  const machine: CliMachine = {
    exists: existsSync,
    makePart(folder) {
      mkdirSync(dirname(folder), { recursive: true });
      const start = `${basename(folder)}.part-`;
      for (const name of readdirSync(dirname(folder)).filter(each => each.startsWith(start))) {
        const pid = Number(name.slice(start.length));
        if (pid === process.pid || !isRunning(pid)) rmSync(join(dirname(folder), name), { recursive: true });
      }
      // Two clones that install into one cache do not meet in it.
      const part = join(dirname(folder), `${start}${process.pid}`);
      mkdirSync(part);
      // Without one, npm would install into the package above.
      writeFileSync(join(part, 'package.json'), '{"private":true}\n');
      return part;
    },
    finish(part, folder) {
      if (folder === undefined) return rmSync(part, { recursive: true, force: true });
      rmSync(folder, { recursive: true, force: true });
      renameSync(part, folder);
    },
    npm(args) {
      const timeout = limits && Math.min(limits.each, limits.all - (Date.now() - since));
      if (timeout !== undefined && timeout <= 0) return false;
      return (
        spawnSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'], timeout, killSignal: 'SIGKILL' }).status === 0
      );
    },
    tell: text => console.log(text),
  };
  return provideClis(clis, machine, cache);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

if (import.meta.main) {
  const problems = installTestClis();
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exit(1);
}
