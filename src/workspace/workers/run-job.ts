import type { TraceInput } from '../call-graph/trace-sources.ts';
import { unifiedDiff } from '../diff.ts';
import type { Language, Outline, OutlineSymbol } from '../outline/outline.ts';
import { readOutline } from '../outline/read-outline.ts';
import type { DocumentFormat } from '../read-file.ts';
import { documentText } from './document-text.ts';

/** Something that a source file declares. */
export interface FoundSymbol extends Pick<OutlineSymbol, 'name' | 'kind' | 'from' | 'to'> {
  /** How many symbols it stands in. */
  depth: number;
}

/** Work on the processor that may take longer than the other calls of a process should wait. */
const jobs = {
  /** What a source file declares, in the order of the source. */
  symbols: async ({ path, language, text }: { path: string; language: Language; text: string }) =>
    symbolsOf(await readOutline(path, language, text)),
  /** What changed in a file. Undefined: the texts are too far apart. */
  diff: async ({ path, before, after }: { path: string; before: string; after: string }) =>
    unifiedDiff(path, before, after),
  /** Tokens by o200k, or a few more. */
  count: async (texts: readonly string[]) => (await import('./count-tokens.ts')).countO200k(texts),
  /** Where a target of sources leads. */
  trace: async (input: TraceInput) => (await import('../call-graph/trace-sources.ts')).traceSources(input),
  document: ({ format, bytes, maxChars }: { format: DocumentFormat; bytes: Uint8Array; maxChars?: number }) =>
    documentText(format, bytes, maxChars),
};

export type JobKind = keyof typeof jobs;
export type JobInputs = { [Kind in JobKind]: Parameters<(typeof jobs)[Kind]>[0] };
export type JobResults = { [Kind in JobKind]: Awaited<ReturnType<(typeof jobs)[Kind]>> };

/** A job as it is sent to a thread: plain values, of which it gets copies. */
export interface JobMessage<Kind extends JobKind = JobKind> {
  kind: Kind;
  input: JobInputs[Kind];
}

export type JobAnswer<Kind extends JobKind> = { done: JobResults[Kind] } | { failure: string };

const byKind: { readonly [Kind in JobKind]: (input: JobInputs[Kind]) => Promise<JobResults[Kind]> } = jobs;

/** Does one job in this thread. */
export const doJob = <Kind extends JobKind>({ kind, input }: JobMessage<Kind>): Promise<JobResults[Kind]> =>
  byKind[kind](input);

const deepest = 20;

/** What is declared at the top or as a member; names within functions are details. */
function symbolsOf({ symbols, scopes }: Outline): FoundSymbol[] {
  // What a namespace adds to a class of its name stands outside of it.
  const around = ({ owner, from, to }: OutlineSymbol): OutlineSymbol | undefined => {
    const found = symbols[owner ?? -1];
    return found && found.from <= from && to <= found.to ? found : undefined;
  };
  const depthOf = (symbol: OutlineSymbol, depth = 0): number => {
    const above = around(symbol);
    return above === undefined || depth === deepest ? depth : depthOf(above, depth + 1);
  };
  const outer = symbols.filter(
    ({ scope, owner }) => owner !== undefined || ['file', 'class'].includes(scopes[scope]?.kind ?? ''),
  );
  return outer
    .map((symbol): FoundSymbol => {
      const { name, kind, from, to, owner } = symbol;
      const ownerName = symbol.ownerName ?? (around(symbol) ? undefined : symbols[owner ?? -1]?.name);
      const fullName = ownerName === undefined ? name : `${ownerName}.${name}`;
      return { name: fullName, kind, from, to, depth: depthOf(symbol) };
    })
    .sort((a, b) => a.from - b.from || b.to - a.to);
}
