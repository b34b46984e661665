import type { Clock, SharedState } from '../../src/core/ports.ts';
import { createMemoryStore } from '../../src/storage/memory/memory.ts';
import { createStoredState } from '../../src/storage/shared-state.ts';

/** Shared state of a test alone. */
export function createLocalState(clock: Clock): SharedState {
  return createStoredState(createMemoryStore(), clock);
}
