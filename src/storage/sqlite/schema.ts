import type { DatabaseSync } from 'node:sqlite';
import { configError, storageError } from '../../core/errors.ts';

/** "PLOG": tells our files from those of other programs. */
const applicationId = 0x504c4f47;

/** The first release of SQLite without the bug that let several writers damage a WAL file. */
const oldestSqlite = [3, 51, 3] as const;

/**
 * Every row that counts ends in `body` and `seal` (sealed-record.ts); the other columns only repeat what indexes need.
 * Such tables keep their rowid, and columns that a later migration adds are never 64 characters of text: a damaged file is
 * read row by row without its schema.
 */
const migrations: readonly string[] = [
  `
  CREATE TABLE threads (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    parent TEXT,
    owner TEXT NOT NULL,
    workspace TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    seal TEXT NOT NULL
  );
  CREATE INDEX threads_by_owner ON threads (owner, updated_at);
  CREATE INDEX threads_by_workspace ON threads (owner, workspace, updated_at);
  CREATE INDEX threads_by_expiry ON threads (expires_at);
  CREATE INDEX threads_by_parent ON threads (parent) WHERE parent IS NOT NULL;

  CREATE TABLE origins (
    thread INTEGER PRIMARY KEY REFERENCES threads (n) ON DELETE CASCADE,
    body TEXT NOT NULL,
    seal TEXT NOT NULL
  );

  CREATE TABLE turns (
    n INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL REFERENCES threads (n) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    exchange TEXT NOT NULL,
    body TEXT NOT NULL,
    seal TEXT NOT NULL,
    UNIQUE (thread, seq)
  );
  CREATE INDEX turns_by_exchange ON turns (thread, exchange);

  CREATE TABLE exchanges (
    n INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL REFERENCES threads (n) ON DELETE CASCADE,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    seal TEXT NOT NULL,
    UNIQUE (thread, id)
  );

  CREATE TABLE compactions (
    n INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL REFERENCES threads (n) ON DELETE CASCADE,
    body TEXT NOT NULL,
    seal TEXT NOT NULL
  );
  CREATE INDEX compactions_by_thread ON compactions (thread);

  CREATE TABLE workflows (
    n INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL REFERENCES threads (n) ON DELETE CASCADE,
    tool TEXT NOT NULL,
    body TEXT NOT NULL,
    seal TEXT NOT NULL,
    UNIQUE (thread, tool)
  );

  CREATE TABLE blobs (
    n INTEGER PRIMARY KEY,
    sha TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    seal TEXT NOT NULL
  );
  CREATE TABLE blob_refs (
    thread INTEGER NOT NULL REFERENCES threads (n) ON DELETE CASCADE,
    sha TEXT NOT NULL REFERENCES blobs (sha),
    PRIMARY KEY (thread, sha)
  ) WITHOUT ROWID;
  CREATE INDEX blob_refs_by_sha ON blob_refs (sha);

  CREATE TABLE tombstones (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    seal TEXT NOT NULL
  );
  CREATE INDEX tombstones_by_time ON tombstones (at);

  CREATE TABLE leases (
    thread TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    expires_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX leases_by_expiry ON leases (expires_at);

  CREATE VIRTUAL TABLE turn_words USING fts5 (
    scope, words, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 0", prefix = '2 3'
  );
  `,
  `
  CREATE TABLE jobs (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    thread TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    seal TEXT NOT NULL
  );
  CREATE INDEX jobs_by_owner ON jobs (owner, created_at);
  CREATE INDEX jobs_by_thread ON jobs (thread) WHERE thread IS NOT NULL;
  CREATE INDEX jobs_by_expiry ON jobs (expires_at);
  `,
  `
  CREATE TABLE facts (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    expires_at INTEGER NOT NULL
  );
  CREATE INDEX facts_by_expiry ON facts (expires_at);
  `,
  `
  CREATE TABLE spend (
    n INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    day TEXT NOT NULL,
    thread TEXT,
    usd REAL NOT NULL,
    body TEXT NOT NULL,
    seal TEXT NOT NULL
  );
  CREATE INDEX spend_by_owner ON spend (owner, day, usd);
  CREATE INDEX spend_by_thread ON spend (thread, owner, usd) WHERE thread IS NOT NULL;
  CREATE INDEX spend_by_day ON spend (day);
  CREATE TABLE spend_holds (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    thread TEXT,
    usd REAL NOT NULL,
    expires_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  `,
];

/** The tables that cannot be rebuilt from others. */
export const durableTables = [
  'threads',
  'origins',
  'turns',
  'exchanges',
  'compactions',
  'workflows',
  'blobs',
  'blob_refs',
  'tombstones',
  'jobs',
  'spend',
] as const;

function numberOf(db: DatabaseSync, sql: string): number {
  const [value] = Object.values(db.prepare(sql).get() ?? {});
  return typeof value === 'number' ? value : 0;
}

/** Refuses a SQLite that damages files, another program's file, and one that a newer version of this program wrote. */
function refuseForeign(db: DatabaseSync, file: string): void {
  const version = String(Object.values(db.prepare('SELECT sqlite_version()').get() ?? {})[0]);
  if (isOlder(version.split('.').map(Number), oldestSqlite)) {
    throw configError(`This Node.js brings SQLite ${version}, which can damage files that several programs write to.`, {
      next: `Update Node.js to a release with SQLite ${oldestSqlite.join('.')} or newer.`,
    });
  }
  const owner = numberOf(db, 'PRAGMA application_id');
  const schema = numberOf(db, 'PRAGMA user_version');
  if (
    owner !== applicationId &&
    (owner !== 0 || schema !== 0 || numberOf(db, 'SELECT count(*) FROM sqlite_schema') > 0)
  ) {
    throw configError(`${file} is a database of another program.`, {
      next: 'Set POLYLOGUE_HOME to a directory of its own, or move that file away.',
    });
  }
  if (owner === applicationId && schema === 0) {
    throw storageError('corrupt', `${file} says that it is ours, but not in which form: both are written at once.`);
  }
  if (schema > migrations.length) {
    throw configError(
      `${file} was written by a newer version of this program (schema ${schema}; this version knows up to ${migrations.length}).`,
      { next: 'Update this program, or set POLYLOGUE_HOME to another directory to begin afresh.' },
    );
  }
}

function isOlder(version: readonly number[], than: readonly number[]): boolean {
  for (const [index, wanted] of than.entries()) {
    const part = version[index] ?? 0;
    if (part !== wanted) return part < wanted;
  }
  return false;
}

/** Brings a new or older file to the newest schema, in one transaction. */
export function sqliteSchema(db: DatabaseSync, file: string): void {
  refuseForeign(db, file);
  if (numberOf(db, 'PRAGMA user_version') === migrations.length) return;
  db.exec('BEGIN IMMEDIATE');
  try {
    for (const migration of migrations.slice(numberOf(db, 'PRAGMA user_version'))) db.exec(migration);
    db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${migrations.length}; COMMIT`);
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}
