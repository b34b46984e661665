import { every } from '../../core/concurrency.ts';
import { warnFrom } from '../../core/errors.ts';
import type { LeaseOptions } from '../../threads/locks.ts';

/** Tells the other processes of the store that this one lives, for as long as it has calls or jobs, and a beat longer. */
export type ProcessLease = ReturnType<typeof createProcessLease>;

/** A job whose process died is found out after this long. */
const leaseMs = 6_000;

const beatMs = 2_000;

export function createProcessLease({ store, clock, emit, holder }: LeaseOptions) {
  const warn = warnFrom(emit, 'jobs');
  let jobs = 0;
  let stop: (() => void) | undefined;
  /** The lease as it was taken; jobs that begin before the next beat need not take it again. */
  let taken: Promise<unknown> | undefined;

  /** Until when the others see it, as far as is known here (monotonic milliseconds). */
  let heldUntil = 0;
  const waiting = new Set<() => void>();

  async function lease(unhurried: boolean): Promise<void> {
    const before = heldUntil;
    const until = clock.monotonic() + leaseMs;
    heldUntil = until;
    let isMine = false;
    try {
      isMine = await store.lease(holder, holder, leaseMs, clock.storeTime(), unhurried);
    } finally {
      if (!isMine && heldUntil === until) heldUntil = before;
    }
  }

  function beat(): void {
    const due = [...waiting];
    waiting.clear();
    for (const run of due) run();
    if (jobs === 0) return void release(true);
    // The work goes on: when the store comes back in time nobody has noticed, else its end says what became of it.
    lease(true).catch(warn);
  }

  async function release(unhurried: boolean): Promise<void> {
    stop?.();
    stop = undefined;
    if (!taken) return;
    taken = undefined;
    heldUntil = 0;
    await store.release(holder, holder, unhurried).catch(warn);
  }

  return {
    holder,
    /**
     * Resolves when the others can see it. Where it rejects, the job began all the same, and is to end. `unhurried`: what is
     * stored next takes it along.
     */
    async begin(unhurried = false): Promise<void> {
      jobs++;
      stop ??= every(clock, beatMs, beat);
      // Less is left of it only where the last beats failed: it may lapse, or have lapsed, before the next one.
      const isFresh = heldUntil - clock.monotonic() > beatMs;
      taken = taken && isFresh ? taken : lease(unhurried);
      const mine = taken;
      try {
        await mine;
      } catch (error) {
        if (taken === mine) taken = undefined;
        throw error;
      }
    },
    end(): void {
      jobs--;
    },
    /** Runs what can wait with the next beat, whose write takes its own along; at once where there is no beat. */
    atBeat(run: () => void): void {
      if (stop) waiting.add(run);
      else run();
    },
    /** Lets the others see at once that it has no jobs; one that still has some says so on. */
    async close(): Promise<void> {
      if (jobs === 0) await release(false);
    },
    /** Whether a process is dead: nobody renews its lease any more. */
    async isDead(other: string): Promise<boolean> {
      // Whoever can take the lease of another finds that he let it lapse.
      if (other === holder || !(await store.lease(other, holder, leaseMs, clock.storeTime()))) return false;
      await store.release(other, holder);
      return true;
    },
  };
}
