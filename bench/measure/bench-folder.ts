import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder for all that one run writes. */
export interface BenchFolder {
  /** A new folder in it. */
  fresh(name: string): string;
  /** The environment every spawned server gets: nothing of the caller's settings, and one compile cache for all of them. */
  env: Record<string, string>;
  remove(): void;
}

export function openBenchFolder(): BenchFolder {
  const folder = mkdtempSync(join(tmpdir(), 'polylogue-bench-'));
  const home = join(folder, 'home');
  mkdirSync(home);
  return {
    fresh: name => mkdtempSync(join(folder, `${name}-`)),
    env: { PATH: process.env.PATH ?? '', HOME: home, NODE_COMPILE_CACHE: join(folder, 'compile-cache') },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
