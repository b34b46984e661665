import { isAppError } from '../../core/errors.ts';
import type { Clock, Emit } from '../../core/ports.ts';
import type { Store } from '../../storage/store.ts';

export interface RetentionOptions {
  store: Store;
  clock: Clock;
  emit: Emit;
}

/** Not with the first write, which somebody waits for. */
const firstAfterMs = 30_000;
const everyMs = 86_400_000;

/** Takes what expired out of the store, once a day for as long as the process lives, and never in anybody's way. */
export function createRetention({ store, clock, emit }: RetentionOptions): { begin(): void } {
  let begun = false;

  function pruneIn(ms: number): void {
    clock.after(ms, () => {
      store.prune(clock.now()).then(
        () => pruneIn(everyMs),
        error => {
          emit({ type: 'warning', where: 'prune', message: isAppError(error) ? error.message : String(error) });
          pruneIn(everyMs);
        },
      );
    });
  }

  return {
    /** Called with each write; a process that never writes leaves the store as it is. */
    begin() {
      if (begun) return;
      begun = true;
      pruneIn(firstAfterMs);
    },
  };
}
