import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../core/ports.ts';
import { type DaemonHealth, healthEveryMs, healthSchema } from './health-file.ts';

/** A daemon that told of itself in the data folder. */
export interface FoundDaemon extends DaemonHealth {
  /** `gone`: its process is there no more, and left its file behind. `silent`: it is there, and says nothing any more. */
  state: 'running' | 'silent' | 'gone';
}

/** Reports that were missed until a daemon counts as silent. */
const missed = 3;

/** Where the daemons of a data folder tell of themselves. */
export function healthFolder(home: string): string {
  return join(home, 'daemon');
}

/** The daemons of such a folder, by their ports. */
export async function findDaemons(folder: string, clock: Pick<Clock, 'now'>): Promise<FoundDaemon[]> {
  const names = await namesIn(folder);
  const found = await Promise.all(names.map(name => readHealth(join(folder, name))));
  return found
    .flatMap(health => (health ? [{ ...health, state: stateOf(health, clock.now()) }] : []))
    .toSorted((a, b) => a.port - b.port);
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter(name => /^\d{1,5}\.json$/.test(name));
  } catch {
    // No daemon ever ran here.
    return [];
  }
}

async function readHealth(path: string): Promise<DaemonHealth | undefined> {
  try {
    return healthSchema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch {
    // It went away in between, or somebody else's file has such a name.
    return undefined;
  }
}

function stateOf({ pid, t }: DaemonHealth, now: number): FoundDaemon['state'] {
  if (!isThere(pid)) return 'gone';
  return now - t * 1_000 > missed * healthEveryMs ? 'silent' : 'running';
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Another user's process is there all the same.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
