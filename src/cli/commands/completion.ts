import { type CommandDefinition, defineCommand, type FlagSpec, noneOf } from '../command/command.ts';
import { allOptions } from '../command/environment.ts';

type Flag = Pick<FlagSpec, 'name' | 'choices'>;

type CompletedCommand = Pick<CommandDefinition, 'name' | 'summary' | 'words'> & { flags: readonly Flag[] };

export const shells = ['bash', 'zsh', 'fish'] as const;

const dashed = (flags: readonly Flag[]): string => flags.map(({ name }) => `--${name}`).join(' ');

function bash(commands: readonly CompletedCommand[], settings: readonly Flag[]): string {
  const cases = commands.map(
    ({ name, flags, words = [] }) => `    ${name}) words="${[...words, dashed(flags)].join(' ').trim()}" ;;`,
  );
  const choosing = [...commands.flatMap(({ flags }) => flags), ...settings].filter(({ choices }) => choices);
  return [
    '_polylogue() {',
    `  local word="\${COMP_WORDS[COMP_CWORD]}" command="" words="" at`,
    '  for ((at = 1; at < COMP_CWORD; at++)); do',
    `    case "\${COMP_WORDS[at]}" in`,
    `      ${commands.map(({ name }) => name).join(' | ')}) command="\${COMP_WORDS[at]}"; break ;;`,
    '    esac',
    '  done',
    '  case "$command" in',
    `    "") words="${commands.map(({ name }) => name).join(' ')} --help --version" ;;`,
    ...cases,
    '  esac',
    `  [[ "$word" == -* ]] && words="$words ${dashed(settings)} --help"`,
    `  case "\${COMP_WORDS[COMP_CWORD - 1]}" in`,
    ...choosing.map(({ name, choices = [] }) => `    --${name}) words="${choices.join(' ')}" ;;`),
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
    '}',
    'complete -o default -F _polylogue polylogue',
    '',
  ].join('\n');
}

function fish(commands: readonly CompletedCommand[], settings: readonly Flag[]): string {
  const quoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;
  return [
    ...commands.flatMap(({ name, summary, flags, words = [] }) => [
      `complete -c polylogue -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
      ...words.map(word => `complete -c polylogue -n '__fish_seen_subcommand_from ${name}' -a ${word}`),
      ...flags.map(flag => `complete -c polylogue -n '__fish_seen_subcommand_from ${name}' ${fishFlag(flag)}`),
    ]),
    ...settings.map(flag => `complete -c polylogue ${fishFlag(flag)}`),
    '',
  ].join('\n');
}

const fishFlag = ({ name, choices }: Flag): string =>
  choices ? `-l ${name} -x -a '${choices.join(' ')}'` : `-l ${name}`;

export const completion = defineCommand({
  name: 'completion',
  group: 'Setup',
  summary: `Print a shell completion script: ${shells.join(', ')}`,
  usage: '<shell>',
  words: shells,
  examples: [
    ['eval "$(polylogue completion bash)"', 'Line for ~/.bashrc'],
    ['eval "$(polylogue completion zsh)"', 'Line for ~/.zshrc, after compinit'],
    ['polylogue completion fish > ~/.config/fish/completions/polylogue.fish', 'Run once'],
  ],
  async run({ args: [wanted = ''], commands, out }) {
    const shell = shells.find(name => name === wanted);
    if (!shell) throw noneOf('shell', wanted, shells);
    const known = commands.map(command => ({ ...command, flags: [...(command.flags ?? []), { name: 'json' }] }));
    const settings = allOptions().flatMap(({ spec: { flag, choices } }): Flag[] =>
      flag === undefined ? [] : [{ name: flag, choices }],
    );
    const start = shell === 'zsh' ? '#compdef polylogue\nautoload -U +X bashcompinit && bashcompinit\n' : '';
    const script = `${start}${(shell === 'fish' ? fish : bash)(known, settings)}`;
    out.document({ status: 'success', shell, script });
    out.line(script.trimEnd());
  },
});
