import { DatabaseSync } from 'node:sqlite';

const { DATABASE = '' } = process.env;

/** Keeps what was said, in the database that DATABASE names, durably; without one in memory. */
export const append = DATABASE === '' ? inMemory() : inDatabase(DATABASE);

function inMemory(): (text: string) => void {
  const turns: string[] = [];
  return text => void turns.push(text);
}

function inDatabase(file: string): (text: string) => void {
  const database = new DatabaseSync(file);
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE turns (text TEXT)');
  const insert = database.prepare('INSERT INTO turns (text) VALUES (?)');
  return text => void insert.run(text);
}
