import { resolve } from 'node:path';
import { inputError } from '../../core/errors.ts';
import { isRecord, type JsonObject, textsIn } from '../../core/json.ts';
import type { UserAnswer, UserQuestion } from '../../core/tool-host.ts';
import { usdText } from '../../core/usage.ts';
import { type CommandContext, listFlag } from './command.ts';
import { openProduct, showFailure } from './open-product.ts';

/** What was written after the command, and what was piped in; empty where there is neither. */
export async function writtenText({ args, readInput }: CommandContext): Promise<string> {
  const piped = (await readInput())?.trim();
  return [args.join(' ').trim(), piped].filter(Boolean).join('\n\n');
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

/** How a command shows what its tool answers. */
export interface ToolRun {
  /** One more group of tools that it needs. */
  toolset?: string;
  /** Prints text as it arrives. */
  streams?: boolean;
  ask?: ((question: UserQuestion, signal: AbortSignal) => Promise<UserAnswer>) | undefined;
  /** Prints a reply of which nothing was printed yet. */
  print(document: JsonObject): void;
  /** Tells what else there is to tell; answers the exit code. */
  finish(document: JsonObject): number;
}

/** Calls one tool and shows its reply: as a whole with `--json`, as the command shows it without; answers the exit code. */
export function runTool(context: CommandContext, tool: string, args: Record<string, unknown>, run: ToolRun) {
  const { out } = context;
  const { ask, streams = false, toolset } = run;
  const work: Parameters<typeof openProduct<number>>[1] = async ({ call, signal }) => {
    const shown = { any: false, endsLine: true };
    const onText = (delta: string) => {
      out.status('');
      out.text(delta);
      shown.any = true;
      shown.endsLine = delta.endsWith('\n');
    };
    const reply = await call(tool, args, {
      onProgress: ({ message }) => void (shown.any || out.status(message)),
      ...(streams && !out.json && { onText }),
      ...(ask && { ask: question => ask(question, signal) }),
    });
    out.status('');
    if (!shown.endsLine) out.text('\n');
    if (reply.isError) return showFailure(context, reply);
    out.document(reply.document);
    if (!shown.any) run.print(reply.document);
    return run.finish(reply.document);
  };
  return openProduct(context, work, toolset);
}

/** Writes what a reply warns of. */
export function showWarnings({ environment }: CommandContext, { metadata }: JsonObject): void {
  for (const warning of textsIn(recordIn(metadata).warnings)) environment.writeError(`polylogue: ${warning}\n`);
}

/** What a reply or a row of one says that it cost, behind something else; empty where nobody knows. */
export function costText({ cost_usd: usd }: Record<string, unknown>, separator = ', '): string {
  return typeof usd === 'number' ? `${separator}${usdText(usd)} USD` : '';
}

/** Who answered, what it took, and how to go on. */
export function closingRemark({ metadata }: JsonObject, facts: string): string {
  const told = recordIn(metadata);
  const who = `${String(told.provider_used)}:${String(told.model_used)}`;
  return `${who}, ${facts}${costText(told)}; go on with --continue last`;
}

/** A record where one should stand in a reply, else an empty one. */
export function recordIn(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}
