import { mkdir, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Sandbox } from '../../workspace/sandbox.ts';
import { errorCode, isSkip } from '../skip.ts';
import { writeFailure } from './write-failure.ts';

/**
 * The real path of a directory inside the roots; what is missing of it is made, one folder after the other, each judged by
 * where it really is. Throws SECURITY for anything else.
 */
export async function makeInside(sandbox: Sandbox, path: string): Promise<string> {
  const missing: string[] = [];
  let at = path;
  for (;;) {
    const located = await sandbox.locate(at);
    if (!isSkip(located) || located.code !== 'not_found' || dirname(at) === at) break;
    missing.unshift(basename(at));
    at = dirname(at);
  }
  let real = await sandbox.assertWithin(at);
  for (const name of missing) real = await makeFolder(sandbox, join(real, name));
  return real;
}

async function makeFolder(sandbox: Sandbox, path: string): Promise<string> {
  let made = true;
  try {
    await mkdir(path);
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw writeFailure(path, error);
    made = false;
  }
  try {
    return await sandbox.assertWithin(path);
  } catch (error) {
    // A folder on the way was swapped for a link: what was made where it leads is taken away again.
    if (made) await rmdir(path).catch(() => {});
    throw error;
  }
}
