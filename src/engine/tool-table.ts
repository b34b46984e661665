import { createHash } from 'node:crypto';
import { schemaOf, type ToolSchema } from '../calls/argument-schema.ts';
import { nearestNames } from '../calls/arguments.ts';
import { aliasOf, type ToolDefinition } from '../calls/tool.ts';
import { AppError, inputError, securityError } from '../core/errors.ts';
import { safeCut } from '../core/text.ts';
import type { ToolListing, ToolRequest } from '../core/tool-host.ts';
import type { ExposedTools } from './exposure.ts';

/** Raised by hand when a tool changes: major when callers must change, minor when they may. */
export const release = '1.14.0';

/** Version of the tools as callers see them: `1.1.0+` and eight characters of a hash over their schemas. */
export function catalogueVersion(tools: readonly ToolListing[]): string {
  const schemas = tools.map(({ name, inputSchema }) => [name, inputSchema]);
  return `${release}+${createHash('sha256').update(JSON.stringify(schemas)).digest('hex').slice(0, 8)}`;
}

/** Longer ones are no names of ours and are cut wherever they are told. */
export const maxToolNameLength = 80;

interface Known {
  tool: ToolDefinition;
  schema: ToolSchema;
}

export interface ToolTable {
  listings: readonly ToolListing[];
  /** The tool that a request means, and the request in that tool's own words. Throws when there is none that may be used. */
  lookUp(request: ToolRequest): Known & { request: ToolRequest };
}

/** Listings that are known already, by the very definition: one whose fields were narrowed is another. */
export type KnownListings = ReadonlyMap<ToolDefinition, ToolListing>;

export function createToolTable(
  exposed: Pick<ExposedTools, 'tools' | 'unlisted' | 'readOnlyRefused' | 'withheld'>,
  made?: KnownListings,
): ToolTable {
  const tools = new Map<string, Known>();
  for (const tool of [...exposed.tools, ...exposed.unlisted]) {
    tools.set(tool.name, { tool, schema: schemaOf(tool, made?.get(tool)) });
  }

  function lookUp(request: ToolRequest): Known & { request: ToolRequest } {
    if (exposed.readOnlyRefused.has(request.name))
      throw securityError(`${request.name} changes files or threads, and this server is read-only.`, {
        class: 'read_only',
        next: 'Continue without it, or ask the operator to turn off POLYLOGUE_READ_ONLY.',
      });
    const found = tools.get(request.name);
    const withheld = exposed.withheld.get(request.name);
    if (!found && withheld)
      throw new AppError('config', `${request.name} is not offered: it ${withheld.why}.`, {
        code: 'TOOL_NOT_FOUND',
        class: 'validation',
        next: withheld.next,
        validationErrors: [{ field: 'name', error: 'not offered' }],
      });
    if (!found) throw unknownTool(safeCut(request.name, maxToolNameLength), [...tools.keys()]);
    const alias = aliasOf(found.tool);
    if (!alias) return { ...found, request };
    const { by, to } = alias;
    const { [by]: name, ...args } = request.arguments;
    if (typeof name !== 'string' || !to.includes(name))
      throw inputError(`${found.tool.name} needs ${by}: one of ${to.join(', ')}.`, {
        next: `Send the same call with "${by}" set to one of them.`,
        validationErrors: [{ field: by, error: 'missing or unknown', allowed: [...to] }],
      });
    return lookUp({ ...request, name, arguments: args });
  }

  return { listings: exposed.tools.flatMap(({ name }) => tools.get(name)?.schema.listing ?? []), lookUp };
}

function unknownTool(name: string, names: readonly string[]): AppError {
  const near = nearestNames(name, names);
  return new AppError('input', `Unknown tool "${name}".`, {
    code: 'TOOL_NOT_FOUND',
    class: 'validation',
    next: `Did you mean ${near.join(', ')}? "tools/list" shows all tools.`,
    validationErrors: [{ field: 'name', error: 'unknown tool', allowed: near }],
  });
}
