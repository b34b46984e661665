import { Command, InvalidArgumentError, Option } from 'commander';
import { defaultText } from '../config/option-values.ts';
import type { OptionSpec, OptionType } from '../core/option.ts';
import { didYouMean, printableJson, printableText } from '../core/text.ts';
import { version } from '../core/version.ts';
import type { CommandDefinition, FlagSpec, Invocation } from './command/command.ts';
import { commandGroups, misusedExit } from './command/command.ts';
import { allOptions } from './command/environment.ts';
import { commands } from './commands/index.gen.ts';
import { stdio } from './commands/stdio.ts';

const wholeHelp = 'Run "polylogue --help" for a list of commands';

const summary = 'MCP server for second opinions from other models, with memory that persists';

/** All commands by group, on one screen. */
function overview(): string {
  const rows = commandGroups.flatMap(group =>
    commands
      .filter(command => command.group === group)
      .map(({ name, summary: does }, at) => `${(at === 0 ? group : '').padEnd(9)}${name.padEnd(12)}${does}`),
  );
  return `Usage: polylogue [command] [flags]

${summary}.
Without a command, it serves MCP over stdio.

${rows.join('\n')}

  polylogue init --client claude        Add Polylogue to Claude Code
  polylogue doctor                      Check the setup
  polylogue ask "Why?" --file src/a.ts  Ask a model about a file

"polylogue COMMAND --help" shows flags and examples; "polylogue help settings"
lists the flags of every command. Exit codes: 0 done, 1 failed, 2 invalid input.
`;
}

const settingsHelp = `These flags go with every command. Each has a variable and a name in config.json; docs/reference/options.md lists them and
all other settings.`;

const jsonFlag: FlagSpec = { name: 'json', doc: 'Print one JSON document' };

/** Runs one command; answers the exit code. */
export type RunCommand = (invocation: Invocation) => Promise<number>;

/** Reads the command line and runs what it asks for, the server where it names no command. */
export async function runCommandLine(argv: readonly string[], run: RunCommand): Promise<void> {
  const program = new Command('polylogue')
    .description(summary)
    .version(version, '-v, --version')
    .configureOutput({ writeErr: text => void process.stderr.write(printableText(text)) })
    .configureHelp({ visibleOptions: command => [...command.options] })
    .helpCommand('help [command]', 'Show the help of a command, or "help settings"');
  program.helpInformation = overview;
  refuseMisuse(program, argv, wholeHelp);
  for (const { spec } of allOptions()) addSetting(program, spec);
  for (const definition of commands) {
    const command = addCommand(program, definition, run);
    // Who wrote no command at all has never heard of the one that is run then.
    const isUnnamed = definition === stdio;
    refuseMisuse(command, argv, isUnnamed ? wholeHelp : `Run "polylogue ${definition.name} --help" for usage`);
  }
  if (argv[0] === 'help' && argv[1] === 'settings') {
    process.stdout.write(`${settingsHelp}\n\n${flagHelp(allOptions().map(({ spec }) => spec))}`);
    return;
  }
  refuseUnknown(program, argv);
  await program.parseAsync([...argv], { from: 'user' });
}

/** Ends at a misused command line with what helps: commander tells people on stderr, programs read it from standard output. */
function refuseMisuse(command: Command, argv: readonly string[], help: string): void {
  command.showHelpAfterError(`(${help})`).exitOverride(({ exitCode, message }) => {
    if (exitCode === 0) return process.exit(0);
    if (argv.includes('--json')) {
      const text = message.replace(/^error: /, '');
      const error = { code: 'INVALID_INPUT_FORMAT', class: 'validation', message: text, next: `${help}.` };
      process.stdout.write(`${printableJson(JSON.stringify({ status: 'error', error }, null, 2))}\n`);
    }
    return process.exit(misusedExit);
  });
}

