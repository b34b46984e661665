import type { FileRecord } from '../core/file.ts';
import { printablePath, safeCut } from '../core/text.ts';
import type { StoredTurn } from '../core/thread.ts';
import { estimateTokens } from '../core/tokens.ts';

/** What a reader of a summary must not miss: decisions, causes, constraints, open questions. */
const weighty =
  /\b(decid\w*|decision|agree\w*|chos\w*|must|never|always|only|because|cause\w*|root|fix\w*|bug|fail\w*|error|risk\w*|constraint\w*|require\w*|conclu\w*|recommend\w*|open question|unknown|next)\b/i;
const pathLike = /[\w./-]+\.[a-z]{1,5}\b(:\d+)?/;

/**
 * A summary without a model: of each turn its first line and the lines that carry decisions, causes, paths and numbers, in
 * order, the newest exchanges in more detail. At most `budget` tokens.
 */
export function extract(turns: readonly StoredTurn[], budget: number): string {
  const files = filesLine(turns);
  let left = budget - estimateTokens(files);
  const lines: string[] = [];
  // Newest first gets its share first; each turn gets half of what is left at the most, so the oldest still get a line.
  for (const turn of turns.toReversed()) {
    const allowance = Math.max(24, Math.min(Math.floor(left / 2), Math.floor((budget / turns.length) * 2)));
    const line = `- ${labelOf(turn)}: ${digest(turn.content, allowance)}`;
    const cost = estimateTokens(line) + 1;
    if (cost > left) break;
    left -= cost;
    lines.push(line);
  }
  const leftOut = turns.length - lines.length;
  const note = leftOut > 0 ? `- (${leftOut} earlier turns are not summarised; they are in the store)\n` : '';
  return `${note}${lines.toReversed().join('\n')}${files}`;
}

function labelOf(turn: StoredTurn): string {
  return turn.role === 'user' ? `turn ${turn.seq}, ${turn.toolName}` : `answer by ${turn.modelName ?? 'a model'}`;
}

/** The files that turns brought along, as the last line of a summary; empty where there were none. */
export function filesLine(turns: readonly StoredTurn[]): string {
  const shown = (file: FileRecord) => file.form !== 'deleted';
  const paths = [...new Set(turns.flatMap(turn => turn.files.filter(shown).map(file => file.path)))];
  return paths.length === 0 ? '' : `\nFiles discussed: ${paths.slice(-40).map(printablePath).join(', ')}`;
}

function digest(content: string, tokens: number): string {
  const lines = content
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('```'));
  const picked = new Set([0]);
  const byWeight = lines.map((line, index) => ({ index, weight: weightOf(line) })).sort((a, b) => b.weight - a.weight);
  let left = tokens - estimateTokens(lines[0] ?? '');
  for (const { index, weight } of byWeight) {
    const cost = estimateTokens(lines[index] ?? '');
    if (weight === 0 || cost > left) continue;
    left -= cost;
    picked.add(index);
  }
  const text = [...picked]
    .sort((a, b) => a - b)
    .map(index => lines[index])
    .join(' ');
  return estimateTokens(text) <= tokens ? text : `${safeCut(text, Math.floor(tokens * 2.5))}…`;
}

function weightOf(line: string): number {
  return (weighty.test(line) ? 2 : 0) + (pathLike.test(line) ? 1 : 0) + (/\d/.test(line) ? 0.5 : 0);
}
