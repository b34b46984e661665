import { join, relative, resolve } from 'node:path';
import { z } from 'zod';
import type { CallServices } from '../../../../calls/ask/services.ts';
import { fileError } from '../../../../calls/call-limits.ts';
import { securityError } from '../../../../core/errors.ts';
import type { Skip } from '../../../../core/file.ts';
import { type JsonObject, jsonOf } from '../../../../core/json.ts';
import { printablePath } from '../../../../core/text.ts';
import type { Git, GitHistory } from '../../../../workspace/git/git.ts';
import { isSkip, parsePathReference } from '../../../../workspace/paths.ts';
import type { ChildEnv } from '../../../../workspace/programs.ts';
import { targetInside } from '../../../../workspace/write-changes.ts';
import { deepestThere } from '../../../../workspace/write-file.ts';
import type { AgentTool, Approval, ToolOutput, ToolSurroundings } from './agent-tool.ts';
import type { CommandSandbox } from './command-sandbox.ts';

export interface LocalToolServices
  extends Pick<CallServices, 'sandbox' | 'fileShortener' | 'clock' | 'mask' | 'emit' | 'home' | 'maxFileBytes'> {
  git: Git;
  history: GitHistory;
  /** Of the run: names backups. */
  reqId: string;
  /** Keys masks: the run's thread or conversation. */
  scope: string;
  /** What texts that the run begins with may have been masked under besides. */
  earlierScopes?: readonly string[];
  /** The tool that the run belongs to, for events. */
  tool: string;
  owner: string;
  /** Where relative paths start; absolute. */
  root: string;
  /** Folder for what was there before a change; absolute. */
  backups: string;
  /** The environment as programs that are started may see it. */
  childEnv: ChildEnv;
  /** The operator's own list of commands that are run unasked. Absent: the known forms. */
  commands?: readonly string[] | undefined;
  commandSandbox: CommandSandbox;
  commandMs: number;
  /** Whether the web may be read. */
  fetches: boolean;
  /** Tools of the product that it may call too. */
  productTools(run: LocalToolServices): AgentTool[];
}

/** An absolute path for what the model named. Throws for what is no path. */
export function pathIn({ root, home }: LocalToolServices, input: string): string {
  const reference = parsePathReference(input, root, home);
  if (isSkip(reference)) throw refused(reference);
  return resolve(reference.literal ?? reference.path);
}

export const refused = ({ path, code, reason }: Skip): Error =>
  fileError([code], `${printablePath(path)}: ${reason}`, { next: 'Name a file of the project.' });

/**
 * The real path of a file that may be written, which is where its name says. Behind a link, another file would change than the one
 * that somebody approved. The project itself may lie behind one.
 */
export async function targetNamed({ sandbox, root }: Pick<LocalToolServices, 'sandbox' | 'root'>, path: string) {
  await targetInside({ sandbox }, path);
  const { at, found } = await deepestThere(sandbox, path);
  const real = found ? join(found.path, relative(at, path)) : path;
  const project = relative(root, path).startsWith('..')
    ? path
    : join(await sandbox.assertWithin(root), relative(root, path));
  if (real === path || real === project) return real;
  throw securityError(`${printablePath(path)} is a link, or lies behind one: it is really ${printablePath(real)}.`, {
    next: 'Name the file by its real path.',
  });
}

interface LocalToolSpec<Fields extends z.ZodRawShape> extends Pick<AgentTool, 'name' | 'description' | 'effect'> {
  fields: Fields;
  show?(args: z.output<z.ZodObject<Fields>>): string;
  approval?(args: z.output<z.ZodObject<Fields>>, context: ToolSurroundings): Promise<Approval>;
  run(args: z.output<z.ZodObject<Fields>>, context: ToolSurroundings): Promise<string | ToolOutput>;
}

/** A tool whose arguments are described by fields: their schema, their check and their types come from them. */
export function defineLocalTool<const Fields extends z.ZodRawShape>(spec: LocalToolSpec<Fields>): AgentTool {
  const schema = z.strictObject(spec.fields);
  const { name, description, effect, show, approval } = spec;
  return {
    name,
    description,
    effect,
    inputSchema: schemaOf(schema),
    check(args) {
      const parsed = schema.safeParse(args);
      return parsed.success ? { args } : { problem: problemOf(parsed.error) };
    },
    ...(show && { show: args => show(schema.parse(args)) }),
    ...(approval && { approval: async (args, context) => approval(schema.parse(args), context) }),
    run: async (args, context) => spec.run(schema.parse(args), context),
  };
}

function schemaOf(schema: z.ZodType): JsonObject & { type: 'object' } {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return { ...jsonOf(rest), type: 'object' };
}

function problemOf(error: z.ZodError): string {
  const problems = error.issues.slice(0, 5).map(({ path, message }) => {
    const where = path.map(String).join('.');
    return where === '' ? message : `"${where}": ${message}`;
  });
  return `${problems.join('; ')}.`;
}
