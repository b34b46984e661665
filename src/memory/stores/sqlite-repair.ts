import { existsSync, renameSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { isDamage, sqliteCode } from '../../storage/sqlite/failure.ts';
import { sqliteSalvage } from '../../storage/sqlite/salvage.ts';
import { sqliteSchema } from '../../storage/sqlite/schema.ts';

/** The finished replacement of a damaged file, between the moment it is whole and the moment it takes its place. */
export function salvagedName(file: string): string {
  return `${file}.salvaged`;
}

export interface RepairOptions {
  now: number;
  onWarning: (message: string) => void;
}

/**
 * Sets a damaged file aside, never deletes it, and puts a new one in its place with all that is intact. The caller holds
 * the lock of openers; `db` is its connection to the damaged file, which this closes.
 */
export function sqliteRepair(file: string, db: DatabaseSync, damage: string, { now, onWarning }: RepairOptions): void {
  keepOthersOut(db);
  const draft = `${file}.salvaging`;
  for (const leftover of [draft, `${draft}-journal`]) rmSync(leftover, { force: true });
  const fresh = new DatabaseSync(draft);
  let saved: string;
  try {
    sqliteSchema(fresh, draft);
    saved = sqliteSalvage(file, fresh, now);
  } finally {
    fresh.close();
  }
  renameSync(draft, salvagedName(file));
  // An open file cannot be renamed there; elsewhere the connection keeps writers waiting until the new file stands.
  if (process.platform === 'win32') db.close();
  const aside = freeName(`${file}.corrupt-${new Date(now).toISOString().replace(/[:.]/g, '-')}`);
  renameSync(file, aside);
  for (const suffix of ['-wal', '-shm', '-journal']) {
    if (existsSync(file + suffix)) renameSync(file + suffix, aside + suffix);
  }
  renameSync(salvagedName(file), file);
  if (db.isOpen) db.close();
  onWarning(`The file of the threads was damaged (${damage}) and was set aside as ${aside}. ${saved}`);
}

/** Writers of other processes wait, then find that the path leads to another file, and open that one. */
function keepOthersOut(db: DatabaseSync): void {
  try {
    db.exec('BEGIN IMMEDIATE');
  } catch (error) {
    // Too damaged to be locked: nobody else can write to it either.
    if (!isDamage(error) && sqliteCode(error) !== 1) throw error;
  }
}

function freeName(wish: string): string {
  let name = wish;
  for (let next = 2; existsSync(name); next++) name = `${wish}-${next}`;
  return name;
}
