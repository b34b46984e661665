import { loadConfig, tables } from '../app.ts';
import { readIfPresent } from '../config/settings-files.ts';
import { isAppError } from '../domain/error.ts';
import type { CommandDefinition } from './command.ts';
import { stdio } from './commands/stdio.ts';
import { realSurroundings } from './surroundings.ts';

const failedExit = 1;
const misusedExit = 2;

/** Runs what the command line asks for; without arguments, as hosts start it, it serves MCP on standard input and output. */
export async function runProgram(argv: readonly string[]): Promise<void> {
  if (argv.length === 0) {
    process.exitCode = await run(stdio, [], {});
    return;
  }
  // Not needed for the commonest start, which a host waits for.
  const { runCommandLine } = await import('./run-command-line.ts');
  await runCommandLine(argv, run);
}

async function run(
  definition: CommandDefinition,
  args: readonly string[],
  flags: Record<string, unknown>,
): Promise<number> {
  const around = realSurroundings();
  try {
    const { cwd, homeDir, platform } = around;
    const config = loadConfig({
      tables,
      env: process.env,
      argvFlags: flags,
      homeDir,
      platform,
      cwd,
      readFile: readIfPresent,
    });
    return await definition.run({ args, config, around, print: line => void process.stdout.write(`${line}\n`) });
  } catch (error) {
    if (!isAppError(error)) throw error;
    around.writeError(`polylogue: ${error.message}\n${error.details.next ? `${error.details.next}\n` : ''}`);
    return error.kind === 'config' || error.kind === 'input' ? misusedExit : failedExit;
  }
}
