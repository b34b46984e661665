import { createInterface } from 'node:readline/promises';
import { type JsonObject, recordIn, textsIn } from '../../core/json.ts';
import type { UserAnswer, UserQuestion } from '../../core/tool-host.ts';
import { type CommandContext, continueFlag, defineCommand, flag, modelFlag, textFlag } from '../command/command.ts';
import { closingRemark, neededText, pathsFlag, runTool, showWarnings } from '../command/run-tool.ts';

export const agent = defineCommand({
  name: 'agent',
  group: 'Ask',
  summary: 'Let a model read, patch and test the project, as approved',
  usage: '[task...]',
  flags: [flag('file <path>', 'File to start with (repeatable)', { repeat: true }), modelFlag, continueFlag],
  examples: [
    ['polylogue agent "Fix the failing test in test/sum.test.ts"', 'Ask at the terminal before it patches or runs'],
    ['polylogue agent "Update the changelog" --approve all', 'Approve everything in advance'],
    ['polylogue agent --continue last "Now do what we agreed on"', 'Continue the newest thread'],
  ],
  async run(context) {
    const { out, flags } = context;
    const next = 'Write it after the command, as in: polylogue agent "Mend the failing test", or pipe it in.';
    const args = {
      task: await neededText(context, 'There is no task.', next),
      files: pathsFlag(context, 'file'),
      model: textFlag(flags, 'model'),
      continuation_id: textFlag(flags, 'continue'),
    };
    const watched = process.stdin.isTTY === true && process.stderr.isTTY === true;
    return runTool(context, 'agent', args, {
      toolset: 'agent',
      ask: watched ? (question, signal) => askUser(context, question, signal) : undefined,
      finish(document) {
        showWarnings(context, document);
        out.remark(closingRemark(document, workOf(document)));
      },
    });
  },
});

/** At the terminal, one question after the other. Whatever is no number of a choice is a refusal. */
async function askUser(
  { out, environment }: CommandContext,
  { message, schema }: UserQuestion,
  signal: AbortSignal,
): Promise<UserAnswer> {
  const decisions = textsIn(recordIn(recordIn(schema.properties).decision).enum);
  out.status('');
  environment.writeError(`${message}\n`);
  environment.writeError(decisions.map((decision, index) => `  ${index + 1}  ${decision}`).join('\n'));
  const decision = decisions[Number(await askLine('Which? ', signal)) - 1];
  return decision === undefined ? { action: 'decline' } : { action: 'accept', content: { decision } };
}

export async function askLine(question: string, signal: AbortSignal): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await terminal.question(question, { signal })).trim();
  } finally {
    terminal.close();
  }
}

function workOf({ rounds, tool_calls: calls, changed_files: changed }: JsonObject): string {
  const count = Array.isArray(calls) ? calls.length : 0;
  const files = Array.isArray(changed) ? `, changed: ${changed.join(', ')}` : '';
  return `${String(rounds)} rounds, ${count} calls${files}`;
}
