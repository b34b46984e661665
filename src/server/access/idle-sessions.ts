import type { Clock } from '../../core/ports.ts';

export interface SessionRules {
  /** Milliseconds without a use, after which a session ends. */
  idleMs: number;
  /** The most sessions; a new one replaces the caller's own that was idle longest. */
  max: number;
  /** Of these, the ones that one token may have at the moment; absent: all of them. */
  perCaller?(): number;
}

interface Entry<Session> {
  session: Session;
  caller: string;
  uses: number;
  stopTimer(): void;
}

/** Sessions by key, each of one caller; `onEnd` hears of each that ends here. */
export function createIdleSessions<Session>(
  { idleMs, max, perCaller = () => max }: SessionRules,
  clock: Pick<Clock, 'after'>,
  onEnd: (session: Session) => unknown,
) {
  // Of those that nobody uses, the one that was idle longest stands first.
  const entries = new Map<string, Entry<Session>>();

  function remove(key: string): Entry<Session> | undefined {
    const entry = entries.get(key);
    entry?.stopTimer();
    entries.delete(key);
    return entry;
  }

  async function end(key: string): Promise<void> {
    const entry = remove(key);
    if (entry) await onEnd(entry.session);
  }

  async function endWhere(isMeant: (entry: Entry<Session>) => boolean): Promise<void> {
    await Promise.all([...entries].map(([key, entry]) => isMeant(entry) && end(key)));
  }

  /** A session that is not idle until `release` is called; `isSpent`: it need not be kept, if nobody else uses it. */
  function hold(key: string, entry: Entry<Session>) {
    entry.uses += 1;
    entry.stopTimer();
    let isOver = false;
    const release = (isSpent = false) => {
      if (isOver) return;
      isOver = true;
      entry.uses -= 1;
      // Another one may have its place by now.
      if (entry.uses > 0 || entries.get(key) !== entry) return;
      if (isSpent) return void end(key);
      entries.delete(key);
      entries.set(key, entry);
      entry.stopTimer = clock.after(idleMs, () => void end(key));
    };
    return { session: entry.session, release };
  }

  function makeRoom(caller: string): 'full' | 'share' | undefined {
    const own = [...entries].filter(([, entry]) => entry.caller === caller);
    const isShare = own.length >= perCaller();
    if (!isShare && entries.size < max) return undefined;
    const idle = own.find(([, { uses }]) => uses === 0);
    if (!idle) return isShare ? 'share' : 'full';
    void end(idle[0]);
    return undefined;
  }

  return {
    count: () => entries.size,
    /** What is counted as sessions are has as many places. */
    limits: { perCaller, inAll: max },
    /** Undefined: there is none. Somebody else's session is as unknown as one that never was. */
    use(key: string, caller: string) {
      const entry = entries.get(key);
      return entry?.caller === caller ? hold(key, entry) : undefined;
    },
    /** `full`: there is no room, for all belong to others or are in use. `share`: the caller has all that he may have, in use. */
    add(key: string, caller: string, make: () => Session) {
      const noRoom = makeRoom(caller);
      if (noRoom) return noRoom;
      const entry: Entry<Session> = { session: make(), caller, uses: 0, stopTimer() {} };
      entries.set(key, entry);
      return hold(key, entry);
    },
    /** For one that ended by itself. */
    remove: (key: string) => void remove(key),
    end: (callers: ReadonlySet<string>) => endWhere(({ caller }) => callers.has(caller)),
    endAll: () => endWhere(() => true),
  };
}
