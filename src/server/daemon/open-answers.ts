import type { ServerResponse } from 'node:http';

/** Answers that are under way, by the names of those whose they are. */
export interface OpenAnswers {
  add(name: string, outgoing: ServerResponse): void;
  /** Ends those of these callers, in the midst of whatever they say. */
  end(names: ReadonlySet<string>): void;
}

export function createOpenAnswers(): OpenAnswers {
  const open = new Map<string, Set<ServerResponse>>();
  return {
    add(name, outgoing) {
      const own = open.get(name) ?? new Set();
      open.set(name, own.add(outgoing));
      outgoing.once('close', () => {
        own.delete(outgoing);
        if (own.size === 0 && open.get(name) === own) open.delete(name);
      });
    },
    end(names) {
      for (const name of names) for (const outgoing of [...(open.get(name) ?? [])]) outgoing.destroy();
    },
  };
}
