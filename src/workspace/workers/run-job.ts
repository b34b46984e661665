import { unifiedDiff } from '../diff.ts';
import type { Language, Outline, SymbolKind } from '../outline/outline.ts';
import { readOutline } from '../outline/read-outline.ts';

/** Work on the processor that may take longer than the other calls of a process should wait. Plain values: threads get copies. */
export type Job =
  | { kind: 'symbols'; path: string; language: Language; text: string }
  | { kind: 'diff'; path: string; before: string; after: string }
  | { kind: 'count'; texts: readonly string[] };

/** Something that a source file declares. */
export interface FoundSymbol {
  name: string;
  kind: SymbolKind;
  /** Lines, from 1. */
  from: number;
  to: number;
  /** How many symbols it stands in. */
  depth: number;
}

/** What each kind of job comes to. */
export interface JobResults {
  /** In the order of the source. */
  symbols: FoundSymbol[];
  /** Undefined: the texts are too far apart. */
  diff: string | undefined;
  /** Tokens by o200k, or a few more. */
  count: number;
}

export type JobAnswer = { done: JobResults[Job['kind']] } | { failure: string };

/** Does one job in this thread. */
export async function doJob(job: Job): Promise<JobResults[Job['kind']]> {
  switch (job.kind) {
    case 'symbols':
      return symbolsOf(await readOutline(job.path, job.language, job.text));
    case 'diff':
      return unifiedDiff(job.path, job.before, job.after);
    case 'count':
      return (await import('./count-tokens.ts')).countO200k(job.texts);
  }
}

const deepest = 20;

/** What is declared at the top or as a member; names within functions are details. */
function symbolsOf({ symbols, scopes }: Outline): FoundSymbol[] {
  const depthOf = (owner: number | undefined): number => {
    let depth = 0;
    for (let at = owner; at !== undefined && depth < deepest; at = symbols[at]?.owner) depth++;
    return depth;
  };
  const outer = symbols.filter(({ scope }) => scopes[scope]?.kind === 'file' || scopes[scope]?.kind === 'class');
  return outer
    .map(({ name, kind, from, to, owner, ownerName }) => ({
      name: ownerName === undefined ? name : `${ownerName}.${name}`,
      kind,
      from,
      to,
      depth: depthOf(owner),
    }))
    .sort((a, b) => a.from - b.from || b.to - a.to);
}
