import { DatabaseSync } from 'node:sqlite';
import { workerData } from 'node:worker_threads';
import { startWriter } from '../../src/storage/sqlite/writer.ts';

/**
 * A program for the writer's thread: the write-ahead log is moved into the file every few transactions, not every 8 MB. With
 * `?NORMAL` the store does not wait for the disk, so that a judge of power losses can be seen to find what is lost.
 */
const isNormal = String(workerData?.program).endsWith('?NORMAL');

class SmallLog extends DatabaseSync {
  override exec(sql: string): void {
    const small = sql.replace(/wal_autocheckpoint = \d+/, 'wal_autocheckpoint = 24');
    super.exec(isNormal ? small.replace('synchronous = FULL', 'synchronous = NORMAL') : small);
  }
}

startWriter((file, options) => new SmallLog(file, options));
