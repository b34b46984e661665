import { sep } from 'node:path';
import { securityError } from '../../domain/error.ts';
import { printablePath } from '../../domain/text.ts';
import { isSecretFile } from '../secret-files.ts';

/** Refuses places where a text of a model has no business: secret files, and what git runs or believes. */
export function checkTarget(path: string): void {
  const inGit = path.split(sep).some(part => part.toLowerCase() === '.git');
  if (!inGit && !isSecretFile(path)) return;
  const what = inGit ? 'inside a .git directory' : 'on the list of secret files';
  throw securityError(`${printablePath(path)} is ${what} and is not written.`, {
    next: 'Name another place inside the project.',
  });
}
