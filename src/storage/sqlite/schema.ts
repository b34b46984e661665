import { hash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { wholeChange } from '../../core/concurrency.ts';
import { configError, storageError } from '../../core/errors.ts';
import { isOurs } from './salvage.ts';
import { onlyValue, threadNumber } from './tables.ts';

/** "PLOG": tells our files from those of other programs. */
const applicationId = 0x504c4f47;

/** The first release of SQLite without the bug that let several writers damage a WAL file. */
const oldestSqlite = '3.51.3';

/**
 * Every row that counts ends in `body` and `seal` (../records.ts); the other columns only repeat what indexes need.
 * Such tables keep their rowid, and columns that a later migration adds are never 64 characters of text: a damaged file is
 * read row by row without its schema. Each step changes the schema's text: a file whose version says otherwise is damaged.
 */
const migrations: readonly string[] = [
  // The tables that the fifth step empties are here as far as it reads them.
  `
  CREATE TABLE threads (n INTEGER PRIMARY KEY, id TEXT, updated_at INTEGER, body TEXT, seal TEXT);
  CREATE TABLE origins (thread INTEGER PRIMARY KEY, body TEXT, seal TEXT);
  CREATE TABLE turns (n INTEGER PRIMARY KEY, thread INTEGER, seq INTEGER, exchange TEXT, body TEXT, seal TEXT);
  CREATE TABLE exchanges (n INTEGER PRIMARY KEY, thread INTEGER, id TEXT, body TEXT, seal TEXT);
  CREATE TABLE compactions (n INTEGER PRIMARY KEY, thread INTEGER, body TEXT, seal TEXT);
  CREATE TABLE workflows (n INTEGER PRIMARY KEY, thread INTEGER, tool TEXT, body TEXT, seal TEXT);
  CREATE TABLE blobs (n INTEGER PRIMARY KEY, sha TEXT NOT NULL UNIQUE, body TEXT NOT NULL, seal TEXT NOT NULL);
  CREATE TABLE blob_refs (thread INTEGER, sha TEXT);
  CREATE TABLE tombstones (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, body TEXT NOT NULL, seal TEXT NOT NULL
  );
  CREATE INDEX tombstones_by_time ON tombstones (at);
  CREATE TABLE leases (thread TEXT PRIMARY KEY, holder TEXT NOT NULL, expires_at INTEGER NOT NULL) WITHOUT ROWID;
  `,
  `
  CREATE TABLE jobs (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, thread TEXT, created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL, body TEXT NOT NULL, seal TEXT NOT NULL
  );
  CREATE INDEX jobs_by_owner ON jobs (owner, created_at);
  CREATE INDEX jobs_by_thread ON jobs (thread) WHERE thread IS NOT NULL;
  CREATE INDEX jobs_by_expiry ON jobs (expires_at);
  `,
  'CREATE TABLE facts (n INTEGER PRIMARY KEY, key TEXT, body TEXT, expires_at INTEGER);',
  `
  CREATE TABLE spend (
    n INTEGER PRIMARY KEY, key TEXT, owner TEXT, day TEXT, thread TEXT, usd REAL, body TEXT, seal TEXT
  );
  CREATE TABLE spend_holds (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, thread TEXT, usd REAL NOT NULL, expires_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  `,
  // What a thread is made of is appended to one table, of which a change touches the end; what only lists and searches need
  // follows when they are asked for (thread-index.ts). The last record of a thread is its head, and there is one of these.
  `
  CREATE TABLE records (
    n INTEGER PRIMARY KEY, thread INTEGER NOT NULL, kind TEXT NOT NULL, exchange TEXT, body TEXT NOT NULL,
    seal TEXT NOT NULL
  );
  INSERT INTO records (thread, kind, body, seal)
    SELECT thread_number(id), 'origin', o.body, o.seal FROM origins o JOIN threads t ON t.n = thread ORDER BY t.n;
  INSERT INTO records (thread, kind, exchange, body, seal)
    SELECT thread_number(id), 'turn', exchange, u.body, u.seal FROM turns u JOIN threads t ON t.n = thread ORDER BY t.n, seq;
  INSERT INTO records (thread, kind, exchange, body, seal)
    SELECT thread_number(t.id), 'exchange', e.id, e.body, e.seal FROM exchanges e JOIN threads t ON t.n = thread ORDER BY e.n;
  INSERT INTO records (thread, kind, body, seal)
    SELECT thread_number(id), 'compaction', c.body, c.seal FROM compactions c JOIN threads t ON t.n = thread ORDER BY c.n;
  INSERT INTO records (thread, kind, body, seal)
    SELECT thread_number(id), 'head', body, seal FROM threads ORDER BY updated_at, n;
  CREATE INDEX records_by_thread ON records (thread);
  ALTER TABLE workflows RENAME TO old_workflows;
  CREATE TABLE workflows (
    n INTEGER PRIMARY KEY, thread INTEGER NOT NULL, tool TEXT NOT NULL, body TEXT NOT NULL, seal TEXT NOT NULL,
    UNIQUE (thread, tool)
  );
  INSERT INTO workflows
    SELECT w.n, thread_number(id), tool, w.body, w.seal FROM old_workflows w JOIN threads t ON t.n = thread;
  ALTER TABLE blob_refs RENAME TO old_blob_refs;
  CREATE TABLE blob_refs (
    thread INTEGER NOT NULL, sha TEXT NOT NULL REFERENCES blobs (sha), PRIMARY KEY (thread, sha)
  ) WITHOUT ROWID;
  INSERT INTO blob_refs SELECT thread_number(id), sha FROM old_blob_refs JOIN threads t ON t.n = thread;
  DROP TABLE old_workflows; DROP TABLE old_blob_refs; DROP TABLE compactions; DROP TABLE exchanges; DROP TABLE turns;
  DROP TABLE origins; DROP TABLE threads; DROP TABLE IF EXISTS turn_words; DROP INDEX IF EXISTS leases_by_expiry;
  CREATE INDEX blob_refs_by_sha ON blob_refs (sha);
  CREATE TABLE threads (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, parent TEXT, owner TEXT NOT NULL, workspace TEXT NOT NULL,
    updated_at INTEGER NOT NULL, expires_at INTEGER NOT NULL
  );
  CREATE INDEX threads_by_owner ON threads (owner, updated_at);
  CREATE INDEX threads_by_workspace ON threads (owner, workspace, updated_at);
  CREATE INDEX threads_by_expiry ON threads (expires_at);
  CREATE INDEX threads_by_parent ON threads (parent) WHERE parent IS NOT NULL;
  CREATE VIRTUAL TABLE turn_words USING fts5 (
    scope, words, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 0", prefix = '2 3'
  );
  CREATE TABLE indexed (name TEXT PRIMARY KEY, upto INTEGER NOT NULL) WITHOUT ROWID;
  INSERT INTO indexed VALUES ('threads', 0), ('words', 0);
  ALTER TABLE facts RENAME TO old_facts;
  CREATE TABLE facts (
    key TEXT PRIMARY KEY, n INTEGER NOT NULL, expires_at INTEGER NOT NULL, body TEXT NOT NULL
  ) WITHOUT ROWID;
  INSERT INTO facts SELECT key, n, expires_at, body FROM old_facts;
  DROP TABLE old_facts;
  ALTER TABLE spend RENAME TO old_spend;
  CREATE TABLE spend (
    n INTEGER PRIMARY KEY, owner TEXT NOT NULL, day TEXT NOT NULL, thread TEXT NOT NULL, key TEXT NOT NULL,
    usd REAL NOT NULL, body TEXT NOT NULL, seal TEXT NOT NULL
  );
  INSERT INTO spend SELECT n, owner, day, coalesce(thread, ''), key, usd, body, seal FROM old_spend;
  DROP TABLE old_spend;
  CREATE INDEX spend_by_owner ON spend (owner, day, thread, key, usd);
  `,
];

/** The beginnings of the checksums of what the steps above make, spaces left out. */
const newestSchema = `
  b6628ccf aae9eaea ad5c907a deb821b1 c60a0711 0c8a57e2 e4ccfcf0 b43c3f4f c64452db 055b4857 4036ce4f 20318418 5b81add5
  78cbaa1c b2ced418 ee3ead17 1a53e62b 22131626 68c7b318 235a7bbd 5a738ea7 e96d65e8 e1f82398 064840aa`;

/** The tables that cannot be rebuilt from others. */
export const durableTables = ['records', 'workflows', 'blobs', 'blob_refs', 'tombstones', 'jobs', 'spend'] as const;

/** A version as a text that is less than those of later ones. */
const ordered = (version: string): string => version.replace(/\d+/g, part => part.padStart(6, '0'));

/** Refuses a SQLite that damages files. */
function refuseOldSqlite(db: DatabaseSync): void {
  const version = String(onlyValue(db, 'SELECT sqlite_version()'));
  if (ordered(version) >= ordered(oldestSqlite)) return;
  throw configError(`This Node.js brings SQLite ${version}, which can damage files that several programs write to.`, {
    next: `Update Node.js to a release with SQLite ${oldestSqlite} or newer.`,
  });
}

/** The file's schema version. Refuses another program's file and a newer one, told from damaged ones of ours by tables and records. */
function versionOf(db: DatabaseSync, file: string): number {
  const owner = onlyValue(db, 'PRAGMA application_id');
  const version = Number(onlyValue(db, 'PRAGMA user_version'));
  const shadows = "name NOT GLOB 'sqlite_*' AND name NOT GLOB 'turn_words_*'";
  const found = db.prepare(`SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE ${shadows}`).all();
  const sums = new Set(found.map(row => hash('sha256', Object.values(row).join().replace(/\s/g, '')).slice(0, 8)));
  const own = newestSchema.trim().split(/\s+/);
  // What a person or a program for backups adds to the file does no harm.
  const isNewest = own.every(sum => sums.has(sum));
  if (
    owner === applicationId &&
    version > 0 &&
    version <= migrations.length &&
    isNewest === (version === migrations.length)
  )
    return version;
  if (owner === applicationId && version > migrations.length && !(isNewest && found.length === own.length))
    throw configError(
      `${file} was written by a newer version of this program (schema ${version}; this version knows up to ${migrations.length}).`,
      { next: 'Update this program, or set POLYLOGUE_HOME to another directory to begin afresh.' },
    );
  if (owner === applicationId || isNewest || isOurs(file))
    throw storageError('corrupt', 'its header or the definition of its tables is damaged');
  if (owner === 0 && version === 0 && found.length === 0) return 0;
  throw configError(`${file} belongs to another program.`, {
    next: 'Set POLYLOGUE_HOME to a separate directory, or move that file away.',
  });
}

/** Brings a new or older file to the newest schema, in one transaction. */
export function sqliteSchema(db: DatabaseSync, file: string): void {
  refuseOldSqlite(db);
  const version = versionOf(db, file);
  if (version === migrations.length) return;
  db.function('thread_number', { deterministic: true }, id => threadNumber(String(id)));
  wholeChange(db, () => {
    for (const migration of migrations.slice(version)) db.exec(migration);
    db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${migrations.length}`);
  });
}
