import { isAppError } from '../../core/errors.ts';
import type { Clock, Emit } from '../../core/ports.ts';
import type { Store } from '../../storage/store.ts';

/** `path`: `threads/ID` or `jobs/ID`. */
export type ChangeListener = (path: string) => void;

/** Which threads and jobs changed, whichever process changed them. Looks at the store while somebody watches, and only then. */
export interface Changes {
  /** Calls `listener` until `signal` is aborted. Resolves once nothing is missed any more; never rejects. */
  watch(owner: string, listener: ChangeListener, signal: AbortSignal): Promise<void>;
  /** Looks now, because this process changed something. */
  look(): void;
}

/** What another process changed is noticed after this long. */
const pollMs = 1_000;
/** The newest threads and jobs that are looked at: more than change between two looks. */
const window = 200;

interface Watched {
  listeners: Set<ChangeListener>;
  /** Path → a mark of its last change. Absent: not looked at yet. */
  known?: ReadonlyMap<string, string>;
}

export function createChanges(options: { store: Store; clock: Clock; emit: Emit }): Changes {
  const { clock, emit } = options;
  const owners = new Map<string, Watched>();
  let last = Promise.resolve();
  let mark: string | undefined;
  let waiting = false;
  let failing = false;
  let stopTimer = () => {};

  /** Looks follow each other, so that no change is told twice. */
  function look(): Promise<void> {
    if (waiting) return last;
    waiting = true;
    last = last.then(lookOnce).then(
      () => {
        failing = false;
      },
      error => {
        // The next look finds what this one could not, and one word about it is enough.
        if (!failing)
          emit({ type: 'warning', where: 'resources', message: String(isAppError(error) ? error.message : error) });
        failing = true;
        mark = undefined;
      },
    );
    return last;
  }

  async function lookOnce(): Promise<void> {
    waiting = false;
    if (owners.size === 0) return;
    // Taken first: what changes while the lists are read is found by the next look.
    const now = await options.store.mark();
    const changed = now !== mark;
    mark = now;
    for (const [owner, watched] of owners) {
      if (!changed && watched.known) continue;
      const state = await stateOf(options.store, owner, clock.now());
      const paths = watched.known ? differences(watched.known, state) : [];
      watched.known = state;
      for (const path of paths) for (const listener of watched.listeners) listener(path);
    }
  }

  function pollLater(): void {
    stopTimer = clock.after(pollMs, () => {
      void look();
      pollLater();
    });
  }

  function forget(owner: string, listener: ChangeListener): void {
    const watched = owners.get(owner);
    watched?.listeners.delete(listener);
    if (watched?.listeners.size === 0) owners.delete(owner);
    if (owners.size === 0) stopTimer();
  }

  return {
    watch(owner, listener, signal) {
      if (signal.aborted) return Promise.resolve();
      if (owners.size === 0) pollLater();
      const watched = owners.get(owner) ?? { listeners: new Set() };
      owners.set(owner, watched);
      watched.listeners.add(listener);
      signal.addEventListener('abort', () => forget(owner, listener), { once: true });
      return watched.known ? Promise.resolve() : look();
    },
    look() {
      if (owners.size > 0) void look();
    },
  };
}

async function stateOf(store: Store, owner: string, now: number): Promise<ReadonlyMap<string, string>> {
  const query = { owner, limit: window, now };
  const [heads, jobs] = await Promise.all([store.list(query), store.jobs(query)]);
  return new Map([
    ...heads.map(({ id, seq, updatedAt }) => [`threads/${id}`, `${updatedAt} ${seq}`] as const),
    ...jobs.map(({ id, status, updatedAt }) => [`jobs/${id}`, `${updatedAt} ${status}`] as const),
  ]);
}

/** What is new, changed or gone. One that was only pushed out of the window counts too: who reads it again finds it as it was. */
function differences(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const gone = [...before.keys()].filter(path => !after.has(path));
  return [...[...after].filter(([path, now]) => before.get(path) !== now).map(([path]) => path), ...gone];
}
