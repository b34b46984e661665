import type { Clock, SharedState } from '../../core/ports.ts';
import { createStoredState } from '../../storage/shared-state.ts';
import type { Store } from '../../storage/store.ts';
import { createLocalState } from './local-state.ts';

/** Shared as far as the store is. */
export function openState(store: Store, clock: Clock): SharedState {
  return store.kind === 'memory' ? createLocalState(clock) : createStoredState(store, clock);
}
