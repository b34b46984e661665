import { DatabaseSync } from 'node:sqlite';
import { startWriter } from '../../src/storage/sqlite/writer.ts';

/** A program for the writer's thread: SQLite on a disk that has room for a million bytes. */
startWriter((file, { timeout }) => {
  const db = new DatabaseSync(file, { timeout });
  db.exec(`PRAGMA max_page_count = ${Math.floor(1_000_000 / 4_096)}`);
  return db;
});
