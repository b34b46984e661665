import type { Trouble } from '../../storage/redis/failure.ts';
import type { ScriptKind } from '../../storage/redis/script.ts';

/** One line when a server begins to fail, and one when it is over, however many calls notice. */
export interface TroubleLog {
  met(node: string, trouble: Trouble, message: string): void;
  /** Something of this kind worked: a server without room, or that is read-only, answers reads all the same. */
  over(node: string, kind: ScriptKind): void;
}

export function troubleLog(onWarning: (message: string) => void): TroubleLog {
  const open = new Map<string, Trouble>();
  const refused = new Set<string>();
  return {
    met(node, trouble, message) {
      // What is refused once stays refused, while other commands go on.
      if (trouble === 'refused' ? refused.has(message) : open.get(node) === trouble) return;
      if (trouble === 'refused') refused.add(message);
      else open.set(node, trouble);
      onWarning(message);
    },
    over(node, kind) {
      const trouble = open.get(node);
      if (trouble === undefined) return;
      if ((trouble === 'full' && kind !== 'writes') || (trouble === 'read_only' && kind === 'reads')) return;
      open.delete(node);
      onWarning(`The Redis at ${node} works again.`);
    },
  };
}
