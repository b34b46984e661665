import { stat } from 'node:fs/promises';
import type { Product } from '../../app/app.ts';
import type { Finding } from './doctor-checks.ts';

/** What may be read, and whether it is there. */
export async function checkRoots({ readable: { roots, reason } }: Product): Promise<Finding[]> {
  const what = 'readable';
  if (roots.length === 0) {
    const next = 'Start it within a git repository, or add --roots with the directories to read.';
    return [{ state: 'warn', what, text: `no file: ${reason}`, next }];
  }
  const there = await Promise.all(roots.map(isDirectory));
  const missing = roots.filter((_root, index) => !there[index]);
  const found = roots.filter((_root, index) => there[index]);
  const next = 'Correct POLYLOGUE_ROOTS; nothing is read from what is not there.';
  return [
    ...(found.length > 0 ? [{ state: 'ok', what, text: `${found.join(', ')} (${reason})` } as const] : []),
    ...missing.map((root): Finding => ({ state: 'warn', what, text: `${root} is no directory (${reason})`, next })),
  ];
}

function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    stats => stats.isDirectory(),
    () => false,
  );
}
