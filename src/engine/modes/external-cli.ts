import { askModelTurn } from '../../calls/ask/ask.ts';
import type { CallServices } from '../../calls/ask/services.ts';
import { onThread } from '../../calls/ask/with-thread.ts';
import type { ModelTurn, ThreadedCall } from '../../calls/call-record.ts';
import type { Reply } from '../../calls/reply.ts';
import type { ToolMode } from '../../calls/tool.ts';
import { inputError, securityError } from '../../core/errors.ts';
import { isRecord, type JsonObject, jsonOf, textsIn } from '../../core/json.ts';
import { printablePath, safeCut } from '../../core/text.ts';
import type { Thread } from '../../core/thread.ts';
import { type CliRegistry, guidance } from '../../providers/external-cli/cli-registry.ts';
import { cliProviderId, splitCliId } from '../../providers/external-cli/contract.ts';
import { isSkip, parsePathReference } from '../../workspace/paths.ts';
import type { Mode, ModeServices } from './mode.ts';
import { lastElement, questionOf } from './prompt.ts';

/** Characters of an answer that a reply shows. */
const limit = 20_000;
const excerpt = 4_000;

/** Truncates an answer for the reply. The thread keeps it in full. */
function capOutput(text: string, cliName: string): { text: string; metadata: JsonObject } {
  if (text.length <= limit) return { text, metadata: {} };
  const sizes = { output_original_length: text.length, output_limit: limit };
  const summary = lastElement(text, 'summary')?.content.trim();
  if (summary) {
    const shown = safeCut(summary, limit);
    return { text: shown, metadata: { output_summarized: true, ...sizes, output_summary_length: shown.length } };
  }
  const shown = safeCut(text, excerpt);
  const note = `The answer of ${cliName} has ${text.length} characters; a reply shows ${limit} at the most, and it brought no <SUMMARY>. Its first ${shown.length} follow; the thread has all of it.`;
  return {
    text: `${note}\n\n--- Beginning of the answer ---\n\n${shown}`,
    metadata: { output_truncated: true, ...sizes, output_excerpt_length: shown.length },
  };
}

/** Another vendor's agent works on a request in this project, and its answer becomes part of the thread. */
export const externalCli: Mode<Extract<ToolMode, { kind: 'externalCli' }>> = onThread(ask);

async function ask(_definition: unknown, call: ThreadedCall, services: ModeServices): Promise<Reply> {
  const { args, thread, tool } = call;
  const { clis } = services;
  const usual = clis.names.includes('gemini') ? 'gemini' : (clis.names[0] ?? '');
  const cli = clis.find(textOr(args.cli_name) ?? lastAsked(thread, tool.name, clis) ?? usual);
  const role = textOr(args.role) ?? 'default';
  const known = cli.roles.map(({ name }) => name);
  if (!known.includes(role))
    throw inputError(`${cli.name} has no role "${role}".`, {
      next: `Name one of ${known.join(', ')}.`,
      validationErrors: [{ field: 'role', error: 'unknown', allowed: [...known] }],
    });
  const mayWrite = args.allow_writes === true;
  if (mayWrite && !clis.mayWrite)
    throw securityError('CLIs may only read here.', {
      class: 'read_only',
      next: 'Leave allow_writes out, or ask the operator to set CLI_ALLOW_WRITES.',
    });
  const { prompt, warnings } = await clis.rolePrompt(cli, role);
  call.warnings.push(...warnings);
  if (textsIn(args.images).length > 0) call.warnings.push('Images are not handed to CLIs: name their files instead.');
  const turn: ModelTurn = {
    contribution: await contributionOf(call, services),
    tail: `${prompt}\n\n${guidance(cli.title)}`,
    files: [],
    category: 'balanced',
    effort: 'medium',
    cli: { role, mayWrite },
  };
  // The CLI is named explicitly, so no other model may replace it.
  const model = textOr(args.model);
  const id = model === undefined || model.toLowerCase() === 'auto' ? cli.name : `${cli.name}/${model}`;
  const common = { ...call.common, model: `${cliProviderId}:${id}`, allowFallback: false };
  return askModelTurn(services, { ...call, common }, turn, ({ answer: { text, providerMetadata } }) => {
    const capped = capOutput(text, cli.title);
    return {
      text: capped.text,
      document: content => ({ status: 'continuation_available', content, content_type: 'text' }),
      metadata: { ...(isRecord(providerMetadata) && jsonOf(providerMetadata)), ...capped.metadata },
    };
  });
}

const textOr = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined;

/** The CLI that last answered in this thread; undefined: none of those installed. */
function lastAsked({ turns }: Thread, tool: string, { names }: CliRegistry): string | undefined {
  const last = turns.findLast(
    ({ role, toolName, modelProvider, status }) =>
      role === 'assistant' && status === 'done' && toolName === tool && modelProvider === cliProviderId,
  );
  return names.find(name => name === splitCliId(last?.modelName ?? '').name);
}

/** The request, with files by name, size and time of their last change: the agent reads them itself. */
async function contributionOf(call: ThreadedCall, services: CallServices): Promise<string> {
  const { args, request, signal } = call;
  const { sandbox, home } = services;
  const named = textsIn(args.absolute_file_paths);
  const { question: prompt, files } = await questionOf(String(args.prompt), named, call, services);
  if (files.length === 0) return prompt;
  const lines: string[] = [];
  for (const input of files) {
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
