import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { every } from '../../core/concurrency.ts';
import { asError, errorCode } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';

/** How a daemon is, as the file by its port says. */
const healthSchema = z.object({
  /** Epoch seconds of this report. */
  t: z.number(),
  pid: z.int().positive(),
  /** Where programs of this machine reach it. */
  url: z.url({ protocol: /^http$/ }),
  /** What it listens on. */
  host: z.string(),
  port: z.int().min(1).max(65_535),
  version: z.string(),
  /** Epoch seconds. */
  started_at: z.number(),
  status: z.enum(['ready', 'draining', 'not_ready']),
  reason: z.string().optional(),
  sessions: z.number(),
  calls_running: z.number(),
  calls_waiting: z.number(),
  /** Earlier releases did not tell it. */
  jobs_running: z.number().default(0),
  /** The file with the operator's token, where the daemon made it itself. */
  token_file: z.string().optional(),
  /** Why the tokens that hold are not those of the operator's file. */
  tokens_problem: z.string().optional(),
});

export type DaemonHealth = z.infer<typeof healthSchema>;

interface HealthFileOptions {
  folder: string;
  port: number;
  clock: Pick<Clock, 'after'>;
  report(): Promise<DaemonHealth>;
  /** Told once when the files can't be written; the daemon works on. */
  onError(error: Error): void;
}

const healthEveryMs = 10_000;

/** Writes `PORT.pid`, and `PORT.json` every 10 s, until both are removed. */
export async function keepHealthFile(options: HealthFileOptions) {
  const { folder, port, clock, report } = options;
  const files = { pid: join(folder, `${port}.pid`), health: join(folder, `${port}.json`) };
  let isTold = false;
  let isOver = false;
  let writing: Promise<unknown> = Promise.resolve();

  const attempt = (write: () => Promise<unknown>) =>
    write().catch(error => {
      // Who runs is found by its port too; a full disk is no reason to serve nobody.
      if (!isTold) options.onError(asError(error));
      isTold = true;
    });

  /** One after the other: the newest report has to be the last. */
  function write(): Promise<unknown> {
    writing = writing.then(() =>
      attempt(async () => isOver || replaceFile(files.health, `${JSON.stringify(await report())}\n`)),
    );
    return writing;
  }

  await attempt(async () => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await replaceFile(files.pid, `${process.pid}\n`);
  });
  await write();
  const stop = every(clock, healthEveryMs, write);
  return {
    /** Reports at once: something changed that somebody may look for. */
    write,
    async remove() {
      isOver = true;
      stop();
      await writing;
      await attempt(() => Promise.all(Object.values(files).map(file => rm(file, { force: true }))));
    },
  };
}

/** As a whole or not at all: whoever reads it meanwhile sees the one before. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { mode: 0o600, flag: 'wx' });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** A daemon that told of itself in the data folder. */
export type FoundDaemon = Awaited<ReturnType<typeof findDaemons>>[number];

/** Reports that were missed until a daemon counts as silent. */
const missed = 3;

/** Where the daemons of a data folder tell of themselves. */
export const healthFolder = (home: string): string => join(home, 'daemon');

/** The daemons of such a folder, by their ports. */
export async function findDaemons(folder: string, clock: Pick<Clock, 'now'>) {
  // No daemon ever ran here where there is no folder.
  const names = await readdir(folder).catch(() => []);
  const files = names.filter(name => /^\d{1,5}\.json$/.test(name)).map(name => readFile(join(folder, name), 'utf8'));
  // One went away in between, or somebody else's file has such a name.
  const read = files.map(file => file.then(text => healthSchema.parse(JSON.parse(text))).catch(() => undefined));
  return (await Promise.all(read))
    .flatMap(health => (health ? [{ ...health, state: stateOf(health, clock.now()) }] : []))
    .toSorted((a, b) => a.port - b.port);
}

/** `gone`: its process is there no more, and left its file behind. `silent`: it is there, and says nothing any more. */
function stateOf({ pid, t }: DaemonHealth, now: number): 'running' | 'silent' | 'gone' {
  if (!isRunning(pid)) return 'gone';
  return now - t * 1_000 > missed * healthEveryMs ? 'silent' : 'running';
}

export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Another user's process is there all the same.
    return errorCode(error) === 'EPERM';
  }
}
