import { Command, Option } from 'commander';
import { loadConfig, tables, version } from '../app.ts';
import { flagHelp } from '../config/describe.ts';
import { readIfPresent } from '../config/settings-files.ts';
import { isAppError } from '../domain/error.ts';
import type { OptionSpec } from '../domain/option.ts';
import type { CommandDefinition } from './command.ts';
import { commands } from './commands/index.gen.ts';
import { realSurroundings } from './surroundings.ts';

const failedExit = 1;
const misusedExit = 2;

const defaultCommand = 'stdio';

const examples = `Examples:
  polylogue                       serve MCP on standard input and output, as hosts start it
  polylogue --offline             the same with built-in models, without any key
  OPENAI_API_KEY=… polylogue --default-model gpt-5 --roots ~/project

Every setting has a name in the environment too; docs/reference/options.md lists them.
Exit codes: 0 done, 1 something failed, 2 the command line or the configuration is wrong.`;

/** Reads the command line and runs what it asks for; without a command it serves MCP on standard input and output. */
export async function runProgram(argv: readonly string[]): Promise<void> {
  const program = new Command('polylogue')
    .description('An MCP server that gives a coding agent a team of models and a memory that lasts.')
    .version(version, '-v, --version')
    .showHelpAfterError('(polylogue --help shows what there is)')
    .exitOverride(error => process.exit(error.exitCode === 0 ? 0 : misusedExit))
    .configureHelp({ visibleOptions: () => [] })
    .addHelpText('after', () => `\n${flagHelp(allOptions())}\n${examples}`);
  for (const spec of Object.values(allOptions())) addFlag(program, spec);
  for (const definition of commands) {
    const { name, summary, usage } = definition;
    const command = program.command(`${name} ${usage}`.trim(), { isDefault: name === defaultCommand });
    command
      .description(summary)
      .allowExcessArguments(false)
      .action(async () => {
        process.exitCode = await run(definition, command.args, program.opts());
      });
  }
  await program.parseAsync([...argv], { from: 'user' });
}

function allOptions(): Record<string, OptionSpec> {
  return Object.assign({}, ...Object.values(tables));
}

function addFlag(program: Command, { flag, type, choices, doc }: OptionSpec): void {
  if (flag === undefined) return;
  const option = new Option(type === 'boolean' ? `--${flag}` : `--${flag} <value>`, doc);
  program.addOption(choices && type === 'string' ? option.choices(choices) : option);
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
