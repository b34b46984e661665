import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LineRange, Skip } from '../core/file.ts';
import { skip } from '../files/skip.ts';

/** What a caller named, as an absolute path. Nothing has been looked up yet. */
export interface PathReference {
  /** As the caller wrote it; the reply speaks of the file by this. */
  input: string;
  /** Absolute and without `..`; links are not resolved. */
  path: string;
  /** The lines after the path, as written: they may be out of order or beyond the end. */
  range?: LineRange;
  /** The path with what looked like a range left on. A file of that name wins over the range. */
  literal?: string;
}

const longest = 8_192;
const rangeSuffix = /^(.+):(\d{1,9})(?:-(\d{1,9}))?$/s;

/** Reads what a caller named: absolute or relative to `root`, `~/…`, a `file://` URL, each with `:10` or `:10-80` behind it. */
export function parsePathReference(input: string, root: string, home: string): PathReference | Skip {
  if (input.trim() === '') return skip(input, 'bad_path', 'The path is empty; name a file or a directory.');
  if (input.length > longest) return skip(input, 'bad_path', `A path has at most ${longest} characters.`);
  const plain = /^file:\/\//i.test(input) ? fromUrl(input) : { path: input };
  if ('problem' in plain) return skip(input, 'bad_path', plain.problem);
  if (plain.path.includes('\0')) return skip(input, 'bad_path', 'A path cannot contain a NUL character.');
  const literal = absolute(plain.path, root, home);
  if (literal === undefined) return skip(input, 'bad_path', 'The home directory is not known; write the path in full.');

  const match = rangeSuffix.exec(literal);
  if (!match) return { input, path: literal };
  const [, path = literal, first = '', last = first] = match;
  // resolved again, so that `dir/:10` and `dir:10` are the same directory
  return { input, path: resolve(path), range: { from: Number(first), to: Number(last) }, literal };
}

function fromUrl(input: string): { path: string } | { problem: string } {
  let url: URL;
  try {
    url = new URL(input);
  } catch {
    // the parser's own message does not help a caller
    return { problem: 'This is no valid file:// URL; write file:///absolute/path or the plain path.' };
  }
  if (url.hash !== '' || url.search !== '') {
    return { problem: 'A file:// URL takes no ? or #; write %3F or %23 if they are part of the name.' };
  }
  try {
    return { path: fileURLToPath(url) };
  } catch {
    return { problem: 'A file:// URL must name a file of this machine and cannot contain an encoded slash (%2F).' };
  }
}

function absolute(path: string, root: string, home: string): string | undefined {
  if (path !== '~' && !/^~[\\/]/.test(path)) return resolve(root, path);
  return home === '' ? undefined : join(home, path.slice(1));
}
