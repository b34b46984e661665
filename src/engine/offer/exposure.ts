import type { ToolDefinition } from '../define.ts';

export interface ExposurePolicy {
  /** Groups of tools to offer. */
  toolsets: readonly string[];
  /** The only tools to offer; absent or empty: those of the toolsets. */
  only?: readonly string[];
  /** Tools to leave out, in any case. */
  disabled: readonly string[];
}

/** Always offered: without them nobody can find out what is wrong. */
const alwaysOn = new Set(['version', 'listmodels']);

/** Which tools are offered, in a fixed order; and the words of the policy that name nothing. */
export function exposed(
  tools: readonly ToolDefinition[],
  { toolsets, only, disabled }: ExposurePolicy,
): { tools: ToolDefinition[]; unknown: string[] } {
  const off = new Set(disabled.map(name => name.toLowerCase()));
  const wanted = new Set(only?.map(name => name.toLowerCase()));
  const chosen = tools.filter(({ name, toolset, tier }) => {
    if (tier !== 'user') return false;
    if (alwaysOn.has(name)) return true;
    if (off.has(name)) return false;
    return wanted.size > 0 ? wanted.has(name) : toolsets.includes(toolset);
  });
  const known = new Set(tools.map(tool => tool.name));
  return { tools: chosen, unknown: [...off, ...wanted].filter(name => !known.has(name)) };
}
