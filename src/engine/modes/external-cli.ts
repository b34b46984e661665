import { type AskOptions, askPlan } from '../../calls/ask/ask.ts';
import type { ComposeOptions } from '../../calls/ask/options.ts';
import type { Answered, AskPlan, Resumed } from '../../calls/call-record.ts';
import type { Reply } from '../../calls/reply.ts';
import { inputError, securityError } from '../../core/errors.ts';
import { isRecord, type JsonObject, textsIn } from '../../core/json.ts';
import { printablePath } from '../../core/text.ts';
import type { Thread } from '../../core/thread.ts';
import { isSkip } from '../../files/skip.ts';
import type { BridgeDesk } from '../../providers/external-cli/cli-registry.ts';
import { programProviderId } from '../../providers/external-cli/program.ts';
import { parsePathReference } from '../../workspace/paths.ts';
import { capOutput } from '../bridge/output/cap-output.ts';
import { guidance } from '../bridge/roles.ts';

/** Another vendor's agent works on a request in this project, and its answer becomes part of the thread. */
export async function conductBridge(options: AskOptions & { bridge: BridgeDesk }, call: Resumed): Promise<Reply> {
  const { plan, model } = await planBridge(options.bridge, call, options.compose);
  // It is asked by name, and nobody answers in its place.
  return askPlan(options, { ...call, common: { ...call.common, model, allowFallback: false } }, plan);
}

async function planBridge(
  desk: BridgeDesk,
  call: Resumed,
  options: ComposeOptions,
): Promise<{ plan: AskPlan; model: string }> {
  const { args, thread, tool } = call;
  const cli = desk.find(textOr(args.cli_name) ?? lastAsked(thread, tool.name, desk) ?? usual(desk));
  const role = textOr(args.role) ?? 'default';
  const known = cli.roles.map(({ name }) => name);
  if (!known.includes(role)) throw unknownRole(role, cli.name, known);
  const mayWrite = args.allow_writes === true;
  if (mayWrite && !desk.mayWrite) throw mayNotWrite();
  const { prompt, warnings } = await desk.rolePrompt(cli, role);
  call.warnings.push(...warnings);
  if (textsIn(args.images).length > 0) call.warnings.push('Images are not handed to CLIs: name their files instead.');
  const plan: AskPlan = {
    kind: 'ask',
    contribution: await contributionOf(call, options),
    tail: `${prompt}\n\n${guidance(cli.title)}`,
    files: [],
    category: 'balanced',
    effort: 'medium',
    program: { role, mayWrite },
    local: {},
    deliver: async ({ answer }) => ({ text: capOutput(answer.text, cli.title).text, document: {} }),
    metadata: answered => metadataOf(answered, cli.title),
    conclude: ({ answer }) => ({ status: 'continuation_available', content: answer.text, content_type: 'text' }),
  };
  return { plan, model: `${programProviderId}:${cli.name}` };
}

function textOr(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined;
}

/** A thread goes on with the CLI that answered in it last. */
function lastAsked({ turns }: Thread, tool: string, { names }: BridgeDesk): string | undefined {
  const last = turns.findLast(
    ({ role, toolName, modelProvider, status }) =>
      role === 'assistant' && status === 'done' && toolName === tool && modelProvider === programProviderId,
  );
  return names.find(name => name === last?.modelName);
}

function usual({ names }: BridgeDesk): string {
  return names.includes('gemini') ? 'gemini' : (names[0] ?? '');
}

function unknownRole(role: string, cli: string, known: readonly string[]) {
  return inputError(`${cli} has no role "${role}".`, {
    next: `Name one of ${known.join(', ')}.`,
    validationErrors: [{ field: 'role', error: 'unknown', allowed: [...known] }],
  });
}

function mayNotWrite() {
  return securityError('CLIs may only read here.', {
    class: 'read_only',
    next: 'Leave allow_writes out, or ask the operator to set CLI_ALLOW_WRITES.',
  });
}

/** The request, with files by name, size and time of their last change: the agent reads them itself. */
async function contributionOf({ args, request, signal }: Resumed, { sandbox, home }: ComposeOptions): Promise<string> {
  const prompt = String(args.prompt);
  const named = textsIn(args.absolute_file_paths);
  if (named.length === 0) return prompt;
  const lines: string[] = [];
  for (const input of named) {
    signal.throwIfAborted();
    const reference = parsePathReference(input, request.principal.root, home);
    const found = isSkip(reference) ? reference : await sandbox.locate(reference.path);
    if (isSkip(found)) lines.push(`- ${printablePath(input)} (unavailable: ${found.reason})`);
    else {
      const changed = new Date(found.mtimeMs).toISOString();
      const size = found.kind === 'file' ? `, ${found.size} bytes` : ', a directory';
      lines.push(`- ${printablePath(found.path)} (last modified ${changed}${size})`);
    }
  }
  return `${prompt}\n\nFiles to look at:\n${lines.join('\n')}`;
}

/** What the CLI told, and how its answer was shortened. */
function metadataOf({ answer }: Answered, title: string): JsonObject {
  const told: JsonObject = isRecord(answer.told) ? JSON.parse(JSON.stringify(answer.told)) : {};
  return { ...told, ...capOutput(answer.text, title).metadata };
}
