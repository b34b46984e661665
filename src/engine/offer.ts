import type { OfferedTool, ToolDefinition } from '../calls/tool.ts';
import type { ToolListing } from '../core/tool-host.ts';

export type Offerable = Pick<ToolDefinition, 'name' | 'toolset' | 'tier' | 'needs'>;

export interface ExposurePolicy {
  /** `lean`: a handful of tools; `standard`: those of `toolsets`; `full`: all there are. */
  profile: 'lean' | 'standard' | 'full';
  /** Groups of tools to offer. */
  toolsets: readonly string[];
  /** Tools to offer besides, by name; absent: none. */
  besides?: readonly string[];
  /** The only tools to offer; absent or empty: those of the profile. */
  only?: readonly string[];
  /** Tools to leave out, in any case. */
  disabled: readonly string[];
  /** Tools whose calls are counted; named only to find words that name nothing. */
  limited?: readonly string[];
  /** Nothing that writes or destroys. */
  readOnly: boolean;
  /** Tools that generate code write it where the caller says; absent: they show it. */
  writesCode?: boolean;
  /** Ids of the providers that can be asked; absent: none. */
  configured?: readonly string[];
}

/** Always offered: without them nobody can find out what is wrong. */
export const alwaysOn: ReadonlySet<string> = new Set(['version', 'listmodels']);

/** Whether a handful of tools stands for all. */
export const isLean = ({ profile, only }: ExposurePolicy): boolean => profile === 'lean' && !only?.length;

/** What the operator's settings make of the tools; `unknown` has a sentence for each of their words that names nothing. */
export function selectTools<Tool extends Offerable>(tools: readonly Tool[], policy: ExposurePolicy) {
  const off = new Set(policy.disabled.map(name => name.toLowerCase()));
  const only = new Set(policy.only?.map(name => name.toLowerCase()));
  const allowed = tools.filter(({ name, toolset, tier, needs }): boolean | undefined => {
    if (tier === 'internal' || needs?.every(provider => !policy.configured?.includes(provider))) return false;
    if (alwaysOn.has(name)) return true;
    if (off.has(name)) return false;
    if (only.size > 0) return only.has(name);
    return policy.profile === 'full' || policy.toolsets.includes(toolset) || policy.besides?.includes(name);
  });
  const known = new Set([...tools.map(tool => tool.name), 'workflow']);
  const toolsets = new Set<string>(tools.filter(({ tier }) => tier !== 'internal').map(({ toolset }) => toolset));
  const withheld = tools.filter(tool => tool.tier !== 'internal' && !allowed.includes(tool));
  const unknown = [...off, ...only, ...(policy.limited ?? [])].filter(name => !known.has(name));
  return {
    allowed,
    withheld: new Map(withheld.map(tool => [tool.name, whyWithheld(tool, policy, { off, only })])),
    unknown: [...unknown.map(name => `Unknown tool "${name}".`), ...unknownToolsets(policy.toolsets, toolsets)],
  };
}

export const unknownToolsets = (names: readonly string[], known: ReadonlySet<string>): string[] =>
  names
    .filter(name => !known.has(name))
    .map(name => `Unknown toolset "${name}"; known toolsets: ${[...known].join(', ')}.`);

/** Why a tool is not offered, as the end of a sentence, and what to do about it. */
function whyWithheld(
  { name, toolset, needs }: Offerable,
  { toolsets, configured }: ExposurePolicy,
  { off, only }: Record<'off' | 'only', ReadonlySet<string>>,
) {
  if (needs?.every(provider => !configured?.includes(provider)))
    return { why: `needs ${needs.join(' or ')}`, next: `Ask the operator to set a key for ${needs.join(' or ')}.` };
  if (off.has(name))
    return { why: 'is in DISABLED_TOOLS', next: `Ask the operator to remove ${name} from DISABLED_TOOLS.` };
  if (only.size > 0)
    return { why: 'is not in POLYLOGUE_TOOLS', next: `Ask the operator to add ${name} to POLYLOGUE_TOOLS.` };
  return {
    why: `is in the toolset "${toolset}", which is off`,
    next: `Ask the operator to set POLYLOGUE_TOOLSETS=${[...toolsets, toolset].join(',')} (--toolsets) and restart the server.`,
  };
}

/** What a host tells its model of the tools as a whole; hosts cut it at 2 KB. `workflows`: those that work in steps. */
export const instructionsFor = (workflows: readonly string[]): string =>
  [
    'Polylogue asks other models and remembers the conversation as a thread.',
    'To continue a thread, pass the continuation_id from a reply (or "last") to any tool and any model; each file is sent once, then only its changes.',
    'If the user names a model, use exactly that one; otherwise omit model.',
    workflows.length > 0 &&
      `${workflows.join(', ')} go step by step: step 1 names the task, from step 2 on send the continuation_id; do the required_actions yourself before you send the next step. findings: the evidence so far. relevant_files: files or directories. use_assistant_model: false, or validation type internal, asks no expert.`,
    'Never guess a continuation_id; "threads" lists them. A reply with next_page has more pages: "job" reads them.',
  ]
    .filter(Boolean)
    .join(' ');

/** What hosts are told before the definitions of the tools are loaded; undefined where only those know. */
export function offerOf(tools: readonly OfferedTool[], policy: ExposurePolicy) {
  if (isLean(policy)) return undefined;
  const form = policy.readOnly ? 'readOnly' : policy.writesCode ? 'writing' : undefined;
  const chosen = selectTools(tools, policy).allowed.flatMap((tool): { tool: OfferedTool; listing: ToolListing }[] => {
    const listing = (form && tool[form]) ?? tool.listing;
    return form === 'readOnly' && tool.readOnly === null ? [] : [{ tool, listing }];
  });
  const workflows = chosen.filter(({ tool }) => tool.isWorkflow).map(({ tool }) => tool.name);
  return { listings: chosen.map(({ listing }) => listing), instructions: instructionsFor(workflows) };
}
