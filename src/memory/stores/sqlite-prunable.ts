import type { DatabaseSync } from 'node:sqlite';
import type { Prunable, Unused } from '../../storage/store.ts';

/** A thread whose time is over, as a condition on `threads`; `endedParameters` fills it in. */
export const ended = '(expires_at <= :now OR (owner = :owner AND updated_at < :since))';

/** The earliest time there is leaves nobody out. */
export function endedParameters(now: number, unused: Unused | undefined): Record<string, string | number> {
  return { ':now': now, ':owner': unused?.owner ?? '', ':since': unused?.since ?? Number.MIN_SAFE_INTEGER };
}

/** Those that go: whose time is over, but for originals of forks that stay. */
const going = `
  WITH RECURSIVE
    kept (n, parent) AS (
      SELECT n, parent FROM threads WHERE NOT ${ended}
      UNION SELECT t.n, t.parent FROM threads t JOIN kept k ON t.id = k.parent
    ),
    going (n) AS (SELECT n FROM threads EXCEPT SELECT n FROM kept)`;
const tables = ['threads', 'origins', 'turns', 'exchanges', 'compactions', 'workflows'];
const rowBytes = tables.map(table => {
  const column = table === 'threads' ? 'n' : 'thread';
  return `(SELECT coalesce(sum(octet_length(body)), 0) FROM ${table} WHERE ${column} IN (SELECT n FROM going))`;
});

/** Counts what a prune would take. */
export function sqlitePrunable(db: DatabaseSync): (now: number, unused?: Unused) => Prunable {
  const threads = db.prepare(
    `${going} SELECT (SELECT count(*) FROM going) AS threads, ${rowBytes.join(' + ')} AS bytes`,
  );
  const blobs = db.prepare(
    `${going}, lost (sha) AS (
       SELECT sha FROM blob_refs WHERE thread IN (SELECT n FROM going)
       EXCEPT SELECT sha FROM blob_refs WHERE thread NOT IN (SELECT n FROM going)
     )
     SELECT count(*) AS blobs, coalesce(sum(octet_length(body)), 0) AS bytes FROM blobs WHERE sha IN (SELECT sha FROM lost)`,
  );
  return (now, unused) => {
    const which = endedParameters(now, unused);
    const rows = threads.get(which);
    const texts = blobs.get(which);
    return {
      threads: Number(rows?.threads),
      blobs: Number(texts?.blobs),
      bytes: Number(rows?.bytes) + Number(texts?.bytes),
    };
  };
}
