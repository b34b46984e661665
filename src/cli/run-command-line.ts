import { Command, Option } from 'commander';
import { tables, version } from '../app.ts';
import { flagHelp } from '../config/describe.ts';
import type { OptionSpec } from '../domain/option.ts';
import type { CommandDefinition } from './command.ts';
import { commands } from './commands/index.gen.ts';
import { stdio } from './commands/stdio.ts';

const misusedExit = 2;

const examples = `Examples:
  polylogue                       serve MCP on standard input and output, as hosts start it
  polylogue --offline             the same with built-in models, without any key
  OPENAI_API_KEY=… polylogue --default-model gpt-5 --roots ~/project

Every setting has a name in the environment too; docs/reference/options.md lists them.
Exit codes: 0 done, 1 something failed, 2 the command line or the configuration is wrong.`;

/** Runs a command with what follows its name and the flags by name; answers the exit code. */
export type RunCommand = (
  definition: CommandDefinition,
  args: readonly string[],
  flags: Record<string, unknown>,
) => Promise<number>;

/** Reads the command line and runs what it asks for, the server where it names no command. */
export async function runCommandLine(argv: readonly string[], run: RunCommand): Promise<void> {
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
    const command = program.command(`${name} ${usage}`.trim(), { isDefault: definition === stdio });
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
