import type { Clock, SharedState } from '../../domain/ports.ts';
import type { Store } from '../store.ts';
import { createLocalState } from './local-state.ts';
import { createStoredState } from './stored-state.ts';

/** Shared as far as the store is. */
export function openState(store: Store, clock: Clock): SharedState {
  return store.kind === 'memory' ? createLocalState(clock) : createStoredState(store, clock);
}
