import type { FoundSymbol, Job, JobResults } from '../../files/work/job.ts';
import { unifiedDiff } from '../diff.ts';
import type { Outline } from '../outline/outline.ts';
import { readOutline } from '../outline/read-outline.ts';

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
