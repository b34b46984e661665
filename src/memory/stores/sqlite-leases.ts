import type { DatabaseSync } from 'node:sqlite';
import type { ThreadId } from '../../core/ids.ts';
import { type ProcessMarks, processMarks } from '../../storage/process-mark.ts';

export interface SqliteLeases {
  lease(id: ThreadId, holder: string, ttlMs: number, now: number): boolean;
  release(id: ThreadId, holder: string): void;
}

/** A lease that lasts longer than anybody takes one for was taken before the clock was put back. */
const clockSlackMs = 60_000;

/**
 * Leases in the store. Each carries the mark of its process, so that the lease of one that was killed falls at once, where
 * the system can tell, and not only when its time is over.
 */
export function sqliteLeases(db: DatabaseSync, marks: ProcessMarks = processMarks()): SqliteLeases {
  const take = db.prepare(
    `INSERT INTO leases (thread, holder, expires_at) VALUES (?, ?, ?)
     ON CONFLICT (thread) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
     WHERE holder = excluded.holder OR expires_at <= ?`,
  );
  const find = db.prepare('SELECT holder, expires_at FROM leases WHERE thread = ?');
  const giveBack = db.prepare('DELETE FROM leases WHERE thread = ? AND holder = ?');
  const named = (holder: string) => (marks.own === undefined ? holder : `${holder} ${marks.own}`);

  /** Whether the one who holds a thread will never give it back. */
  function isAbandoned(holder: string, expiresAt: number, latest: number): boolean {
    const state = marks.stateOf(holder.slice(holder.indexOf(' ') + 1));
    return state === 'gone' || (state === 'unknown' && expiresAt > latest);
  }

  return {
    lease(id, holder, ttlMs, now) {
      const taken = () => take.run(id, named(holder), now + ttlMs, now).changes === 1;
      if (taken()) return true;
      const row = find.get(id);
      const current = String(row?.holder);
      if (!isAbandoned(current, Number(row?.expires_at), now + ttlMs + clockSlackMs)) return false;
      giveBack.run(id, current);
      return taken();
    },
    release: (id, holder) => void giveBack.run(id, named(holder)),
  };
}
