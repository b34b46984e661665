import { setImmediate as nextTurn } from 'node:timers/promises';
import { remember } from '../../core/concurrency.ts';
import { throwIfAborted } from '../../core/errors.ts';
import type { LineRange, TextFile } from '../../core/file.ts';
import type { Sha256 } from '../../core/ids.ts';
import { mostThatFit, safeCut } from '../../core/text.ts';
import { estimateTokens } from '../../core/tokens.ts';
import { weightiest } from '../../threads/compaction.ts';
import { languageOf } from '../../workspace/outline/outline.ts';
import { sectionsOf } from '../../workspace/search-index/chunks.ts';
import type { FoundSymbol } from '../../workspace/workers/run-job.ts';
import type { WorkPool } from '../../workspace/workers/worker-pool.ts';

const maxLineLength = 120;

/**
 * What a file declares, a line each: its lines and how it begins. What has no room is left out from the inside: first the
 * members, then how things begin, then the last of them. Undefined when not even one fits.
 */
function outlineText(text: string, symbols: readonly FoundSymbol[], maxTokens: number): string | undefined {
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
  const entries = outer.slice(0, Math.max(1, maxTokens)).map(plain);
  const cut = (count: number) => [...entries.slice(0, count), `… and ${outer.length - count} more`].join('\n');
  const count = mostThatFit(entries.length, each => estimateTokens(cut(each)) <= maxTokens);
  return count === 0 ? undefined : cut(count);
}

function entry({ name, kind, from, to, depth }: FoundSymbol, source: string | undefined): string {
  const says = safeCut((source ?? '').trim().replace(/(?<!\s)\s*\{$/, ''), maxLineLength);
  return `${from}-${to}│ ${'  '.repeat(depth)}${says.includes(name) ? says : `${kind} ${name}`}`;
}

/** Makes one part of a text short, a line that costs no more than it may: the lines that say most, in their order. */
function extractive(title: string, text: string, maxTokens: number): string {
  const lines = text
    .split('\n')
    .map(line => line.replace(/\s+/g, ' ').trim())
    .filter(line => line !== '' && !/^[-=*#`~|\s]+$/.test(line))
    .map(line => safeCut(line, 240))
    .filter(line => line !== title);
  // Also what says little, where there is room: prose first, and the beginning.
  const bonus = (line: string, index: number) => 0.1 + (/[A-Za-z]{3}/.test(line) ? 1 : 0) + Math.max(0, 2 - index);
  const kept = weightiest(lines, maxTokens - estimateTokens(title) - 2, bonus);
  return [safeCut(title, Math.max(16, maxTokens * 3)), ...kept].join(' · ').replace(/\s+/g, ' ');
}

type Summary = LineRange & { text: string };

/** A part gets at least this many tokens; with less it is summed up together with its neighbours. */
const leastPart = 24;

const maxParts = 400;

/**
 * A long text as a list of its parts, each with its lines and what it says, within `maxTokens`. Parts that have no room each
 * are summed up, and their summaries again, until the list fits. Undefined when there is no room for even that.
 */
async function summariseText(text: string, maxTokens: number, signal: AbortSignal): Promise<string | undefined> {
  const sections = sectionsOf(text);
  if (sections.length === 0 || maxTokens < leastPart * 2) return undefined;
  const fits = Math.max(1, Math.min(maxParts, Math.floor(maxTokens / leastPart)));
  const perPart = Math.max(leastPart, Math.floor(maxTokens / Math.min(sections.length, fits)) - 8);
  let parts: Summary[] = [];
  for (const [index, { from, to, title, lines }] of sections.entries()) {
    if (index % 4 === 3) await nextTurn();
    throwIfAborted(signal);
    parts.push({ from, to, text: extractive(title, lines.join('\n'), perPart) });
  }
  // Summaries of summaries: each round halves their number.
  while (parts.length > 1 && (parts.length > fits || estimateTokens(listOf(parts)) > maxTokens)) {
    parts = halved(parts, perPart, signal);
  }
  const list = listOf(parts);
  return estimateTokens(list) <= maxTokens ? list : undefined;
}

function halved(parts: readonly Summary[], perPart: number, signal: AbortSignal): Summary[] {
  const out: Summary[] = [];
  for (let at = 0; at < parts.length; at += 2) {
    const [first, second] = parts.slice(at, at + 2);
    if (!first || !second) return [...out, ...parts.slice(at)];
    throwIfAborted(signal);
    const [title = ''] = first.text.split(' · ');
    const both = `${first.text}\n${second.text}`.replaceAll(' · ', '\n');
    out.push({ from: first.from, to: second.to, text: extractive(title, both, perPart) });
  }
  return out;
}

const listOf = (parts: readonly Summary[]): string =>
  parts.map(({ from, to, text }) => `${from}-${to}│ ${text}`).join('\n');

/** `hash`: of the text. */
export type ShownFile = Pick<TextFile, 'path' | 'text'> & { hash: Sha256 };

/** Makes files short: what source declares, what prose says. */
export type FileShortener = ReturnType<typeof createFileShortener>;

/** Files whose structure is remembered: a thread asks for the same ones again and again. */
const remembered = 500;

/** Beyond this a parse takes seconds; such files are generated or data. */
const maxParsed = 1024 * 1024;

/** A file of fewer lines has nothing to leave out. */
const leastLines = 5;

export function createFileShortener(pool: WorkPool) {
  const structures = new Map<string, FoundSymbol[]>();
  const summaries = new Map<string, string>();

  /** What a source file declares; undefined where nobody here can read it. */
  async function symbols({ path, text, hash }: ShownFile, signal: AbortSignal): Promise<FoundSymbol[] | undefined> {
    const language = languageOf(path);
    if (!language || text.length > maxParsed) return undefined;
    const key = `${language} ${hash}`;
    const found = structures.get(key) ?? (await pool.symbols({ path, language, text }, signal));
    remember(structures, key, found, remembered);
    return found;
  }

  return {
    symbols,
    /** What is to stand in the place of a file; undefined when `maxTokens` is too little for this one. */
    async condense(file: ShownFile, maxTokens: number, signal: AbortSignal) {
      const { text, hash } = file;
      if (text.split('\n', leastLines + 1).length <= leastLines) return undefined;
      const declared = await symbols(file, signal);
      const outline = declared && outlineText(text, declared, maxTokens);
      if (outline !== undefined) return { form: 'outline' as const, text: outline };
      // Rounded down, so that a little more or less room finds the same summary.
      const room = 2 ** Math.floor(Math.log2(Math.max(1, maxTokens)));
      const key = `${hash} ${room}`;
      const said = summaries.get(key) ?? (await summariseText(text, room, signal));
      if (said === undefined) return undefined;
      remember(summaries, key, said, remembered);
      return { form: 'summary' as const, text: said };
    },
  };
}
