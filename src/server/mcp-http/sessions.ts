import type { Clock } from '../../core/ports.ts';
import type { ShareLimits } from '../guards/shares.ts';
import type { Session } from '../streamable/session.ts';

export interface SessionRules {
  /** Milliseconds without an open request or stream, after which a session ends. */
  idleMs: number;
  /** The most sessions; the caller's own one that was idle longest makes room for a new one. */
  most: number;
  /** Of these, the ones that one token may have at the moment; absent: all of them. */
  ofOne?(): number;
}

export interface Sessions {
  /** `full`: there is no room, for all belong to others or are in use. `share`: the caller has all that he may have, in use. */
  add(caller: string, open: (onClosed: () => void) => Promise<Session>): Promise<Session | 'full' | 'share'>;
  /** Somebody else's session is as unknown as one that never was. */
  find(id: string, caller: string): Session | undefined;
  /** Keeps a session from being idle until the result is called. */
  use(session: Session): () => void;
  count(): number;
  /** What is counted as sessions are has as many places. */
  limits: ShareLimits;
  /** Ends those of these callers: their calls go on without them, as after any loss. */
  end(callers: ReadonlySet<string>): Promise<void>;
  close(): Promise<void>;
}

interface Entry {
  session: Session;
  uses: number;
  stopTimer(): void;
}

export function createSessions(
  { idleMs, most, ofOne = () => most }: SessionRules,
  clock: Pick<Clock, 'after'>,
): Sessions {
  // The one that was idle longest stands first.
  const entries = new Map<string, Entry>();
  // Callers of sessions that are being opened, each as often as he does.
  const opening: string[] = [];

  function forget(id: string): void {
    entries.get(id)?.stopTimer();
    entries.delete(id);
  }

  function rest(entry: Entry): void {
    const { id } = entry.session;
    if (!entries.delete(id)) return;
    entries.set(id, entry);
    entry.stopTimer = clock.after(idleMs, () => void entry.session.close());
  }

  async function makeRoom(caller: string): Promise<'full' | 'share' | undefined> {
    const all = [...entries.values()].map(({ session }) => session.caller).concat(opening);
    const isShare = all.filter(name => name === caller).length > ofOne();
    if (all.length <= most && !isShare) return undefined;
    const idle = [...entries.values()].find(({ session, uses }) => session.caller === caller && uses === 0);
    if (!idle) return isShare ? 'share' : 'full';
    await idle.session.close();
    return undefined;
  }

  return {
    count: () => entries.size,
    limits: { ofOne, inAll: most },
    async add(caller, open) {
      // Counted before anything is waited for, so that many at once don't become too many.
      opening.push(caller);
      let id: string | undefined;
      try {
        const noRoom = await makeRoom(caller);
        if (noRoom) return noRoom;
        const session = await open(() => id !== undefined && forget(id));
        id = session.id;
        const entry: Entry = { session, uses: 0, stopTimer() {} };
        entries.set(id, entry);
        rest(entry);
        return session;
      } finally {
        opening.splice(opening.indexOf(caller), 1);
      }
    },
    find(id, caller) {
      const session = entries.get(id)?.session;
      return session?.caller === caller ? session : undefined;
    },
    use({ id }) {
      const entry = entries.get(id);
      if (!entry) return () => {};
      entry.uses += 1;
      entry.stopTimer();
      let over = false;
      return () => {
        if (over) return;
        over = true;
        entry.uses -= 1;
        if (entry.uses === 0) rest(entry);
      };
    },
    async end(callers) {
      const own = [...entries.values()].filter(({ session }) => callers.has(session.caller));
      await Promise.all(own.map(({ session }) => session.close()));
    },
    async close() {
      await Promise.all([...entries.values()].map(({ session }) => session.close()));
    },
  };
}
