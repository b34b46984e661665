import { isAppError } from '../../domain/error.ts';
import type { Clock, Emit } from '../../domain/ports.ts';
import type { Store } from '../../memory/store.ts';

export interface HoldingOptions {
  store: Store;
  clock: Clock;
  emit: Emit;
  /** Names this process. */
  holder: string;
  /** Called each time the lease was renewed. */
  onBeat(): void;
}

/** Tells the other processes of the store that this one lives, for as long as it has jobs. */
export interface Holding {
  /** Resolves when the others can see it. */
  begin(): Promise<void>;
  end(): Promise<void>;
  /** Whether a process is dead: nobody renews its lease any more. */
  isDead(holder: string): Promise<boolean>;
}

/** A job whose process died is found out after this long. */
const leaseMs = 6_000;
const beatMs = 2_000;

export function createHolding({ store, clock, emit, holder, onBeat }: HoldingOptions): Holding {
  let jobs = 0;
  let stop = () => {};

  function beatLater(): void {
    stop = clock.after(beatMs, () => {
      store.lease(holder, holder, leaseMs, clock.now()).then(onBeat, error => {
        // The work goes on: when the store comes back in time nobody has noticed, else its end says what became of it.
        emit({ type: 'warning', where: 'jobs', message: isAppError(error) ? error.message : String(error) });
      });
      beatLater();
    });
  }

  return {
    async begin() {
      if (jobs++ === 0) beatLater();
      try {
        await store.lease(holder, holder, leaseMs, clock.now());
      } catch (error) {
        if (--jobs === 0) stop();
        throw error;
      }
    },
    async end() {
      if (--jobs > 0) return;
      stop();
      await store.release(holder, holder);
    },
    async isDead(other) {
      // Whoever can take the lease of another finds that he let it lapse.
      if (other === holder || !(await store.lease(other, holder, leaseMs, clock.now()))) return false;
      await store.release(other, holder);
      return true;
    },
  };
}
