import { Command, Option } from 'commander';
import { version } from '../app/app.ts';
import { defaultText } from '../config/option-values.ts';
import type { OptionSpec, OptionType } from '../core/option.ts';
import { nearName, printableJson, printableText } from '../core/text.ts';
import { type CommandDefinition, commandGroups, type FlagSpec, type Invocation } from './command/command.ts';
import { allOptions } from './command/environment.ts';
import { commands } from './commands/index.gen.ts';
import { stdio } from './commands/stdio.ts';

const misusedExit = 2;
const wholeHelp = 'Run "polylogue --help" for a list of commands';

const examples = `Examples:
  polylogue init --client claude                         add Polylogue to Claude Code
  polylogue doctor                                       check the setup
  polylogue ask "Why is this slow?" --file src/query.ts  ask a model about a file

"polylogue COMMAND --help" shows flags and examples of a command, "polylogue help settings" the flags that every command takes.
Without a command, Polylogue serves MCP over stdio. Exit codes: 0 done, 1 failed, 2 invalid command line or configuration.`;

const settingsHelp = `These flags go with every command. Each has a variable and a name in config.json; docs/reference/options.md lists them and
all other settings.`;

const jsonFlag: FlagSpec = { name: 'json', doc: 'Print one JSON document' };

/** Runs one command; answers the exit code. */
export type RunCommand = (invocation: Invocation) => Promise<number>;

/** Reads the command line and runs what it asks for, the server where it names no command. */
export async function runCommandLine(argv: readonly string[], run: RunCommand): Promise<void> {
  const program = new Command('polylogue')
    .description('MCP server for second opinions from other models, with memory that persists')
    .version(version, '-v, --version')
    .configureOutput({ writeErr: text => void process.stderr.write(printableText(text)) })
    .configureHelp({
      visibleOptions: command => (command.parent ? [...command.options] : []),
      subcommandTerm: command => command.name(),
    })
    .commandsGroup('Setup:')
    .helpCommand('help [command]', 'Show the help of a command, or "help settings"')
    .addHelpText('after', ({ command }) => (command.parent ? '' : `\n${examples}`));
  refuseMisuse(program, argv, wholeHelp);
  for (const { spec } of allOptions()) addSetting(program, spec);
  const grouped = commands.toSorted((a, b) => commandGroups.indexOf(a.group) - commandGroups.indexOf(b.group));
  for (const definition of grouped) {
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
  const names = ['help', ...commands.map(({ name }) => name)];
  if (word === '' || word.startsWith('-') || names.includes(word)) return;
  const near = nearName(word, names);
  program.error(`error: unknown command '${word}'.${near ? `\n(Did you mean ${near}?)` : ''}`);
}

function addCommand(program: Command, definition: CommandDefinition, run: RunCommand): Command {
  const { name, group, summary, usage = '', flags = [] } = definition;
  const command = program
    .command(`${name} ${usage}`.trim(), { isDefault: definition === stdio })
    .helpGroup(`${group}:`);
  const own = definition === stdio ? flags : [...flags, jsonFlag];
  const named = own.map(spec => [spec.name, addFlag(command, spec)] as const);
  return command
    .description(summary)
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

function addSetting(program: Command, { flag, type, choices, doc }: OptionSpec): void {
  if (flag === undefined) return;
  const option = new Option(type === 'boolean' ? `--${flag}` : `--${flag} <value>`, doc);
  program.addOption(choices && type === 'string' ? option.choices(choices) : option);
}

/** Answers the name under which commander keeps the value. */
function addFlag(command: Command, { name, value, repeat, choices, doc }: FlagSpec): string {
  const option = new Option(value === undefined ? `--${name}` : `--${name} <${value}>`, doc);
  // `--no-token` is a flag of its own beside `--token`: whoever gives both is told so.
  option.negate = false;
  if (choices) option.choices(choices);
  if (repeat) option.argParser((text: string, before: unknown) => [...(Array.isArray(before) ? before : []), text]);
  command.addOption(option);
  return option.attributeName();
}
