import { isAppError } from '../../core/errors.ts';
import type { Clock, Emit } from '../../core/ports.ts';
import type { Store } from '../../storage/store.ts';

export interface HoldingOptions {
  store: Store;
  clock: Clock;
  emit: Emit;
  /** Names this process. */
  holder: string;
  /** Called each time the lease was renewed. */
  onBeat(): void;
}

/** Tells the other processes of the store that this one lives, for as long as it has jobs, and a beat longer. */
export interface Holding {
  /** Resolves when the others can see it. Where it rejects, the job began all the same, and is to end. */
  begin(): Promise<void>;
  end(): void;
  /** Whether a process is dead: nobody renews its lease any more. */
  isDead(holder: string): Promise<boolean>;
  /** Lets the others see at once that it has no jobs; one that still has some says so on. */
  close(): Promise<void>;
}

/** A job whose process died is found out after this long. */
const leaseMs = 6_000;
const beatMs = 2_000;

export function createHolding({ store, clock, emit, holder, onBeat }: HoldingOptions): Holding {
  let jobs = 0;
  let stop: (() => void) | undefined;
  /** The lease as it was taken; jobs that begin before the next beat need not take it again. */
  let taken: Promise<unknown> | undefined;

  /** Until when the others see it, as far as is known here (epoch milliseconds). */
  let heldUntil = 0;

  async function lease(): Promise<void> {
    const before = heldUntil;
    const until = clock.now() + leaseMs;
    heldUntil = until;
    let isMine = false;
    try {
      isMine = await store.lease(holder, holder, leaseMs, clock.now());
    } finally {
      if (!isMine && heldUntil === until) heldUntil = before;
    }
  }

  function beatLater(): void {
    stop = clock.after(beatMs, () => {
      if (jobs === 0) return void release();
      // The work goes on: when the store comes back in time nobody has noticed, else its end says what became of it.
      lease().then(onBeat, warn);
      beatLater();
    });
  }

  async function release(): Promise<void> {
    stop?.();
    stop = undefined;
    if (!taken) return;
    taken = undefined;
    heldUntil = 0;
    await store.release(holder, holder).catch(warn);
  }

  function warn(error: unknown): void {
    emit({ type: 'warning', where: 'jobs', message: isAppError(error) ? error.message : String(error) });
  }

  return {
    async begin() {
      jobs++;
      if (!stop) beatLater();
      // Less is left of it only where the last beats failed: it may lapse, or have lapsed, before the next one.
      const isFresh = heldUntil - clock.now() > beatMs;
      taken = taken && isFresh ? taken : lease();
      const mine = taken;
      try {
        await mine;
      } catch (error) {
        if (taken === mine) taken = undefined;
        throw error;
      }
    },
    end() {
      jobs--;
    },
    async close() {
      if (jobs === 0) await release();
    },
    async isDead(other) {
      // Whoever can take the lease of another finds that he let it lapse.
      if (other === holder || !(await store.lease(other, holder, leaseMs, clock.now()))) return false;
      await store.release(other, holder);
      return true;
    },
  };
}
