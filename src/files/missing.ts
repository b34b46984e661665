import { inParallel } from '../core/concurrency.ts';
import { parsePathReference } from '../workspace/paths.ts';
import type { Sandbox } from '../workspace/sandbox.ts';
import { isSkip } from './skip.ts';

const atOnce = 16;

/** Which of these paths name nothing inside the roots. Whether something outside them exists is not told. */
export async function missingPaths(
  sandbox: Sandbox,
  paths: readonly string[],
  { root, home }: { root: string; home: string },
): Promise<string[]> {
  const verdicts = await inParallel(paths, atOnce, async input =>
    (await exists(sandbox, input, root, home)) ? [] : [input],
  );
  return verdicts.flat();
}

async function exists(sandbox: Sandbox, input: string, root: string, home: string): Promise<boolean> {
  const reference = parsePathReference(input, root, home);
  if (isSkip(reference)) return false;
  for (const path of [reference.path, reference.literal]) {
    if (path === undefined) continue;
    const located = await sandbox.locate(path);
    // What may not be read is not told apart from what is there.
    if (!isSkip(located) || located.code !== 'not_found') return true;
  }
  return false;
}
