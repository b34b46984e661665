import { z } from 'zod';
import { workflowFields } from '../calls/fields.ts';
import { defineTool, type ToolDefinition, workflowOf } from '../calls/tool.ts';
import type { Permissions } from '../core/tool-host.ts';
import { alwaysOn, type ExposurePolicy, isLean, selectTools, unknownToolsets, type Withheld } from './offer.ts';

/** All tools that work in steps, as one: what they have in common is said once. None where there are no such tools. */
export function workflowTool(tools: readonly ToolDefinition[]): ToolDefinition[] {
  const [first, ...others] = tools.filter(workflowOf).map(({ name }) => name);
  if (first === undefined) return [];
  // Taken all the same: the call goes on to the tool that knows them.
  const { files_checked: _checked, issues_found: _issues, use_assistant_model: _expert, ...fields } = workflowFields;
  const definition = defineTool({
    name: 'workflow',
    title: 'Step-by-step workflow',
    description: 'Investigate, review, debug or plan in steps; an expert model judges the result.',
    toolset: 'core',
    tier: 'user',
    effects: { writes: false, destroys: false, network: true, idempotent: false },
    fields: { kind: z.enum([first, ...others]), ...fields },
    mode: { kind: 'alias', by: 'kind', to: [first, ...others] },
  });
  return [definition];
}

/** What callers of one process may use. */
export interface ExposedTools {
  /** Listed, in a fixed order. */
  tools: ToolDefinition[];
  /** Not listed, and answered all the same: what the listed ones lead to. */
  unlisted: ToolDefinition[];
  /** Left out because they write. */
  readOnlyRefused: ReadonlySet<string>;
  /** Left out by the operator's settings, each with what it is and how to have it offered. */
  withheld: ReadonlyMap<string, Withheld>;
  /** A sentence for each word of the policy that names nothing. */
  unknown: string[];
}

/** The tools of the lean profile, with the fields that it advertises; without a list: all. The others are taken all the same. */
const leanFields: Readonly<Record<string, readonly string[] | undefined>> = {
  chat: ['prompt', 'absolute_file_paths', 'model', 'continuation_id'],
  consensus: ['prompt', 'models', 'relevant_files', 'continuation_id'],
  threads: undefined,
  job: undefined,
};

const leanTools = new Set(Object.keys(leanFields));

export function exposeTools(tools: readonly ToolDefinition[], policy: ExposurePolicy): ExposedTools {
  const { allowed, withheld, unknown } = selectTools(tools, policy);
  const lean = isLean(policy);
  const usable = policy.readOnly
    ? allowed.flatMap(withoutWrites)
    : policy.writesCode
      ? allowed.map(withWrites)
      : allowed;
  const names = new Set(usable.map(tool => tool.name));
  return {
    tools: lean ? [...usable.filter(tool => leanTools.has(tool.name)).map(leanly), ...workflowTool(usable)] : usable,
    unlisted: lean ? usable.filter(tool => !leanTools.has(tool.name)) : [],
    withheld,
    readOnlyRefused: new Set(allowed.map(tool => tool.name).filter(name => !names.has(name))),
    unknown,
  };
}

/** A tool as a read-only server offers it: as it is, without the fields by which it writes, or not at all. */
export function withoutWrites(tool: ToolDefinition): ToolDefinition[] {
  const { effects, writesBy, fields, readingFields } = tool;
  if (!effects.writes && !effects.destroys) return [tool];
  if (readingFields)
    return [{ ...tool, fields: readingFields, effects: { ...effects, writes: false, destroys: false } }];
  if (!writesBy || effects.destroys) return [];
  const kept = Object.fromEntries(Object.entries(fields).filter(([name]) => !writesBy.includes(name)));
  return [{ ...tool, fields: kept, effects: { ...effects, writes: false } }];
}

/** A tool that generates code as a server offers it whose operator lets it write that. */
export function withWrites(tool: ToolDefinition): ToolDefinition {
  const { mode, writesBy = [], accepts = {}, fields, effects } = tool;
  if (!('generatesCode' in mode)) return tool;
  const shown = Object.fromEntries(Object.entries(accepts).filter(([name]) => writesBy.includes(name)));
  return { ...tool, fields: { ...fields, ...shown }, effects: { ...effects, writes: true } };
}

function leanly(tool: ToolDefinition): ToolDefinition {
  const shown = leanFields[tool.name];
  if (!shown) return tool;
  const fields = Object.entries(tool.fields);
  const quiet = fields.filter(([name]) => !shown.includes(name));
  return {
    ...tool,
    fields: Object.fromEntries(fields.filter(([name]) => shown.includes(name))),
    accepts: { ...tool.accepts, ...Object.fromEntries(quiet) },
  };
}

/** What of a process's tools one caller may use: never more than the process offers. */
export function narrowExposure(
  tools: readonly ToolDefinition[],
  policy: ExposurePolicy,
  { toolsets, allow, deny, readOnly }: Pick<Permissions, 'toolsets' | 'allow' | 'deny' | 'readOnly'>,
): ExposedTools {
  const isAllowed = anyOf(allow);
  const isDenied = anyOf(deny) ?? (() => false);
  const mayUse = ({ name, toolset }: ToolDefinition) =>
    !isDenied(name) &&
    (isAllowed?.(name) ?? true) &&
    (toolsets === undefined || toolsets.includes(toolset) || alwaysOn.has(name));
  const exposed = exposeTools(tools.filter(mayUse), { ...policy, readOnly: policy.readOnly || readOnly });
  // The tool that leads to the others is made of what is left; it can be refused by its own name alone.
  const listed = exposed.tools.filter(({ name }) => !isDenied(name));
  const known = new Set<string>(tools.map(({ toolset }) => toolset));
  const isNarrow = toolsets !== undefined || allow !== undefined || deny !== undefined;
  return { ...exposed, tools: listed, unknown: isNarrow ? unknownToolsets(toolsets ?? [], known) : exposed.unknown };
}

const anyOf = (globs: readonly string[] | undefined): ((name: string) => boolean) | undefined =>
  globs && (name => globs.some(glob => fits(name.toLowerCase(), glob.toLowerCase().split('*'))));

/** Whether a name is these parts with any letters between them. */
function fits(name: string, [first = '', ...others]: readonly string[]): boolean {
  const last = others.pop();
  if (last === undefined) return name === first;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of others) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}
