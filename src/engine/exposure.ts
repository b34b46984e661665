import { createHash } from 'node:crypto';
import { z } from 'zod';
import { workflowFields } from '../calls/fields.ts';
import { aliasOf, defineTool, kindTraits, type ToolDefinition, workflowOf } from '../calls/tool.ts';
import type { HostPrompts, Permissions, PromptListing, ToolListing } from '../core/tool-host.ts';
import { alwaysOn, type ExposurePolicy, isLean, selectTools, unknownToolsets } from './offer.ts';

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

/** The tools of the lean profile, with the fields that it advertises; without a list: all. The others are taken all the same. */
const leanFields: Readonly<Record<string, readonly string[] | undefined>> = {
  chat: ['prompt', 'absolute_file_paths', 'model', 'continuation_id'],
  consensus: ['prompt', 'models', 'relevant_files', 'continuation_id'],
  threads: undefined,
  job: undefined,
};

const leanTools = new Set(Object.keys(leanFields));

export type ExposedTools = ReturnType<typeof exposeTools>;

/** What callers of one process may use. */
export function exposeTools(tools: readonly ToolDefinition[], policy: ExposurePolicy) {
  const { allowed, withheld, unknown } = selectTools(tools, policy);
  const lean = isLean(policy);
  const written = policy.writesCode ? allowed.map(withWrites) : allowed;
  const usable = policy.readOnly ? allowed.flatMap(withoutWrites) : written;
  const names = new Set(usable.map(tool => tool.name));
  return {
    /** Listed, in a fixed order. */
    tools: lean ? [...usable.filter(tool => leanTools.has(tool.name)).map(leanly), ...workflowTool(usable)] : usable,
    /** Not listed, and answered all the same: what the listed ones lead to. */
    unlisted: lean ? usable.filter(tool => !leanTools.has(tool.name)) : [],
    withheld,
    /** Left out because they write. */
    readOnlyRefused: new Set(allowed.map(tool => tool.name).filter(name => !names.has(name))),
    unknown,
  };
}

/** A tool as a read-only server offers it: as it is, without the fields by which it writes, or not at all. */
export function withoutWrites(tool: ToolDefinition): ToolDefinition[] {
  const { effects, writesBy, fields, readingFields } = tool;
  const reads = { ...effects, writes: false, destroys: false };
  if (readingFields) return [{ ...tool, fields: readingFields, writingFields: fields, effects: reads }];
  if (!effects.writes && !effects.destroys) return [tool];
  if (!writesBy || effects.destroys) return [];
  const kept = Object.fromEntries(Object.entries(fields).filter(([name]) => !writesBy.includes(name)));
  return [{ ...tool, fields: kept, effects: reads }];
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
export function narrowExposure(tools: readonly ToolDefinition[], policy: ExposurePolicy, permissions: Permissions) {
  const { toolsets, allow, deny, readOnly } = permissions;
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

const anyOf = (globs: readonly string[] | undefined): ((name: string) => boolean) | undefined => {
  const patterns = globs?.map(glob => glob.split('*').map(part => part.replace(/\W/g, '\\$&')));
  return patterns && (name => patterns.some(parts => new RegExp(`^${parts.join('.*')}$`, 'is').test(name)));
};

/** Raised by hand when a tool changes: major when callers must change, minor when they may. */
export const release = '1.15.0';

/** Version of the tools as callers see them: `1.1.0+` and eight characters of a hash over their schemas. */
export function catalogueVersion(tools: readonly ToolListing[]): string {
  const schemas = tools.map(({ name, inputSchema }) => [name, inputSchema]);
  return `${release}+${createHash('sha256').update(JSON.stringify(schemas)).digest('hex').slice(0, 8)}`;
}

/** Commands that callers of PAL know by another name than the tool's. */
const palNames: Readonly<Record<string, string>> = { thinkdeep: 'thinkdeeper', codereview: 'review' };

const model = { name: 'model', description: 'Model to ask; omit to choose automatically', required: false };
const thread = { name: 'continuation_id', description: 'Thread to continue, or "last"', required: false };
const request = { name: 'request', description: 'What to work on', required: false };

const goOn: PromptListing = {
  name: 'continue',
  title: 'Continue a thread',
  description: 'Continue the newest thread of this project, or the one you name.',
  arguments: [thread, model, request],
};

/** A command a tool, and one to go on with a thread. */
export function createPrompts({ tools, unlisted }: Pick<ExposedTools, 'tools' | 'unlisted'>): HostPrompts {
  const dispatcher = tools.find(aliasOf);
  const callable = [...tools, ...unlisted].filter(tool => tool !== dispatcher);
  const byName = new Map<string, ToolDefinition>();
  for (const tool of callable) byName.set(palNames[tool.name] ?? tool.name, tool).set(tool.name, tool);
  const listed = [...callable.map(listingOf), goOn];
  const wayTo = (tool: ToolDefinition) =>
    dispatcher && unlisted.includes(tool) && workflowOf(tool)
      ? `"${dispatcher.name}" with kind "${tool.name}"`
      : `"${tool.name}"`;
  return {
    list: () => listed,
    text(name, args) {
      const [base = '', ...suffix] = name.split(':');
      const given = { ...args, ...(suffix.length > 0 && { model: suffix.join(':') }) };
      if (base === goOn.name) return goOnText(given);
      const tool = byName.get(base);
      return tool && toolText(tool, wayTo(tool), given);
    },
  };
}

function listingOf({ name, title, description, mode, effects }: ToolDefinition): PromptListing {
  const own = palNames[name] ?? name;
  if (!kindTraits[mode.kind].continues) return { name: own, title, description, arguments: [request] };
  const asks = effects.network ? [model] : [];
  return { name: own, title, description, arguments: [request, ...asks, thread] };
}

type Given = Readonly<Record<string, string | undefined>>;

function toolText(tool: ToolDefinition, way: string, { request: about, model: named, continuation_id: id }: Given) {
  const settings = [named && `model "${named}"`, id && `continuation_id "${id}"`].filter(Boolean).join(' and ');
  const lines = [
    `Use the Polylogue tool ${way}${settings && `, and give it ${settings}`}.`,
    workflowOf(tool) && 'Work through every step and complete the required_actions between steps.',
    about || 'It is about what was typed after the command, if anything; else what we are at in this conversation.',
  ];
  return lines.filter(Boolean).join('\n');
}

function goOnText({ request: about, model: named, continuation_id: id }: Given): string {
  const settings = [`continuation_id "${id || 'last'}"`, named && `model "${named}"`].filter(Boolean).join(' and ');
  return `Go on with our Polylogue thread: use the tool that it was last used with, or "chat", and give it ${settings}.\n${
    about || 'Take up what was typed after the command, if anything; else the point where it stopped.'
  }`;
}
