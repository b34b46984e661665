import type { Clock } from '../../domain/ports.ts';
import type { Session } from './session.ts';

export interface SessionRules {
  /** Milliseconds without an open request or stream, after which a session ends. */
  idleMs: number;
  /** The most sessions; the caller's own one that was idle longest makes room for a new one. */
  most: number;
}

export interface Sessions {
  /** Undefined when there is no room: all sessions of this caller are in use, or all belong to others. */
  add(caller: string, open: (onClosed: () => void) => Promise<Session>): Promise<Session | undefined>;
  /** Somebody else's session is as unknown as one that never was. */
  find(id: string, caller: string): Session | undefined;
  /** Keeps a session from being idle until the result is called. */
  use(session: Session): () => void;
  count(): number;
  close(): Promise<void>;
}

interface Entry {
  session: Session;
  uses: number;
  stopTimer(): void;
}

export function createSessions({ idleMs, most }: SessionRules, clock: Pick<Clock, 'after'>): Sessions {
  // The one that was idle longest stands first.
  const entries = new Map<string, Entry>();
  let opening = 0;

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

  async function makeRoom(caller: string): Promise<boolean> {
    if (entries.size + opening <= most) return true;
    const idle = [...entries.values()].find(({ session, uses }) => session.caller === caller && uses === 0);
    await idle?.session.close();
    return idle !== undefined;
  }

  return {
    count: () => entries.size,
    async add(caller, open) {
      // Counted before anything is waited for, so that many at once don't become too many.
      opening += 1;
      let id: string | undefined;
      try {
        if (!(await makeRoom(caller))) return undefined;
        const session = await open(() => id !== undefined && forget(id));
        id = session.id;
        const entry: Entry = { session, uses: 0, stopTimer() {} };
        entries.set(id, entry);
        rest(entry);
        return session;
      } finally {
        opening -= 1;
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
    async close() {
      await Promise.all([...entries.values()].map(({ session }) => session.close()));
    },
  };
}
