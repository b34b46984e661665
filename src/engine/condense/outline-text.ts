import { safeCut } from '../../core/text.ts';
import { estimateTokens } from '../../core/tokens.ts';
import type { FoundSymbol } from '../../files/work/job.ts';

const longestLine = 120;

/**
 * What a file declares, a line each: its lines and how it begins. What has no room is left out from the inside: first the
 * members, then how things begin, then the last of them. Undefined when not even one fits.
 */
export function outlineText(text: string, symbols: readonly FoundSymbol[], maxTokens: number): string | undefined {
  if (symbols.length === 0) return undefined;
  const lines = text.split('\n');
  const outer = symbols.filter(({ depth }) => depth === 0);
  const full = (symbol: FoundSymbol) => entry(symbol, lines[symbol.from - 1]);
  const plain = (symbol: FoundSymbol) => entry(symbol, undefined);
  for (const [list, write] of [
    [symbols, full],
    [outer, full],
    [outer, plain],
  ] as const) {
    // Each line takes several tokens: what has far too many is not written to be thrown away.
    if (list.length > maxTokens) continue;
    const written = list.map(write).join('\n');
    if (estimateTokens(written) <= maxTokens) return written;
  }
  return firstOf(outer.slice(0, Math.max(1, maxTokens)).map(plain), outer.length, maxTokens);
}

function entry({ name, kind, from, to, depth }: FoundSymbol, source: string | undefined): string {
  const says = safeCut((source ?? '').trim().replace(/\s*\{$/, ''), longestLine);
  return `${from}-${to}│ ${'  '.repeat(depth)}${says.includes(name) ? says : `${kind} ${name}`}`;
}

function firstOf(entries: readonly string[], all: number, maxTokens: number): string | undefined {
  let low = 0;
  let high = entries.length;
  const cut = (count: number) => [...entries.slice(0, count), `… and ${all - count} more`].join('\n');
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (estimateTokens(cut(middle)) <= maxTokens) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? undefined : cut(low);
}
