import { resolve } from 'node:path';
import { isRecord, type JsonObject } from '../../core/json.ts';
import type { UserAnswer, UserQuestion } from '../../core/tool-host.ts';
import { type CommandContext, listFlag } from './command.ts';
import { openProduct, showFailure } from './open-product.ts';

/** What was written after the command, and what was piped in; empty where there is neither. */
export async function writtenText({ args, readInput }: CommandContext): Promise<string> {
  const piped = (await readInput())?.trim();
  return [args.join(' ').trim(), piped].filter(Boolean).join('\n\n');
}

/** The paths of a flag that may be repeated, from the working directory on. */
export function pathsFlag({ flags, environment }: CommandContext, name: string): string[] {
  return listFlag(flags, name).map(path => resolve(environment.cwd, path));
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
    if (out.json) out.document(reply.document);
    else if (!shown.any) run.print(reply.document);
    return run.finish(reply.document);
  };
  return openProduct(context, work, toolset);
}

/** Writes what a reply warns of. */
export function showWarnings({ environment }: CommandContext, { metadata }: JsonObject): void {
  const list: unknown[] = isRecord(metadata) && Array.isArray(metadata.warnings) ? metadata.warnings : [];
  for (const warning of list) environment.writeError(`polylogue: ${String(warning)}\n`);
}

/** A record where one should stand in a reply, else an empty one. */
export function recordIn(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}

/** The records of a list in a reply. */
export function recordsIn(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
