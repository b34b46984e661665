import type { AgentTool } from './agent-tool.ts';
import { commandTool } from './command-tool.ts';
import type { LocalToolServices } from './local-tool.ts';
import { gitTools, readTools } from './read-tools.ts';
import { writeTools } from './write-tools.ts';

/** All that an agent can do by itself; `readOnly` leaves out what changes anything. */
export async function createLocalTools(parts: LocalToolServices, readOnly: boolean): Promise<AgentTool[]> {
  const doing = readOnly ? [] : [...writeTools(parts), commandTool(parts)];
  // Few use it, and nobody by default: what it takes is loaded only then.
  const fetching = parts.fetches ? [(await import('./fetch-tool.ts')).fetchTool()] : [];
  return [...readTools(parts), ...gitTools(parts), ...doing, ...fetching, ...(readOnly ? [] : parts.lend(parts))];
}
