/** A command as completion knows it. */
export interface CompletionCommand {
  name: string;
  summary: string;
  /** Flags without dashes. */
  flags: readonly string[];
  /** Words that may follow it. */
  words: readonly string[];
}

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

/** The script that teaches a shell the commands and flags. */
export function completionScript(
  shell: Shell,
  commands: readonly CompletionCommand[],
  settings: readonly string[],
): string {
  switch (shell) {
    case 'bash':
      return bash(commands, settings);
    case 'zsh':
      return `#compdef polylogue\nautoload -U +X bashcompinit && bashcompinit\n${bash(commands, settings)}`;
    case 'fish':
      return fish(commands, settings);
  }
}

function dashed(flags: readonly string[]): string {
  return flags.map(flag => `--${flag}`).join(' ');
}

function bash(commands: readonly CompletionCommand[], settings: readonly string[]): string {
  const cases = commands.map(
    ({ name, flags, words }) => `    ${name}) words="${[...words, dashed(flags)].join(' ').trim()}" ;;`,
  );
  return [
    '_polylogue() {',
    '  local word="${COMP_WORDS[COMP_CWORD]}" command="" words="" at',
    '  for ((at = 1; at < COMP_CWORD; at++)); do',
    '    case "${COMP_WORDS[at]}" in',
    `      ${commands.map(({ name }) => name).join(' | ')}) command="\${COMP_WORDS[at]}"; break ;;`,
    '    esac',
    '  done',
    '  case "$command" in',
    `    "") words="${commands.map(({ name }) => name).join(' ')} --help --version" ;;`,
    ...cases,
    '  esac',
    `  [[ "$word" == -* ]] && words="$words ${dashed(settings)} --help"`,
    '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
    '}',
    'complete -o default -F _polylogue polylogue',
    '',
  ].join('\n');
}

function fish(commands: readonly CompletionCommand[], settings: readonly string[]): string {
  const quoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;
  return [
    ...commands.flatMap(({ name, summary, flags, words }) => [
      `complete -c polylogue -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
      ...words.map(word => `complete -c polylogue -n '__fish_seen_subcommand_from ${name}' -a ${word}`),
      ...flags.map(flag => `complete -c polylogue -n '__fish_seen_subcommand_from ${name}' -l ${flag}`),
    ]),
    ...settings.map(flag => `complete -c polylogue -l ${flag}`),
    '',
  ].join('\n');
}
