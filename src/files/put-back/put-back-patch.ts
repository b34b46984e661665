import { securityError } from '../../core/errors.ts';
import { type PutBack, putBack } from '../../workspace/restore-secrets.ts';
import type { Originals } from './originals.ts';

/** A patch that may be applied: every masked secret in it is the real one again. Throws SECURITY where one can't be found. */
export function putBackPatch(patch: string, originals: Originals): Omit<PutBack, 'left'> {
  const { text, count, left } = putBack(patch, originals);
  const [first] = left;
  if (!first) return { text, count };
  const lines = [...new Set(left.map(({ line }) => line))].slice(0, 10).join(', ');
  throw securityError(`The patch has ${first.placeholder} in place of a secret that is in no file of this thread.`, {
    class: 'masked',
    next: `Leave the masked lines out of the patch (lines ${lines} of it), or name the file that holds the secret and ask again.`,
    data: { lines: left.map(({ line }) => line).slice(0, 50) },
  });
}
