import type { AgentTool } from './agent-tool.ts';
import { commandTool } from './command-tool.ts';
import type { LocalToolServices } from './local-tool.ts';
import { gitTools, readTools, searchTools } from './read-tools.ts';
import { writeTools } from './write-tools.ts';

/** All that an agent can do by itself; `readOnly` leaves out what changes anything. */
export async function createLocalTools(parts: LocalToolServices, readOnly: boolean): Promise<AgentTool[]> {
  const looking = [...readTools(parts), ...searchTools(parts), ...gitTools(parts)];
  const doing = [...writeTools(parts), commandTool(parts)];
  // Few use it, and nobody by default: what it takes is loaded only then.
  const fetching = parts.fetches ? [(await import('./fetch-tool.ts')).fetchTool()] : [];
  return [...looking, ...(readOnly ? [] : doing), ...fetching];
}
