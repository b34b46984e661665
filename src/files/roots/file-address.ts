import { fileURLToPath } from 'node:url';

const longest = 8_192;

/** The path that a `file://` address names, or why it names none of this machine: `it …`. Decoded strictly; nothing is guessed. */
export function fileAddress(address: string, isWindows: boolean): { path: string } | { why: string } {
  if (address.length > longest) return { why: `it is longer than ${longest} characters` };
  if (!/^file:\/\//i.test(address)) return { why: 'it is no file:// address' };
  // To the parser of addresses it would be a slash.
  if (!isWindows && address.includes('\\')) return { why: 'it holds a backslash that is not encoded' };
  const url = URL.parse(address);
  if (!url) return { why: 'it is no address' };
  if (url.search !== '' || url.hash !== '' || /[?#]/.test(address)) return { why: 'it has a query or a fragment' };
  if (url.username !== '' || url.password !== '' || url.port !== '') return { why: 'it names a user or a port' };
  if (!isWindows && url.hostname !== '') return { why: 'it names another machine' };
  return decoded(url, isWindows);
}

function decoded(url: URL, isWindows: boolean): { path: string } | { why: string } {
  try {
    const path = fileURLToPath(url, { windows: isWindows });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    return /[\x00-\x1f\x7f]/.test(path) ? { why: 'it holds control characters' } : { path };
  } catch {
    // Encoded slashes, letters that are no UTF-8, a path of Windows without its drive.
    return { why: 'it is no path of this system' };
  }
}
