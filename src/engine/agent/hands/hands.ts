import type { AgentTool } from '../agent.ts';
import { gitHands } from './git-hands.ts';
import type { HandParts } from './hand-parts.ts';
import { readingHands } from './reading.ts';
import { runCommandHand } from './run-command.ts';
import { searchingHands } from './searching.ts';
import { writingHands } from './writing.ts';

/** All that an agent can do by itself; `readOnly` leaves out what changes anything. */
export async function hands(parts: HandParts, readOnly: boolean): Promise<AgentTool[]> {
  const looking = [...readingHands(parts), ...searchingHands(parts), ...gitHands(parts)];
  const doing = [...writingHands(parts), runCommandHand(parts)];
  // Few use it, and nobody by default: what it takes is loaded only then.
  const fetching = parts.fetches ? [(await import('../web/fetch-url.ts')).fetchUrlHand()] : [];
  return [...looking, ...(readOnly ? [] : doing), ...fetching];
}
