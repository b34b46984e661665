import type { TracedSources, TraceInput } from '../call-graph/trace-sources.ts';
import { unifiedDiff } from '../diff.ts';
import type { Language, Outline, SymbolKind } from '../outline/outline.ts';
import { readOutline } from '../outline/read-outline.ts';
import type { DocumentFormat } from '../read-file.ts';
import { type DocumentText, documentText } from './document-text.ts';

/** What the kinds of jobs are given: work on the processor that may take longer than the other calls of a process should wait. */
export interface JobInputs {
  symbols: { path: string; language: Language; text: string };
  diff: { path: string; before: string; after: string };
  count: readonly string[];
  trace: TraceInput;
  document: { format: DocumentFormat; bytes: Uint8Array; maxChars?: number };
}

export type JobKind = keyof JobInputs;

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
  trace: TracedSources;
  document: DocumentText;
}

/** A job as it is sent to a thread: plain values, of which it gets copies. */
export interface JobMessage<Kind extends JobKind = JobKind> {
  kind: Kind;
  input: JobInputs[Kind];
}

export type JobAnswer<Kind extends JobKind> = { done: JobResults[Kind] } | { failure: string };

const jobs: { readonly [Kind in JobKind]: (input: JobInputs[Kind]) => Promise<JobResults[Kind]> } = {
  symbols: async ({ path, language, text }) => symbolsOf(await readOutline(path, language, text)),
  diff: async ({ path, before, after }) => unifiedDiff(path, before, after),
  count: async texts => (await import('./count-tokens.ts')).countO200k(texts),
  trace: async input => (await import('../call-graph/trace-sources.ts')).traceSources(input),
  document: ({ format, bytes, maxChars }) => documentText(format, bytes, maxChars),
};

/** Does one job in this thread. */
export const doJob = <Kind extends JobKind>({ kind, input }: JobMessage<Kind>): Promise<JobResults[Kind]> =>
  jobs[kind](input);

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
