import { setImmediate as nextTurn } from 'node:timers/promises';
import { throwIfAborted } from '../../core/errors.ts';
import type { LineRange } from '../../core/file.ts';
import { safeCut } from '../../core/text.ts';
import { estimateTokens } from '../../core/tokens.ts';
import { sectionsOf } from '../../files/index/sections.ts';

/** One part of a text that is to be made short. */
interface PartToSummarise {
  title: string;
  text: string;
  /** The summary's size at the most, by our estimate. */
  maxTokens: number;
}

/** What a reader must not miss: decisions, causes, constraints, failures, numbers. */
const weighty =
  /\b(?:decid\w*|must|never|always|only|because|cause\w*|fix\w*|fail\w*|error|warn\w*|risk\w*|require\w*|limit\w*|conclu\w*|result\w*|recommend\w*|unknown|default|deprecated|breaking|exception|fatal|panic|timeout)\b/i;

/** Makes one part of a text short, a line that costs no more than it may: the lines that say most, in their order. */
function extractive({ title, text, maxTokens }: PartToSummarise): string {
  const lines = text
    .split('\n')
    .map(line => line.replace(/\s+/g, ' ').trim())
    .filter(line => line !== '' && !/^[-=*#`~|\s]+$/.test(line));
  const byWeight = lines
    .map((line, index) => ({ line: safeCut(line, 240), index, weight: weightOf(line, index) }))
    .filter(({ line }) => line !== title)
    .sort((a, b) => b.weight - a.weight || a.index - b.index);
  let left = maxTokens - estimateTokens(title) - 2;
  const picked: { line: string; index: number }[] = [];
  for (const { line, index } of byWeight) {
    const cost = estimateTokens(line) + 2;
    if (cost > left) continue;
    left -= cost;
    picked.push({ line, index });
  }
  const kept = picked.sort((a, b) => a.index - b.index).map(({ line }) => line);
  return [safeCut(title, Math.max(16, maxTokens * 3)), ...kept].join(' · ');
}

function weightOf(line: string, index: number): number {
  const says = (weighty.test(line) ? 3 : 0) + (/\d/.test(line) ? 1 : 0) + (/[A-Za-z]{3}/.test(line) ? 1 : 0);
  return says + (index === 0 ? 2 : index === 1 ? 1 : 0);
}

/** A summary of part of a text. */
interface Summary extends LineRange {
  text: string;
}

/** A part gets at least this many tokens; with less it is summed up together with its neighbours. */
const leastPart = 24;
const mostParts = 400;

/**
 * A long text as a list of its parts, each with its lines and what it says, within `maxTokens`. Parts that have no room each
 * are summed up, and their summaries again, until the list fits. Undefined when there is no room for even that.
 */
export async function summariseText(
  text: string,
  maxTokens: number,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const sections = sectionsOf(text);
  if (sections.length === 0 || maxTokens < leastPart * 2) return undefined;
  const fits = Math.max(1, Math.min(mostParts, Math.floor(maxTokens / leastPart)));
  const perPart = Math.max(leastPart, Math.floor(maxTokens / Math.min(sections.length, fits)) - 8);
  let parts: Summary[] = [];
  for (const [index, { from, to, title, lines }] of sections.entries()) {
    if (index % 4 === 3) await nextTurn();
    throwIfAborted(signal);
    const said = extractive({ title, text: lines.join('\n'), maxTokens: perPart });
    parts.push({ from, to, text: said.replace(/\s+/g, ' ') });
  }
  // Summaries of summaries: each round halves their number.
  while (parts.length > 1 && (parts.length > fits || estimateTokens(listOf(parts)) > maxTokens)) {
    parts = halved(parts, perPart, signal);
  }
  const list = listOf(parts);
  return estimateTokens(list) <= maxTokens ? list : undefined;
}

function halved(parts: readonly Summary[], perPart: number, signal?: AbortSignal): Summary[] {
  const out: Summary[] = [];
  for (let at = 0; at < parts.length; at += 2) {
    const [first, second] = [parts[at], parts[at + 1]];
    if (!first) continue;
    if (!second) {
      out.push(first);
      continue;
    }
    throwIfAborted(signal);
    const [title = ''] = first.text.split(' · ');
    const both = `${first.text}\n${second.text}`.replaceAll(' · ', '\n');
    const said = extractive({ title, text: both, maxTokens: perPart });
    out.push({ from: first.from, to: second.to, text: said.replace(/\s+/g, ' ') });
  }
  return out;
}

function listOf(parts: readonly Summary[]): string {
  return parts.map(({ from, to, text }) => `${from}-${to}│ ${text}`).join('\n');
}
