import type { Clock } from '../../../core/ports.ts';
import type { FrameSession, Link } from '../../websocket/session.ts';

export interface FrameSessionsRules {
  /** Milliseconds that a session without a connection is kept, when there is something to keep. */
  awayMs: number;
  /** The most sessions; the caller's own one that was away longest makes room for a new one. */
  most: number;
  /** Of these, the ones that one token may have at the moment. */
  ofOne(): number;
}

/** The sessions of all callers. Nobody comes into another caller's, whatever id he names. */
export interface FrameSessions {
  /** The session of that id, to be attached to at once, and whether it was there already; undefined: no room for another. */
  enter(
    place: { caller: string; root: string; id: string },
    make: (scope: string) => FrameSession,
  ): { session: FrameSession; resumed: boolean } | undefined;
  leave(session: FrameSession, link: Link): void;
  /** Lets go of those of these callers. */
  end(callers: ReadonlySet<string>): void;
  count(): number;
}

interface Entry {
  session: FrameSession;
  caller: string;
  /** Present while it has no connection. */
  stopTimer?: () => void;
}

export function createFrameSessions(
  { awayMs, most, ofOne }: FrameSessionsRules,
  clock: Pick<Clock, 'after'>,
): FrameSessions {
  // Of those without a connection, the one that was away longest stands first.
  const entries = new Map<string, Entry>();
  const keys = new WeakMap<FrameSession, string>();

  function forget(key: string): void {
    const entry = entries.get(key);
    entry?.stopTimer?.();
    entry?.session.forget();
    entries.delete(key);
  }

  function makeRoom(caller: string): boolean {
    const own = [...entries.values()].filter(entry => entry.caller === caller).length;
    if (entries.size < most && own < ofOne()) return true;
    for (const [key, entry] of entries) {
      if (entry.caller !== caller || !entry.stopTimer) continue;
      forget(key);
      return true;
    }
    return false;
  }

  return {
    count: () => entries.size,
    enter({ caller, root, id }, make) {
      const key = JSON.stringify([caller, root, id]);
      const found = entries.get(key);
      if (!found && !makeRoom(caller)) return undefined;
      const entry = found ?? { session: make(key), caller };
      entry.stopTimer?.();
      entry.stopTimer = undefined;
      entries.set(key, entry);
      keys.set(entry.session, key);
      return { session: entry.session, resumed: found !== undefined };
    },
    end(callers) {
      for (const [key, { caller }] of [...entries]) if (callers.has(caller)) forget(key);
    },
    leave(session, link) {
      const key = keys.get(session) ?? '';
      const entry = entries.get(key);
      // Another one may have its place by now.
      if (!session.detach(link) || entry?.session !== session) return;
      entries.delete(key);
      entries.set(key, entry);
      if (session.isEmpty()) forget(key);
      else entry.stopTimer = clock.after(awayMs, () => forget(key));
    },
  };
}
