import type { AgentTool } from '../agent.ts';
import { runCommandHand } from './command-tool.ts';
import type { HandParts } from './local-tool.ts';
import { gitHands, readingHands, searchingHands } from './read-tools.ts';
import { writingHands } from './write-tools.ts';

/** All that an agent can do by itself; `readOnly` leaves out what changes anything. */
export async function hands(parts: HandParts, readOnly: boolean): Promise<AgentTool[]> {
  const looking = [...readingHands(parts), ...searchingHands(parts), ...gitHands(parts)];
  const doing = [...writingHands(parts), runCommandHand(parts)];
  // Few use it, and nobody by default: what it takes is loaded only then.
  const fetching = parts.fetches ? [(await import('./fetch-tool.ts')).fetchUrlHand()] : [];
  return [...looking, ...(readOnly ? [] : doing), ...fetching];
}
