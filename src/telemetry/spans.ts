/** A stretch of a text that is a secret. */
export interface Span {
  start: number;
  /** Behind its last character. */
  end: number;
  /** What it is, as the placeholder says it. */
  kind: string;
  /** How sure its kind is, 0 the surest: names the kind where finds overlap. */
  rank: number;
}

/** In order and without overlap: finds that share characters become one that covers them all. */
export function joinSpans(spans: readonly Span[]): Span[] {
  const joined: Span[] = [];
  for (const span of [...spans].sort((a, b) => a.start - b.start || a.rank - b.rank)) {
    const last = joined.at(-1);
    if (!last || span.start >= last.end) {
      joined.push({ ...span });
      continue;
    }
    last.end = Math.max(last.end, span.end);
    if (span.rank < last.rank) {
      last.rank = span.rank;
      last.kind = span.kind;
    }
  }
  return joined;
}
