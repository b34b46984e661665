import type { JsonObject } from '../../core/json.ts';
import { continueFlag, defineCommand, flag, modelFlag, textFlag } from '../command/command.ts';
import { namedFiles, neededText, runTool, showAnswerFacts } from '../command/run-tool.ts';

export const ask = defineCommand({
  name: 'ask',
  group: 'Ask',
  summary: 'Ask a model and stream its answer; reads piped input',
  usage: '[prompt...]',
  flags: [
    flag('file <path>', 'File, picture or directory to include; src/a.ts:1-20 for lines (repeatable)', {
      repeat: true,
    }),
    modelFlag,
    continueFlag,
  ],
  examples: [
    ['polylogue ask "What does this do?" --file src/run.ts:1-80', 'Send some lines of a file'],
    ['git diff | polylogue ask "Review this change"', 'Ask about piped input'],
    ['polylogue ask --continue last "And the edge cases?"', 'Continue the newest thread'],
    ['polylogue ask "Name three risks" --model claude --json', 'Print the full reply as JSON'],
  ],
  async run(context) {
    const { flags } = context;
    const next = 'Pass it as an argument (polylogue ask "What does this project do?") or pipe it in.';
    const files = namedFiles(context, 'absolute_file_paths');
    const args = {
      prompt: await neededText(context, 'No prompt given.', next),
      ...files.args,
      model: textFlag(flags, 'model'),
      continuation_id: textFlag(flags, 'continue'),
    };
    const finish = (document: JsonObject) => showAnswerFacts(context, document);
    return runTool(context, 'chat', args, { streams: true, namedPaths: files.paths, finish });
  },
});
