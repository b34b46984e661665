import { inputError } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import { usdText } from '../../core/usage.ts';
import { type CommandContext, defineCommand, textFlag } from '../command/command.ts';
import { pathsFlag, recordIn, recordsIn, runTool, showWarnings, writtenText } from '../command/run-tool.ts';

export const ask = defineCommand({
  name: 'ask',
  summary: 'ask a model and print its answer as it arrives; what is piped in goes along',
  usage: '[prompt...]',
  flags: [
    {
      name: 'file',
      value: 'path',
      repeat: true,
      doc: 'A file or directory to show, lines too: src/a.ts:1-20. Repeatable.',
    },
    { name: 'model', value: 'name', doc: 'Who answers: a name, an alias, provider:model, or auto.' },
    { name: 'continue', value: 'id', doc: 'Goes on with a stored thread: its id, or last.' },
  ],
  examples: [
    ['polylogue ask "What does this do?" --file src/run.ts:1-80', 'about some lines of a file'],
    ['git diff | polylogue ask "Review this change"', 'a question about what is piped in'],
    ['polylogue ask --continue last "And the edge cases?"', 'go on where the last thread ended'],
    ['polylogue ask "Name three risks" --model claude --json', 'the whole reply, for programs'],
  ],
  async run(context) {
    const args = await argumentsOf(context);
    const { out } = context;
    return runTool(context, 'chat', args, {
      streams: true,
      print: ({ content }) => out.line(String(content ?? '')),
      finish(document) {
        for (const line of skippedFiles(document)) context.environment.writeError(`polylogue: ${line}\n`);
        showWarnings(context, document);
        out.remark(closingRemark(document));
        return 0;
      },
    });
  },
});

async function argumentsOf(context: CommandContext): Promise<Record<string, unknown>> {
  const { flags } = context;
  const prompt = await writtenText(context);
  if (prompt === '') {
    throw inputError('There is no question.', {
      next: 'Write it after the command, as in: polylogue ask "What does this project do?", or pipe it in.',
    });
  }
  const files = pathsFlag(context, 'file');
  return {
    prompt,
    ...(files.length > 0 && { absolute_file_paths: files }),
    model: textFlag(flags, 'model'),
    continuation_id: textFlag(flags, 'continue'),
  };
}

/** What was named and not sent, with the reason: the answer was given without it. */
function skippedFiles({ metadata }: JsonObject): string[] {
  const { skipped } = recordIn(recordIn(metadata).files);
  return recordsIn(skipped).map(({ path, reason }) => `not sent: ${String(path)}: ${String(reason)}`);
}

/** Who answered, what it took, and how to go on. */
function closingRemark({ metadata }: JsonObject): string {
  const facts = recordIn(metadata);
  const usage = recordIn(facts.usage);
  const cost = typeof facts.cost_usd === 'number' ? `, ${usdText(facts.cost_usd)} USD` : '';
  const tokens = `${String(usage.input)} tokens in, ${String(usage.output)} out`;
  return `${String(facts.provider_used)}:${String(facts.model_used)}, ${tokens}${cost}; go on with --continue last`;
}
