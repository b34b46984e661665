import { readlinkSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import native, { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { errorCode } from '../core/errors.ts';
import type { LineRange, Skip, SkipCode } from '../core/file.ts';
import { printablePath } from '../core/text.ts';

/**
 * Files that hold credentials, as patterns: `*` stands for any characters within one name; a pattern with folders must
 * match the end of the path. Upper and lower case are the same. The list is part of the documentation.
 */
export const secretFiles: readonly { title: string; patterns: readonly string[] }[] = [
  { title: 'Environment files', patterns: ['.env', '.env.*', '.env-*', '.env_*', '.env *', '*.env', '.envrc'] },
  {
    title: 'Private keys and key stores',
    patterns: [
      ...['id_rsa', 'id_dsa', 'id_ecdsa', 'id_ecdsa_sk', 'id_ed25519', 'id_ed25519_sk', '*.pem', '*.key', '*.p8'],
      ...['*.p12', '*.pfx', '*.ppk', '*.jks', '*.keystore', '.ssh/*', '.gnupg/*', '.gnupg/private-keys-v1.d/*'],
    ],
  },
  { title: 'Password databases', patterns: ['*.kdbx', '*.kdb', '.htpasswd', '.pgpass', '.my.cnf'] },
  {
    title: 'Credentials of tools',
    patterns: [
      ...['.npmrc', '.pypirc', '.netrc', '_netrc', '.git-credentials', '.dockercfg', '.docker/config.json'],
      ...['.kube/config', '.aws/credentials', '.azure/accesstokens.json', '.azure/msal_token_cache.json'],
      ...['application_default_credentials.json', 'gcloud/credentials.db', 'gcloud/access_tokens.db', 'gh/hosts.yml'],
      ...['.cargo/credentials', '.cargo/credentials.toml', '.gem/credentials', '.vault-token', '.s3cfg', '.boto'],
      ...['credentials.json', 'client_secret*.json', 'serviceaccountkey.json', 'credentials.tfrc.json'],
      ...['*.tfstate', '*.tfstate.backup', 'terraform.tfstate*'],
    ],
  },
];

/** Files that match the list above and hold no secret all the same. */
export const harmlessFiles: readonly string[] = [
  ...['.env*example', '.env*sample', '.env*template', '*example.env', '*sample.env', '*template.env'],
  ...['*.pub', '.ssh/config', '.ssh/known_hosts', '.ssh/known_hosts.old', '.ssh/authorized_keys'],
];

const isListed = matcher(secretFiles.flatMap(group => group.patterns));
const isHarmless = matcher(harmlessFiles);
const copySuffix = /(?:~|\.bak|\.old|\.orig|\.save)$/;

/**
 * The names of a path, in each way that a file system may read them: as they are written, without marks that are not seen, and
 * without what Windows leaves away, which is part of a name elsewhere. What one reading forbids is forbidden.
 */
export function readNames(path: string): string[][] {
  const written = path.replaceAll('\\', '/').toLowerCase();
  // Plain names are read in one way only.
  if (/^(?:[\w/@+,-]|\.(?!\/|$))*$/.test(written)) return [written.split('/').filter(Boolean)];
  const visible = written
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .toLowerCase();
  const end = /(?<=[^./\s])[.\s]+(?=\/|$)/g;
  const streamless = visible.replace(/(?<=[^/]):[^/]*/g, '');
  const readings = new Set([written, visible, visible.replace(end, ''), streamless.replace(end, '')]);
  return [...readings].map(names => names.split('/').filter(Boolean));
}

/** Whether a path is on the list, judged by its names alone. Copies (`.env.bak`, `id_rsa~`) count as what they copy. */
export const isSecretFile = (path: string): boolean =>
  readNames(path).some(names => {
    if (isHarmless(names)) return false;
    const name = names.at(-1) ?? '';
    const isCopy = copySuffix.test(name) && isListed([...names.slice(0, -1), name.replace(copySuffix, '')]);
    return isCopy || isListed(names);
  });

function matcher(patterns: readonly string[]): (names: readonly string[]) => boolean {
  const tests = patterns.map(pathTest);
  return names => tests.some(test => test(names));
}

/** Tells paths by their names that end with a pattern, or lie below one that ends with a slash. */
export function pathTest(pattern: string): (names: readonly string[]) => boolean {
  const isFolder = pattern.endsWith('/');
  const tests = pattern.replace(/\/$/, '').split('/').map(nameTest);
  return names => {
    const last = names.length - tests.length;
    for (let start = isFolder ? 0 : Math.max(0, last); start <= last; start++) {
      if (tests.every((test, at) => test(names[start + at] ?? ''))) return true;
    }
    return false;
  };
}

/** No pattern of the lists has more than one `*` in a name, so a prefix and a suffix are all there is to compare. */
function nameTest(pattern: string): (name: string) => boolean {
  const [before = '', after] = pattern.split('*');
  return name =>
    after === undefined
      ? name === pattern
      : name.length >= before.length + after.length && name.startsWith(before) && name.endsWith(after);
}

export function skip(path: string, code: SkipCode, reason: string): Skip {
  return { path: printablePath(path), code, reason };
}

/** Tells a refusal from what a function of this room answers otherwise. */
export const isSkip = <Other extends object>(outcome: Other | Skip): outcome is Skip =>
  'code' in outcome && 'reason' in outcome;

/** What paths mean on a system: `win32` or `posix` of node:path. */
type Paths = typeof native.posix;

/** Whether a path is a folder or lies in it, by their segments: `/srv/app-evil` is not in `/srv/app`. */
export function isIn(path: string, folder: string, { relative, sep, isAbsolute }: Paths = native): boolean {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** The way from a folder to a path, with `/` on every system. */
export const slashedFrom = (folder: string, path: string, { relative, sep }: Paths = native): string =>
  relative(folder, path).replaceAll(sep, '/');

/** Names that Windows keeps for devices, in every folder and whatever follows their first dot. */
export const devices = /(?:^|[\\/])(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[\d¹²³])\s*(?:[.:\\/]|$)/i;

/**
 * Whether Windows would leave its file systems for a path: a share of another machine, which would get a proof of the user's
 * password, a device, or a stream behind a colon. What a root holds is none of these. Links on the way are read one after the
 * other, as following one is all that it takes.
 */
export function leavesRoots(
  path: string,
  roots: readonly string[],
  paths: Paths = native,
  read: (link: string) => string = readlinkSync,
  left = 40,
): boolean {
  if (paths.sep !== '\\') return false;
  if (left === 0 || devices.test(path) || /^[^:]*:.*:|^[^:]{2,}:/s.test(path)) return true;
  if (/^[\\/]{2}/.test(path) && !roots.some(root => isIn(path, root, paths))) return true;
  let at = paths.parse(path).root;
  const names = path.slice(at.length).split(/[\\/]+/);
  for (const [depth, name] of names.entries()) {
    at = paths.join(at, name);
    try {
      const target = paths.resolve(paths.dirname(at), read(at), ...names.slice(depth + 1));
      return leavesRoots(target, roots, paths, read, left - 1);
    } catch {
      // It is no link.
    }
  }
  return false;
}

/** A path and the folders above it, the nearest first. */
export function* upwards(path: string): Generator<string> {
  for (let at = path; ; at = dirname(at)) {
    yield at;
    if (dirname(at) === at) return;
  }
}

/** Where a path really leads; what is not there is taken as it is written. */
export const realOf = (path: string): Promise<string> => realpath(path).catch(() => path);

/** `~/x` as a path in the home directory, where that is known; anything else as it is. */
export const expandHome = (path: string, home: string, { join }: Paths = native): string =>
  home !== '' && /^~(?:[\\/]|$)/.test(path) ? join(home, path.slice(1)) : path;

/** What a failed system call means for whoever named the path, by its codes. */
const failures: readonly (readonly [codes: string, SkipCode, reason: string])[] = [
  ['ENOENT ENOTDIR', 'not_found', 'File not found. Check the spelling and the base of relative paths.'],
  ['EACCES EPERM', 'unreadable', 'Permission denied. Change its permissions or name another file.'],
  ['ELOOP', 'unreadable', 'Its symbolic links lead in a circle or changed meanwhile; name the file itself.'],
  ['ENAMETOOLONG', 'bad_path', 'The path is longer than this system allows.'],
  ['ENXIO ENODEV EISDIR', 'not_regular', 'Not a regular file.'],
];

/** Puts a failed system call into words; anything that is no failed system call is thrown on. */
export function skipFor(path: string, error: unknown): Skip {
  const code = errorCode(error) ?? 'unknown error';
  const known = failures.find(([codes]) => codes.split(' ').includes(code));
  if (known) return skip(path, known[1], known[2]);
  if (error instanceof Error && 'errno' in error)
    return skip(path, 'unreadable', `The system could not read it (${code}); try again later.`);
  throw error;
}

export function tooLarge(path: string, bytes: number, maxBytes: number): Skip {
  const size = `It has ${bytes} bytes or more; at most ${maxBytes} are read.`;
  return skip(path, 'too_large', `${size} Cut out the part that matters into a smaller file.`);
}

export const notText = (path: string): Skip =>
  skip(path, 'binary', 'It is no text in UTF-8 or UTF-16; name a text file.');

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

const maxPathLength = 8_192;
const rangeSuffix = /^(.+):(\d{1,9})(?:-(\d{1,9}))?$/s;

/** Reads what a caller named: absolute or relative to `root`, `~/…`, a `file://` URL, each with `:10` or `:10-80` behind it. */
export function parsePathReference(input: string, root: string, home: string, paths = native): PathReference | Skip {
  if (input.trim() === '') return skip(input, 'bad_path', 'The path is empty; name a file or a directory.');
  if (input.length > maxPathLength) return skip(input, 'bad_path', `A path has at most ${maxPathLength} characters.`);
  const plain = /^file:\/\//i.test(input) ? fileAddress(input, paths.sep === '\\') : { path: input };
  if ('why' in plain) {
    const way = 'write file:///absolute/path, with %3F for ? and %23 for #, or the plain path';
    return skip(input, 'bad_path', `This file:// URL cannot be read, because ${plain.why}; ${way}.`);
  }
  if (plain.path.includes('\0')) return skip(input, 'bad_path', 'A path cannot contain a NUL character.');
  const named = expandHome(plain.path, home, paths);
  if (/^~(?:[\\/]|$)/.test(named))
    return skip(input, 'bad_path', 'The home directory is not known; write the path in full.');
  const literal = paths.resolve(root, named);
  const match = rangeSuffix.exec(literal);
  if (!match) return { input, path: literal };
  const [, path = literal, first = '', last = first] = match;
  // resolved again, so that `dir/:10` and `dir:10` are the same directory
  return { input, path: paths.resolve(path), range: { from: Number(first), to: Number(last) }, literal };
}

/** The path that a `file://` address names, or why it names none of this machine: `it …`. Decoded strictly; nothing is guessed. */
export function fileAddress(address: string, isWindows: boolean): { path: string } | { why: string } {
  if (address.length > maxPathLength) return { why: `it is longer than ${maxPathLength} characters` };
  if (!/^file:\/\//i.test(address)) return { why: 'it is no file:// address' };
  // To the parser of addresses it would be a slash.
  if (!isWindows && address.includes('\\')) return { why: 'it holds a backslash that is not encoded' };
  const url = URL.parse(address);
  if (!url) return { why: 'it is no address' };
  if (url.search !== '' || url.hash !== '' || /[?#]/.test(address)) return { why: 'it has a query or a fragment' };
  if (url.username !== '' || url.password !== '' || url.port !== '') return { why: 'it names a user or a port' };
  if (!isWindows && url.hostname !== '') return { why: 'it names another machine' };
  try {
    const path = fileURLToPath(url, { windows: isWindows });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    return /[\x00-\x1f\x7f]/.test(path) ? { why: 'it holds control characters' } : { path };
  } catch {
    if (/%2f/i.test(address)) return { why: 'it has an encoded slash (%2F)' };
    // Letters that are no UTF-8, a path of Windows without its drive.
    return { why: 'it is no path of this system' };
  }
}
