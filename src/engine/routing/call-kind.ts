import { askingShape } from '../../calls/ask/explain-call.ts';
import type { ToolDefinition } from '../../calls/tool.ts';
import { isRecord } from '../../core/json.ts';
import { type Effort, efforts } from '../../core/model.ts';
import type { CallKind, ToolRequest } from '../../core/tool-host.ts';
import type { RouteExplanation } from '../../models/routing/explain.ts';
import type { ModelRequest } from '../../models/routing/roster.ts';
import { isNamed } from './route-task.ts';

export interface CallKindParts {
  tools: readonly ToolDefinition[];
  explain(request: ModelRequest): Promise<RouteExplanation>;
  efforts: Readonly<Record<string, Effort>>;
}

/** Arguments that bring files along, or send the call to search. */
const filePaths = /(^|_)(files?|paths?|images?|directory|file_ids)(_|$)/;
const searches = ['use_websearch', 'use_search'];
/** No more models of one call are looked at. */
const mostModels = 10;

/**
 * What a call is expected to be, for doors that have to say beforehand how long they wait. Never rejects: what can't be said is
 * found out by the call itself.
 */
export function createCallKind(parts: CallKindParts): (request: ToolRequest) => Promise<CallKind> {
  return async request => {
    const tool = parts.tools.find(({ name }) => name === request.name);
    if (!tool) return 'quick';
    if (tool.toolset === 'agent') return 'reasoning';
    try {
      if (await reasons(parts, tool, request.arguments)) return 'reasoning';
    } catch {
      // Nobody can answer it: the call will say so, and soon.
    }
    return tool.toolset === 'files' || bringsFiles(request.arguments) ? 'files' : 'quick';
  };
}

function bringsFiles(args: Record<string, unknown>): boolean {
  return Object.entries(args).some(([field, value]) => {
    if (searches.includes(field)) return value === true || value === 'true';
    // Where the project is says nothing of what is read.
    if (field.startsWith('working_directory')) return false;
    return (
      filePaths.test(field) && (Array.isArray(value) ? value.length > 0 : typeof value === 'string' && value !== '')
    );
  });
}

async function reasons(
  { explain, efforts: own }: CallKindParts,
  tool: ToolDefinition,
  args: Record<string, unknown>,
): Promise<boolean> {
  const asking = askingShape(tool);
  const named = namesIn(args);
  if (!asking && tool.shape.kind !== 'wrapper') return false;
  // Several vendors are asked, and which ones is up to the operator.
  if (!asking && named.length === 0) return true;
  const { category = 'extended_reasoning', effort = 'high' } = asking ?? {};
  const names = named.length > 0 ? named : [undefined];
  for (const name of names) {
    const wanted = effortIn(args) ?? own[tool.name] ?? effort;
    const { candidates } = await explain({ category, needs: {}, effort: wanted, ...(name && { name }) });
    const [first] = candidates;
    if (first?.model.reasoning && first.effort !== 'none') return true;
  }
  return false;
}

function namesIn({ model, models }: Record<string, unknown>): string[] {
  const list: unknown[] = Array.isArray(models) ? models : [];
  const all = [model, ...list.map(each => (isRecord(each) ? each.model : each))];
  return all.filter(name => typeof name === 'string' && isNamed(name)).slice(0, mostModels);
}

function effortIn({ thinking_mode: mode }: Record<string, unknown>): Effort | undefined {
  return efforts.find(each => each === mode);
}
