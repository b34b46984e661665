import { resolve } from 'node:path';
import { inputError } from '../../core/errors.ts';
import { isRecord, type JsonObject, recordIn, recordsIn, textsIn } from '../../core/json.ts';
import { type CommandContext, defineCommand, flag, isOn, textFlag, wordsFlag } from '../command/command.ts';
import { runTool, writtenText } from '../command/run-tool.ts';

export const prompt = defineCommand({
  name: 'prompt',
  group: 'Ask',
  summary: 'Send one prompt to several models; nothing is stored',
  usage: '[text...]',
  flags: [
    flag('file <path>', 'Project file that contains the prompt'),
    flag('models <list>', 'Comma-separated provider:model list (default: DEFAULT_MODELS)', { repeat: true }),
    flag('output-dir <path>', 'Write each answer to a file here (requires --file)'),
    flag('overwrite', 'Replace existing files in --output-dir'),
  ],
  examples: [
    ['polylogue prompt "Name a risk" --models openai:gpt-5,google:gemini-2.5-pro', 'Ask two models'],
    ['git diff | polylogue prompt "Review this"', 'Include piped input'],
    ['polylogue prompt --file question.md --output-dir answers', 'Read a file, write one file for each model'],
  ],
  async run(context) {
    const { tool, args } = await callOf(context);
    return runTool(context, tool, args, {
      toolset: 'wrapper',
      // Text is told only where one model is asked.
      streams: tool !== toFiles,
      print: document => print(context, document),
      finish: document => (reportFailures(context, document) ? 1 : 0),
    });
  },
});

const toFiles = 'prompt_from_file_to_file';

async function callOf(context: CommandContext): Promise<{ tool: string; args: Record<string, unknown> }> {
  const { args, flags, environment } = context;
  const absolute = (path: string | undefined) => path && resolve(environment.cwd, path);
  const file = absolute(textFlag(flags, 'file'));
  const shared = { models_prefixed_by_provider: wordsFlag(flags, 'models') };
  const directory = absolute(textFlag(flags, 'output-dir'));
  if (file !== undefined) {
    if (args.length > 0) throw misused('Give either --file or a text, not both: the text is in the file.');
    if (directory === undefined) return { tool: 'prompt_from_file', args: { ...shared, file_path: file } };
    const output = { output_dir: directory, overwrite: isOn(flags, 'overwrite') };
    return { tool: toFiles, args: { ...shared, ...output, file_path: file } };
  }
  if (directory !== undefined) throw misused('--output-dir goes with --file: the answers are named after that file.');
  const text = await writtenText(context);
  if (text === '') throw misused('There is no text to send.');
  return { tool: 'prompt', args: { ...shared, text } };
}

const misused = (message: string): Error =>
  inputError(message, {
    next: 'As in: polylogue prompt "Name three risks" --models openai:gpt-5,google:gemini-2.5-pro',
  });

const responsesOf = ({ result }: JsonObject): Record<string, unknown>[] => recordsIn(recordIn(result).responses);

function print({ out }: CommandContext, document: JsonObject): void {
  const responses = responsesOf(document);
  for (const [index, { model, response, file, overwritten }] of responses.entries()) {
    if (typeof file === 'string') out.line(overwritten === true ? `${file} (replaced)` : file);
    if (typeof response !== 'string') continue;
    if (responses.length > 1) out.line(out.style('bold', `${index > 0 ? '\n' : ''}## ${String(model)}\n`));
    out.line(response.trimEnd());
  }
}

/** Each slot without an answer, each answer without a file, and what was not as asked for; answers whether something failed. */
function reportFailures({ out }: CommandContext, document: JsonObject): boolean {
  let failed = false;
  for (const { model, error, file_error: unwritten, truncated, warnings } of responsesOf(document)) {
    for (const problem of [error, unwritten]) {
      if (!isRecord(problem)) continue;
      failed = true;
      out.warn(`${model}: ${problem.message}`);
    }
    const remarks = textsIn(warnings);
    if (isRecord(truncated)) remarks.push('its answer is longer than a reply takes; "polylogue threads" has it whole');
    for (const remark of remarks) out.warn(`${model}: ${remark}`);
  }
  return failed;
}
