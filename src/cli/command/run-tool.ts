import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { inputError } from '../../core/errors.ts';
import { isPicture } from '../../core/file.ts';
import { type JsonObject, recordIn, recordsIn, textsIn } from '../../core/json.ts';
import type { ToolReply, UserAnswer, UserQuestion } from '../../core/tool-host.ts';
import { usdText } from '../../core/usage.ts';
import { type CommandContext, listFlag } from './command.ts';
import { type OpenProduct, openProduct, showFailure } from './open-product.ts';

/** What was written after the command, and what was piped in; empty where there is neither. */
export async function writtenText({ args, readInput }: CommandContext): Promise<string> {
  return [args.join(' ').trim(), (await readInput())?.trim()].filter(Boolean).join('\n\n');
}

/** The same, of which there has to be some. */
export async function neededText(context: CommandContext, refusal: string, next: string): Promise<string> {
  const text = await writtenText(context);
  if (text === '') throw inputError(refusal, { next });
  return text;
}

/** The paths of a flag that may be repeated, from the working directory on; undefined where it was not given. */
export function pathsFlag({ flags, environment }: CommandContext, name: string): string[] | undefined {
  const paths = listFlag(flags, name).map(path => resolve(environment.cwd, path));
  return paths.length > 0 ? paths : undefined;
}

/** `--file` as arguments of a tool, `files` for texts. What is not there is told here, since a tool tells of it only in the project. */
export function namedFiles(context: CommandContext, files: string) {
  const named = pathsFlag(context, 'file') ?? [];
  for (const missing of missingPaths(named)) context.out.warn(`not read: ${missing}`);
  const paths = named.filter(isThere);
  const images = paths.filter(isPicture);
  const others = paths.filter(path => !isPicture(path));
  return {
    args: { [files]: others.length > 0 ? others : undefined, images: images.length > 0 ? images : undefined },
    paths: paths.map(path => path.replace(lineRange, '')),
  };
}

const lineRange = /:\d+(?:-\d*)?$/;

/** A sentence for each path, with or without lines behind it, at which there is nothing. */
export const missingPaths = (paths: readonly string[]): string[] =>
  paths.filter(path => !isThere(path)).map(path => `There is no ${path}.`);

const isThere = (path: string): boolean => existsSync(path) || existsSync(path.replace(lineRange, ''));

/** How a command shows what its tool answers. */
export interface ToolRun {
  /** One more group of tools that it needs. */
  toolset?: string;
  /** What its user named: readable wherever it is. */
  namedPaths?: readonly string[];
  /** Shows the answer as it arrives. */
  streams?: boolean;
  ask?: ((question: UserQuestion, signal: AbortSignal) => Promise<UserAnswer>) | undefined;
  /** Prints a reply of which nothing was shown yet; absent: its content is shown as an answer. */
  print?(document: JsonObject): void;
  /** Tells what else there is to tell; answers the exit code, 0 where it answers none. */
  finish?: ((document: JsonObject) => number) | ((document: JsonObject) => void);
}

/** Calls one tool and shows its reply: as a document with `--json`, as the command shows it without; answers the exit code. */
export function runTool(context: CommandContext, tool: string, args: Record<string, unknown>, run: ToolRun) {
  const work = async (open: OpenProduct) => {
    const reply = await showCall(context, open, tool, args, run);
    return reply.isError ? showFailure(context, reply) : run.finish?.(reply.document) || 0;
  };
  return openProduct(context, work, run.toolset, run.namedPaths);
}

/** Calls one tool and shows its progress and its answer; a failed reply is left to the caller. */
export async function showCall(
  { out }: CommandContext,
  { call, signal }: OpenProduct,
  tool: string,
  args: Record<string, unknown>,
  { ask, print, streams = false }: Pick<ToolRun, 'ask' | 'print' | 'streams'>,
): Promise<ToolReply> {
  const answer = streams || !print ? await out.answer() : undefined;
  let isShown = false;
  const onText = (delta: string) => {
    out.status('');
    answer?.add(delta);
    isShown = true;
  };
  const reply = await call(tool, args, {
    signal,
    onProgress: ({ message }) => void (isShown || out.status(message)),
    ...(streams && !out.json && { onText }),
    ...(ask && { ask: question => ask(question, signal) }),
  });
  out.status('');
  if (!reply.isError && !isShown && !print) answer?.add(String(reply.document.content ?? ''));
  answer?.end();
  if (reply.isError) return reply;
  out.document(reply.document);
  if (!isShown) print?.(reply.document);
  return reply;
}

export function showWarnings({ out }: CommandContext, { metadata }: JsonObject): void {
  for (const warning of textsIn(recordIn(metadata).warnings)) out.warn(warning);
}

/** What a reply or a row of one says that it cost, behind something else; empty where nobody knows. */
export const costText = ({ cost_usd: usd }: Record<string, unknown>, separator = ', '): string =>
  typeof usd === 'number' ? `${separator}${usdText(usd)} USD` : '';

/** Who answered, what it took, and how to go on. */
export function closingRemark({ metadata }: JsonObject, facts: string, next = '; continue with --continue last') {
  const told = recordIn(metadata);
  const who = `${String(told.provider_used)}:${String(told.model_used)}`;
  return `${who}, ${facts}${costText(told)}${next}`;
}

/** Shows which named files an answer did not see, its warnings, and in the last line the model, tokens and cost. */
export function showAnswerFacts(context: CommandContext, document: JsonObject, next?: string): void {
  const { files, usage } = recordIn(document.metadata);
  for (const { path, reason } of recordsIn(recordIn(files).skipped)) context.out.warn(`not read: ${path}: ${reason}`);
  showWarnings(context, document);
  const { input, output } = recordIn(usage);
  context.out.remark(closingRemark(document, `${String(input)} tokens in, ${String(output)} out`, next));
}
