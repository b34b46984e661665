import { realpath, stat } from 'node:fs/promises';
import { errorCode } from '../core/errors.ts';
import { fileAddress, isSkip } from './paths.ts';
import { isTooWide } from './roots.ts';
import type { Sandbox } from './sandbox.ts';

interface ListedRootsOptions {
  home: string;
  isWindows: boolean;
  /** They have to lie within it; absent: they may be any projects of this machine. */
  within?: Pick<Sandbox, 'locate'>;
}

/** Longer lists are no lists of projects. */
const maxListed = 64;

/** Which of the directories that a client lists, as `file://` addresses, can be roots: their real paths, in its order, each once. */
export async function listedRoots(addresses: readonly string[], options: ListedRootsOptions) {
  const read = async (address: string) => ({ address, ...(await judge(address, options)) });
  const judged = await Promise.all(addresses.slice(0, maxListed).map(read));
  const roots = new Set(judged.flatMap(each => ('path' in each ? [each.path] : [])));
  const refused = judged.flatMap(each => ('why' in each ? [each] : []));
  if (addresses.length > maxListed)
    refused.push({ address: 'the rest', why: `a client lists ${maxListed} roots at most` });
  return { roots: [...roots], refused };
}

async function judge(address: string, { home, isWindows, within }: ListedRootsOptions) {
  const named = fileAddress(address, isWindows);
  if ('why' in named) return named;
  if (within) {
    const found = await within.locate(named.path);
    if (isSkip(found)) return { why: 'it is not within what this client may read' };
    return found.kind === 'directory' ? { path: found.path } : { why: 'it is no directory' };
  }
  try {
    const path = await realpath(named.path);
    if (!(await stat(path)).isDirectory()) return { why: 'it is no directory' };
    return (await isTooWide(path, home)) ? { why: 'it holds far more than a project' } : { path };
  } catch (error) {
    // A directory that can't be looked at can't be read either.
    if (errorCode(error) === undefined) throw error;
    return { why: 'it is not there' };
  }
}
