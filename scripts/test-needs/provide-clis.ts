import { join } from 'node:path';

/** A CLI of another vendor that the tests drive, pinned: its output is what they are about. */
export interface TestCli {
  /** Its executable. */
  program: string;
  npmPackage: string;
  version: string;
  /** Its optional packages are its platforms; otherwise they are not needed. */
  platforms?: boolean;
  /** Its entry among the packages, for Node; absent: `binary`. */
  script?: string;
  /** Its program for this machine, where an install script would copy it: those are not run. Absent: npm's link to it. */
  binary?: string;
}

/** Other versions of Node, in which programs that use the library are run: what the package `node` installs on this machine. */
export const otherNodes = { 20: nodeCli('20.20.2'), 22: nodeCli('22.23.3') } as const;

/** The last TypeScript that resolves packages as Node 10 did. */
export const olderTypescript: TestCli = { program: 'tsc', npmPackage: 'typescript', version: '5.9.3' };

function nodeCli(version: string): TestCli {
  const name = process.platform === 'win32' ? 'node.exe' : 'node';
  const npmPackage = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  return { program: 'node', npmPackage, version, binary: join(npmPackage, 'bin', name) };
}

export const testClis: readonly TestCli[] = [
  { program: 'gemini', npmPackage: '@google/gemini-cli', version: '0.61.0' },
  { program: 'codex', npmPackage: '@openai/codex', version: '0.169.0', platforms: true },
];

/** 500 MB of programs that only tests start: no dependency of the product, and nothing that it is packed with. */
const cliCache = join('node_modules', '.cache', 'polylogue-clis');

/** Where what is started of a CLI is once it is installed. */
export function testCliPath(cli: TestCli, cache = cliCache): string {
  const { npmPackage, version, program, script, binary } = cli;
  return join(folderOf(npmPackage, version, cache), 'node_modules', script ?? binary ?? join('.bin', program));
}

function folderOf(npmPackage: string, version: string, cache: string): string {
  return join(cache, `${npmPackage.replace(/^@/, '').replace('/', '-')}-${version}`);
}

export interface CliMachine {
  exists(path: string): boolean;
  /** Makes an empty folder beside this one, for what is not whole yet; answers its path. */
  makePart(folder: string): string;
  /** Puts a folder into the place of another, or removes it where it was not finished. */
  finish(part: string, folder: string | undefined): void;
  /** Runs npm to its end, or to the end of its time; true when it succeeded. */
  npm(args: readonly string[]): boolean;
  tell(text: string): void;
}

const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', '--loglevel=error', '--fetch-retries=1'];

/** Installs what is missing, one after the other. Answers a sentence for each that is not there afterwards. */
export function provideClis(clis: readonly TestCli[], machine: CliMachine, cache = cliCache): string[] {
  return clis.flatMap(cli => {
    // A package whose program for this machine did not come with it is not there.
    const path = testCliPath(cli, cache);
    if (machine.exists(path)) return [];
    const name = `${cli.npmPackage}@${cli.version}`;
    machine.tell(`installing what the tests need: ${name}`);
    const why = install(cli, name, machine, folderOf(cli.npmPackage, cli.version, cache));
    if (why === undefined && machine.exists(path)) return [];
    return [`The tests need ${name}: ${why ?? 'see that npm can install it, and run them again.'}`];
  });
}

/** What kept it from being begun at all; undefined: npm tells itself what went wrong. */
function install(cli: TestCli, name: string, machine: CliMachine, folder: string): string | undefined {
  try {
    // An install that was broken off must not be taken for a whole one.
    const part = machine.makePart(folder);
    const platforms = cli.platforms ? [] : ['--omit=optional'];
    const whole = machine.npm(['install', '--prefix', part, ...options, ...platforms, name]);
    machine.finish(part, whole ? folder : undefined);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
