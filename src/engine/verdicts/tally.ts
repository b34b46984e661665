import type { JsonObject } from '../../core/json.ts';
import type { VerdictFacts } from '../modes/ask-many/verdicts.ts';

export interface Vote extends Pick<VerdictFacts, 'confidence' | 'position'> {
  label: string;
}

export interface Tally {
  /** How sure the panel is as a whole; `unknown` where no verdict said how sure it is. */
  level: 'high' | 'medium' | 'low' | 'unknown';
  /** Of the verdicts' own numbers, 0 to 10. */
  mean?: number;
  lowest?: number;
  highest?: number;
  /** Labels by position, the most frequent first. */
  positions: ReadonlyMap<string, readonly string[]>;
  /** The position of more verdicts than any other. */
  majority?: string;
  /** Labels of the verdicts that stand against the majority. */
  minority: readonly string[];
}

/** Counts the verdicts: what they hold, who stands apart, and how sure they are by their own numbers. */
export function tallyOf(votes: readonly Vote[]): Tally {
  const numbers = votes.flatMap(({ confidence }) => (confidence === undefined ? [] : [confidence]));
  const mean =
    numbers.length === 0 ? undefined : rounded(numbers.reduce((sum, next) => sum + next, 0) / numbers.length);
  const positions = positionsOf(votes);
  const [first, second] = [...positions];
  const majority = first && (!second || first[1].length > second[1].length) ? first[0] : undefined;
  const minority = [...positions].flatMap(([position, labels]) =>
    majority === undefined || position === majority ? [] : labels,
  );
  return {
    level: levelOf(mean, positions.size, first?.[1].length ?? 0, votes.length),
    ...(mean !== undefined && { mean, lowest: Math.min(...numbers), highest: Math.max(...numbers) }),
    positions,
    ...(majority !== undefined && { majority }),
    minority: minority.toSorted(),
  };
}

export function confidenceDocument({ level, mean, lowest, highest }: Tally): JsonObject {
  return { level, score: mean, lowest, highest };
}

function positionsOf(votes: readonly Vote[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { label, position } of votes) {
    if (position !== undefined) found.set(position, [...(found.get(position) ?? []), label]);
  }
  return new Map([...found].sort(([, a], [, b]) => b.length - a.length));
}

/** Sure models that contradict each other make no sure panel. */
function levelOf(mean: number | undefined, sides: number, largest: number, voters: number): Tally['level'] {
  if (mean === undefined) return 'unknown';
  if (mean < 5 || (sides > 1 && largest * 3 < voters * 2)) return 'low';
  return mean >= 7.5 && sides <= 1 ? 'high' : 'medium';
}

function rounded(value: number): number {
  return Number(value.toFixed(1));
}
