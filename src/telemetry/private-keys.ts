import type { Span } from './spans.ts';

const marker = /-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
/** What may stand between the lines of a key: line ends (escaped ones too), quotes, comment and diff marks, line numbers. */
const between = /(?:\\{1,4}(?:[nrt]|u\{[9ad]\}|u000[9ad])|[\s"'`,\\#*>|│]|\d{1,6}│|\+(?=[\s"'])|-(?!-)|\/\/ )+/y;
const header = /(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\n\\]{0,200}/y;
const code = /[A-Za-z0-9+/=]+/y;
/** Lines of a key have 64 or 76 characters; a shorter piece is its last line, or no part of it. */
const fullLine = 24;

/** The bodies of private keys in PEM form, also where their end or their beginning was cut off. */
export function findPrivateKeys(text: string): Span[] {
  const spans: Span[] = [];
  let covered = 0;
  for (const { 0: whole, 1: side, index } of text.matchAll(marker)) {
    const behind = index + whole.length;
    const body = side === 'BEGIN' ? bodyAfter(text, behind) : bodyBefore(text, covered, index);
    if (body) spans.push({ ...body, kind: 'private_key', rank: 1 });
    covered = Math.max(behind, body?.end ?? 0);
  }
  return spans;
}

interface Body {
  start: number;
  end: number;
}

function bodyAfter(text: string, from: number): Body | undefined {
  let body: Body | undefined;
  for (let at = from; ; ) {
    const start = matchAt(between, text, at);
    at = matchAt(header, text, start);
    if (at > start) continue;
    at = matchAt(code, text, start);
    const isFull = at - start >= fullLine;
    if (at === start || !(isFull || isRest(text, start, at, body !== undefined))) return body;
    body = { start: body?.start ?? start, end: at };
    if (!isFull) return body;
  }
}

function matchAt(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

/** Whether a short piece is the last line of a key, or the whole of a short one, and not a word that follows. */
function isRest(text: string, start: number, end: number, continues: boolean): boolean {
  if (looksCoded(text.slice(start, end))) return continues || end - start >= 12;
  const after = matchAt(between, text, end);
  return continues && (after === text.length || text.startsWith('-----END', after));
}

function looksCoded(piece: string): boolean {
  return piece.endsWith('=') || /[\d+/]/.test(piece);
}

const longestBody = 16_384;

/** For a key whose beginning is missing: its lines are gone back over from the end mark. */
function bodyBefore(text: string, covered: number, to: number): Body | undefined {
  const from = Math.max(covered, to - longestBody);
  const pieces = text
    .slice(from, to)
    .matchAll(/((?:\\{1,4}(?:[nrt]|u\{[9ad]\}|u000[9ad])|[\s"'`,])+)|[A-Za-z0-9+/=]+|([\s\S])/g);
  let body: Body | undefined;
  let lines = 0;
  for (const { 0: piece, 1: gap, 2: stranger, index } of [...pieces].reverse()) {
    if (gap !== undefined) continue;
    const isFull = piece.length >= fullLine;
    if (stranger !== undefined || !(isFull || (body === undefined && looksCoded(piece)))) break;
    if (isFull) lines++;
    body = { start: from + index, end: body?.end ?? from + index + piece.length };
  }
  return lines > 0 ? body : undefined;
}
