import type { ToolDefinition } from '../../calls/tool.ts';
import type { Permissions } from '../../core/tool-host.ts';
import { alwaysOn, type ExposurePolicy, exposed, type Offer } from '../exposure.ts';

/** What of a process's tools one caller may use: never more than the process offers. */
export function narrow(
  tools: readonly ToolDefinition[],
  policy: ExposurePolicy,
  { toolsets, allow, deny, readOnly }: Pick<Permissions, 'toolsets' | 'allow' | 'deny' | 'readOnly'>,
): Offer {
  const isAllowed = anyOf(allow);
  const isDenied = anyOf(deny) ?? (() => false);
  const mayUse = ({ name, toolset }: ToolDefinition) =>
    !isDenied(name) &&
    (isAllowed?.(name) ?? true) &&
    (toolsets === undefined || toolsets.includes(toolset) || alwaysOn.has(name));
  const offer = exposed(tools.filter(mayUse), { ...policy, readOnly: policy.readOnly || readOnly });
  // The tool that leads to the others is made of what is left; it can be refused by its own name alone.
  const listed = offer.tools.filter(({ name }) => !isDenied(name));
  const isNarrow = toolsets !== undefined || allow !== undefined || deny !== undefined;
  return { ...offer, tools: listed, unknown: isNarrow ? unknownOf(tools, toolsets) : offer.unknown };
}

function anyOf(globs: readonly string[] | undefined): ((name: string) => boolean) | undefined {
  return globs && (name => globs.some(glob => fits(name.toLowerCase(), glob.toLowerCase().split('*'))));
}

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

function unknownOf(tools: readonly ToolDefinition[], toolsets: Permissions['toolsets'] = []): string[] {
  const known = new Set<string>(tools.map(({ toolset }) => toolset));
  return toolsets
    .filter(name => !known.has(name))
    .map(name => `There is no toolset "${name}"; there are ${[...known].join(', ')}.`);
}
