import { join } from 'node:path';

/** A CLI of another vendor that the tests drive, pinned: its output is what they are about. */
export interface TestCli {
  /** Its executable. */
  program: string;
  npmPackage: string;
  version: string;
  /** Its optional packages are its platforms; otherwise they are not needed. */
  platforms?: boolean;
}

export const testClis: readonly TestCli[] = [
  { program: 'gemini', npmPackage: '@google/gemini-cli', version: '0.61.0' },
  { program: 'codex', npmPackage: '@openai/codex', version: '0.169.0', platforms: true },
];

/** 500 MB of programs that only tests start: no dependency of the product, and nothing that it is packed with. */
const cliCache = join('node_modules', '.cache', 'polylogue-clis');

/** Where the executable of a CLI is once it is installed. */
export function testCliPath({ npmPackage, version, program }: TestCli, cache = cliCache): string {
  return join(folderOf(npmPackage, version, cache), 'node_modules', '.bin', program);
}

function folderOf(npmPackage: string, version: string, cache: string): string {
  return join(cache, `${npmPackage.replace(/^@/, '').replace('/', '-')}-${version}`);
}

export interface CliMachine {
  exists(path: string): boolean;
  makeFolder(path: string): void;
  /** Moves a folder; what was there is gone. */
  move(from: string, to: string): void;
  /** Runs npm to its end; true when it succeeded. */
  npm(args: readonly string[]): boolean;
  tell(text: string): void;
}

/** Installs what is missing. Answers a sentence for each that is not there afterwards. */
export function provideClis(clis: readonly TestCli[], machine: CliMachine, cache = cliCache): string[] {
  return clis.flatMap(cli => {
    const path = testCliPath(cli, cache);
    if (machine.exists(path)) return [];
    const name = `${cli.npmPackage}@${cli.version}`;
    const folder = folderOf(cli.npmPackage, cli.version, cache);
    machine.tell(`installing what the tests need: ${name}`);
    const part = `${folder}.part`;
    machine.makeFolder(part);
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', '--loglevel=error'];
    // An install that was broken off must not be taken for a whole one.
    const whole = machine.npm([
      'install',
      '--prefix',
      part,
      ...options,
      ...(cli.platforms ? [] : ['--omit=optional']),
      name,
    ]);
    if (whole) machine.move(part, folder);
    return machine.exists(path) ? [] : [`The tests need ${name}: see that npm can install it, and run them again.`];
  });
}
