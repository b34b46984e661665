import { tables } from '../../app/app.ts';
import { inputError } from '../../core/errors.ts';
import type { OptionSpec } from '../../core/option.ts';
import { defineCommand, type FlagSpec } from '../command/command.ts';
import { type CompletionFlag, completionScript, shells } from '../completion-script.ts';

export const completion = defineCommand({
  name: 'completion',
  summary: `print the script that completes commands and flags in a shell: ${shells.join(', ')}`,
  usage: '<shell>',
  words: shells,
  examples: [
    ['eval "$(polylogue completion bash)"', 'in ~/.bashrc'],
    ['eval "$(polylogue completion zsh)"', 'in ~/.zshrc, after compinit'],
    ['polylogue completion fish > ~/.config/fish/completions/polylogue.fish', 'once'],
  ],
  async run({ args: [wanted = ''], commands, out }) {
    const shell = shells.find(name => name === wanted);
    if (!shell) {
      throw inputError(`There is no completion for "${wanted}".`, { next: `Name one of ${shells.join(', ')}.` });
    }
    const known = commands.map(({ name, summary, flags = [], words = [] }) => ({
      name,
      summary,
      words,
      flags: [...flags.map(completionFlag), { name: 'json', choices: [] }],
    }));
    const settings = Object.values(tables).flatMap(table =>
      Object.values<OptionSpec>(table).flatMap(({ flag, choices }) =>
        flag === undefined ? [] : [completionFlag({ name: flag, choices })],
      ),
    );
    const script = completionScript(shell, known, settings);
    if (out.json) out.document({ status: 'success', shell, script });
    else out.text(script);
    return 0;
  },
});

function completionFlag({ name, choices = [] }: Pick<FlagSpec, 'name' | 'choices'>): CompletionFlag {
  return { name, choices };
}
