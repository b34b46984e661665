import { sep } from 'node:path';
import { securityError } from '../../core/errors.ts';
import { printablePath } from '../../core/text.ts';
import type { Sandbox } from '../../workspace/sandbox.ts';
import { isSecretFile } from '../secret-files.ts';

/** Refuses places where a text of a model has no business: secret files, what git runs or believes, and what we do ourselves. */
export function checkTarget(sandbox: Pick<Sandbox, 'isOwn'>, path: string): void {
  const what = forbidden(sandbox, path);
  if (what === undefined) return;
  throw securityError(`${printablePath(path)} is ${what} and is not written.`, {
    next: 'Name another place inside the project.',
  });
}

function forbidden(sandbox: Pick<Sandbox, 'isOwn'>, path: string): string | undefined {
  if (path.split(sep).some(part => part.toLowerCase() === '.git')) return 'inside a .git directory';
  if (isSecretFile(path)) return 'on the list of secret files';
  return sandbox.isOwn(path) ? 'inside the data folder of Polylogue (POLYLOGUE_HOME)' : undefined;
}
