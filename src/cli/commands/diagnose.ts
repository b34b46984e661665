import { inputError } from '../../core/errors.ts';
import { isRecord, type JsonObject, recordsIn, textIn, textsIn } from '../../core/json.ts';
import type { ToolReply, UserAnswer, UserQuestion } from '../../core/tool-host.ts';
import type { CommandContext } from '../command/command.ts';
import { continueFlag, defineCommand, flag, isOn, modelFlag, textFlag } from '../command/command.ts';
import { type OpenProduct, openProduct, showFailure } from '../command/open-product.ts';
import { pathsFlag, showWarnings } from '../command/run-tool.ts';
import { askLine } from './agent.ts';

export const diagnose = defineCommand({
  name: 'diagnose',
  group: 'Ask',
  summary: 'Explain a failure from piped error output; propose a patch',
  usage: '[command...]',
  flags: [
    flag('file <path>', 'Related file not named in the output (repeatable)', { repeat: true }),
    modelFlag,
    flag('without-patch', 'Do not ask for a patch'),
    flag('apply', 'Apply the patch after confirmation; backs up changed files'),
    flag('yes', 'Skip the confirmation of --apply'),
    continueFlag,
  ],
  examples: [
    ['npm test 2>&1 | polylogue diagnose npm test', 'Explain why the tests fail'],
    ['polylogue diagnose --continue last --apply', 'Apply the patch of the newest diagnosis, after asking'],
    ['cat crash.log | polylogue diagnose --json', 'Print the full reply as JSON'],
  ],
  async run(context) {
    const { flags, out } = context;
    const args = await argumentsOf(context);
    const work = async (open: OpenProduct) => {
      const thread = textFlag(flags, 'continue');
      if (!args) return apply(context, open, thread);
      const reply = await open.call('diagnose', args, { onProgress: ({ message }) => out.status(message) });
      out.status('');
      if (reply.isError) return showFailure(context, reply);
      const { patch, continuation_offer: offer } = reply.document;
      const [isAsked, isThere] = [isOn(flags, 'apply'), isRecord(patch)];
      // With --json one document is printed: that of the patch, where one is applied.
      if (!isAsked || !isThere) out.document(reply.document);
      show(context, reply);
      if (!isAsked) return 0;
      return isThere ? apply(context, open, isRecord(offer) ? textIn(offer.continuation_id) : thread) : 1;
    };
    return openProduct(context, work, 'agent');
  },
});

/** The arguments of a diagnosis; undefined where only the patch of an earlier one is to be applied. */
async function argumentsOf(context: CommandContext): Promise<Record<string, unknown> | undefined> {
  const { args, flags } = context;
  const stderr = (await context.readInput())?.trim() ?? '';
  if (stderr === '') {
    if (isOn(flags, 'apply') && textFlag(flags, 'continue') !== undefined) return undefined;
    throw inputError('No error output given.', {
      next: 'Pipe it in (npm test 2>&1 | polylogue diagnose npm test), or apply an earlier patch with --continue last --apply.',
    });
  }
  return {
    stderr,
    command: args.join(' ').trim() || undefined,
    absolute_file_paths: pathsFlag(context, 'file'),
    patch: isOn(flags, 'without-patch') ? false : undefined,
    model: textFlag(flags, 'model'),
    continuation_id: textFlag(flags, 'continue'),
  };
}

function show(context: CommandContext, { document }: ToolReply): void {
  const { out } = context;
  showWarnings(context, document);
  if (document.content !== undefined) out.line(textIn(document.content));
  const part = (title: string, text: unknown) => {
    if (textIn(text) !== '') out.line(out.style('bold', title), `\n${textIn(text)}\n`);
  };
  part('What happened', document.summary);
  part('Why', document.root_cause);
  part('Evidence', evidenceText(document));
  part('Impact', document.impact);
  part('What to do', document.recommendation);
  if (Array.isArray(document.needs)) part('What is missing', document.needs.map(String).join('\n'));
  if (isRecord(document.patch)) part(`Patch (${textIn(document.patch.verified)})`, document.patch.diff);
  if (document.patch_withheld !== undefined) out.warn(textIn(document.patch_withheld));
  if (isRecord(document.patch)) out.remark('apply it with: polylogue diagnose --continue last --apply');
}

const evidenceText = ({ evidence }: JsonObject): string =>
  recordsIn(evidence)
    .map(({ file, line, text, checked }) => {
      const doubt = checked === true ? '' : '   (not found there)';
      return `${String(file)}:${String(line)}  ${textIn(text)}${doubt}`;
    })
    .join('\n');

async function apply(context: CommandContext, { call, signal }: OpenProduct, thread = 'last'): Promise<number> {
  const { out, flags } = context;
  const ask = (question: UserQuestion) =>
    isOn(flags, 'yes') ? Promise.resolve(approval(true)) : askTerminal(context, question, signal);
  const reply = await call('diagnose', { continuation_id: thread, apply: true }, { ask });
  if (reply.isError) return showFailure(context, reply);
  const { document } = reply;
  out.document(document);
  out.line(`Applied to ${textsIn(document.files).join(', ')}. ${textIn(document.next_steps)}`);
  return 0;
}

const approval = (approve: boolean): UserAnswer => ({ action: 'accept', content: { approve } });

/** Without a terminal nobody says yes. */
async function askTerminal({ environment }: CommandContext, { message }: UserQuestion, signal: AbortSignal) {
  if (!process.stdin.isTTY) return approval(false);
  environment.writeError(`${message}\n`);
  return approval(/^y(es)?$/i.test(await askLine('Apply it? [y/N] ', signal)));
}
