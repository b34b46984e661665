import type { Clock, Emit } from '../domain/ports.ts';
import type { Store } from './store.ts';
import { createMemoryStore } from './stores/memory.ts';
import { createSqliteStore } from './stores/sqlite.ts';

export interface StoreChoice {
  /** The database's path; absent: nothing is written to disk. */
  file?: string;
  clock: Clock;
  emit: Emit;
}

/** The store that the operator chose. Opens nothing yet. */
export function openStore({ file, clock, emit }: StoreChoice): Store {
  if (file === undefined) return createMemoryStore();
  return createSqliteStore({ file, clock, onWarning: message => emit({ type: 'warning', where: 'store', message }) });
}
