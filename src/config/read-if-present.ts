import { readFileSync, statSync } from 'node:fs';

const maxBytes = 1_048_576;

/** The text of a settings file; undefined when there is none. Anything but a small regular file is an error. */
export function readIfPresent(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) return undefined;
  if (!stats.isFile()) throw new Error('it is not a regular file');
  if (stats.size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`);
  return readFileSync(path, 'utf8');
}