/** A word that is no command would else be taken for an argument of the one that is run without a word. */
function refuseUnknown(program: Command, [first = '', second = '']: readonly string[]): void {
  const word = first === 'help' ? second : first;
  const names = [first === 'help' ? 'settings' : 'help', ...commands.map(({ name }) => name)];
  if (word === '' || word.startsWith('-') || names.includes(word)) return;
  program.error(`error: unknown command '${word}'. ${didYouMean(word, names)}`.trim());
}

function addCommand(program: Command, definition: CommandDefinition, run: RunCommand): Command {
  const { name, summary: does, usage = '', flags = [] } = definition;
  const command = program.command(`${name} ${usage}`.trim(), { isDefault: definition === stdio });
  const own = definition === stdio ? flags : [...flags, jsonFlag];
  const named = own.map(spec => [spec.name, addFlag(command, spec)] as const);
  return command
    .description(does)
    .allowExcessArguments(false)
    .addHelpText('after', `\n${exampleHelp(definition)}\nThe flags of "polylogue help settings" also apply.`)
    .action(async () => {
      const flagValues = Object.fromEntries(named.map(([flag, key]) => [flag, command.getOptionValue(key)]));
      const settings = program.opts();
      process.exitCode = await run({ definition, args: command.args, flags: flagValues, settings, commands });
    });
}

function exampleHelp({ examples: lines }: CommandDefinition): string {
  const width = Math.max(...lines.map(([line]) => line.length));
  return ['Examples:', ...lines.map(([line, does]) => `  ${line.padEnd(width)}  ${does}`)].join('\n');
}

/** The flags that set options and what they do, one a line, by group. */
export function flagHelp(specs: readonly OptionSpec[]): string {
  const flagged = specs.filter(({ flag }) => flag !== undefined);
  const sections = [...Map.groupBy(flagged, ({ group }) => group)].map(([group, ofGroup]) =>
    [`${group}:`, ...ofGroup.map(flagEntry)].join('\n'),
  );
  return `${sections.join('\n\n')}\n`;
}

const placeholders: Readonly<Record<OptionType, string>> = {
  boolean: '',
  number: ' <number>',
  list: ' <a,b>',
  paths: ' <paths>',
  path: ' <path>',
  url: ' <address>',
  string: ' <text>',
};

function flagEntry(spec: OptionSpec): string {
  const { flag, type, choices, env, doc } = spec;
  const value = type === 'boolean' ? undefined : defaultText(spec);
  const facts = [choices?.join(', '), value && `default: ${value}`, env[0]].filter(Boolean);
  const placeholder = type === 'string' && choices ? ' <word>' : placeholders[type];
  return `  ${`--${flag}${placeholder}`.padEnd(26)} ${doc} (${facts.join('; ')})`;
}

/** Takes the allowed words alone, and refuses another one with the word that was probably meant. */
const withChoices = (option: Option, choices: readonly string[]): Option =>
  option.choices(choices).argParser((word: string) => {
    if (choices.includes(word)) return word;
    throw new InvalidArgumentError(`${didYouMean(word, choices)}Allowed choices are ${choices.join(', ')}.`);
  });

function addSetting(program: Command, { flag, type, choices, doc }: OptionSpec): void {
  if (flag === undefined) return;
  const option = new Option(type === 'boolean' ? `--${flag}` : `--${flag} <value>`, doc);
  program.addOption(choices && type === 'string' ? withChoices(option, choices) : option);
}

/** Answers the name under which commander keeps the value. */
function addFlag(command: Command, { name, value, repeat, choices, doc }: FlagSpec): string {
  const option = new Option(value === undefined ? `--${name}` : `--${name} <${value}>`, doc);
  // `--no-token` is a flag of its own beside `--token`: whoever gives both is told so.
  option.negate = false;
  if (choices) withChoices(option, choices);
  if (repeat) option.argParser((text: string, before: unknown) => [...(Array.isArray(before) ? before : []), text]);
  command.addOption(option);
  return option.attributeName();
}
