import { nearestNames, schemaOf, type ToolSchema } from '../calls/arguments.ts';
import type { ToolDefinition } from '../calls/tool.ts';
import { AppError, inputError, securityError } from '../core/errors.ts';
import type { JsonObject } from '../core/json.ts';
import { safeCut } from '../core/text.ts';
import type { ToolListing, ToolRequest } from '../core/tool-host.ts';
import type { Offer } from './exposure.ts';

/** Longer ones are no names of ours and are cut wherever they are told. */
export const longestToolName = 80;

interface Known {
  tool: ToolDefinition;
  schema: ToolSchema;
}

export interface ToolTable {
  listings: readonly ToolListing[];
  /** The tool that a request means, and the request in that tool's own words. Throws when there is none that may be used. */
  lookUp(request: ToolRequest): Known & { request: ToolRequest };
}

/** Schemas that are known already, by the very definition: one whose fields were narrowed is another. */
export type MadeSchemas = ReadonlyMap<ToolDefinition, JsonObject>;

export function createToolTable(
  offer: Pick<Offer, 'tools' | 'unlisted' | 'readOnlyRefused'>,
  made?: MadeSchemas,
): ToolTable {
  const tools = new Map<string, Known>();
  for (const tool of [...offer.tools, ...offer.unlisted]) {
    tools.set(tool.name, { tool, schema: schemaOf(tool, made?.get(tool)) });
  }

  function lookUp(request: ToolRequest): Known & { request: ToolRequest } {
    if (offer.readOnlyRefused.has(request.name)) throw readOnly(request.name);
    const found = tools.get(request.name);
    if (!found) throw unknownTool(safeCut(request.name, longestToolName), [...tools.keys()]);
    if (found.tool.shape.kind !== 'dispatch') return { ...found, request };
    const { by, to } = found.tool.shape;
    const { [by]: name, ...args } = request.arguments;
    if (typeof name !== 'string' || !to.includes(name)) throw unknownKind(found.tool.name, by, to);
    return lookUp({ ...request, name, arguments: args });
  }

  return { listings: offer.tools.flatMap(({ name }) => tools.get(name)?.schema.listing ?? []), lookUp };
}

function readOnly(tool: string): AppError {
  return securityError(`${tool} changes files or threads, and this server is read-only.`, {
    class: 'read_only',
    next: 'Do without it, or ask the operator to start Polylogue without --read-only (POLYLOGUE_READ_ONLY).',
  });
}

function unknownKind(tool: string, field: string, allowed: readonly string[]): AppError {
  return inputError(`${tool} needs ${field}: one of ${allowed.join(', ')}.`, {
    next: `Send the same call with "${field}" set to one of them.`,
    validationErrors: [{ field, error: 'missing or unknown', allowed: [...allowed] }],
  });
}

function unknownTool(name: string, names: readonly string[]): AppError {
  const near = nearestNames(name, names);
  return new AppError('input', `There is no tool "${name}".`, {
    code: 'TOOL_NOT_FOUND',
    class: 'validation',
    next: `The nearest are ${near.join(', ')}; tools/list has them all.`,
    validationErrors: [{ field: 'name', error: 'unknown tool', allowed: near }],
  });
}
