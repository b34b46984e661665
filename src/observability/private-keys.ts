import { decoded, groupsOf, isMixedCase, looksRandom, type Run, type Span, shortestRun } from './secret-tokens.ts';

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

function bodyAfter(text: string, from: number): Run | undefined {
  let body: Run | undefined;
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
  if (/=$|[\d+/]/.test(text.slice(start, end))) return continues || end - start >= 12;
  const after = matchAt(between, text, end);
  return continues && (after === text.length || text.startsWith('-----END', after));
}

const maxBodyLength = 16_384;

/** For a key whose beginning is missing: its lines are gone back over from the end mark. */
function bodyBefore(text: string, covered: number, to: number): Run | undefined {
  const from = Math.max(covered, to - maxBodyLength);
  const pieces = text
    .slice(from, to)
    .matchAll(/((?:\\{1,4}(?:[nrt]|u\{[9ad]\}|u000[9ad])|[\s"'`,])+)|[A-Za-z0-9+/=]+|([\s\S])/g);
  let body: Run | undefined;
  let lines = 0;
  for (const { 0: piece, 1: gap, 2: stranger, index } of [...pieces].reverse()) {
    if (gap !== undefined) continue;
    const isFull = piece.length >= fullLine;
    // Only the last line is shorter.
    if (stranger !== undefined || !(isFull || body === undefined)) break;
    if (isFull) lines++;
    body = { start: from + index, end: body?.end ?? from + index + piece.length };
  }
  return lines > 0 ? body : undefined;
}

/** What may stand before it in its line: marks of a patch, a comment, a quotation, a place, who wrote it and when. */
const leading =
  /^[ \t]{0,8}(?:\^?[0-9a-f]{7,40} [^\n]{0,120}\) ?|(?:[\w./@ -]{1,200}[:-])?\d{1,7}[:\-|│]?|[\w./@-]{1,200}:)?[\s|│>#*+\-"'`,\\/;(=[]*$/;

/** What may stand behind it in its line. */
const trailing = /^[\s"'`,\\;+)\]|│.]*(?:\r?\n|$)/;

/** Widths that tools break lines at. A line of its own is only taken for a key's with one of those. */
const widths: ReadonlySet<number> = new Set([64, 70, 76]);

/** No private key is longer; what is more is a picture or a program. */
const maxLines = 260;

/** What may be a line of a key, with what fills it up. */
const keyLine = /^[^=]{48,130}=*$/;

/** Lines of base64 that look like the body of a private key, without the marks of its beginning or its end. */
export function findKeyLines(text: string, runs: readonly Run[]): Span[] {
  const lines = runs
    .filter(({ start, end }) => keyLine.test(text.slice(start, end)))
    .map(run => pieceOf(text, run))
    .filter(piece => fills(text, piece));
  return groupsOf(lines, (last, next) => belongs(text, last, next)).flatMap(block => {
    if (!isKeyMaterial(text, block)) return [];
    const [{ start, end } = { start: 0, end: 0 }] = block;
    return { start, end: edgeAfter(text, block.at(-1)?.end ?? end), kind: 'private_key', rank: 1 };
  });
}

/** Without what escapes a line end before it, and the mark of a patch. */
function pieceOf(text: string, { start, end }: Run): Run {
  const isEscaped = text.charAt(start - 1) === '\\' && /[nrt]/.test(text.charAt(start));
  const before = text.slice(Math.max(0, start - 1), start);
  const isMarked = text.charAt(start) === '+' && !widths.has(end - start) && /(?:^|[\n+\-\s:|│])$/.test(before);
  return { start: isEscaped || isMarked ? start + 1 : start, end };
}

function fills(text: string, { start, end }: Run): boolean {
  const before = text.slice(Math.max(0, start - 320), start);
  const behind = text.slice(end, end + 40);
  const opens = /\\[nrt]$/.test(before) || leading.test(before.slice(before.lastIndexOf('\n') + 1));
  return opens && (/^\\{1,4}[nr]/.test(behind) || trailing.test(behind));
}

/** Whether two pieces stand in lines that follow each other. */
function belongs(text: string, last: Run, next: Run): boolean {
  const gap = text.slice(last.end, next.start);
  return gap.length <= 330 && (gap.match(/\n|\\n/g)?.length ?? 0) <= 2;
}

function isKeyMaterial(text: string, block: readonly Run[]): boolean {
  const [first, second] = block;
  if (!first || block.length > maxLines) return false;
  const width = first.end - first.start;
  const lines = block.map(({ start, end }) => text.slice(start, end));
  if (!widths.has(width) && !(second && second.end - second.start === width)) return false;
  const head = text.slice(Math.max(0, first.start - 400), first.start);
  const marks = [...head.matchAll(/-{4,5} ?(BEGIN|END) ([A-Z0-9 ]{1,40}?) ?-{4,5}/g)].at(-1);
  // Between the marks of what is public; a private key is found by its own.
  if (marks?.[1] === 'BEGIN' && !marks[2]?.includes('PRIVATE')) return false;
  const last = block.at(-1) ?? first;
  if (/^[^-]{0,200}-{4,5} ?END (?![A-Z0-9 ]{0,40}PRIVATE)/.test(text.slice(last.end, last.end + 240))) return false;
  return !lines.some(isPublic) && lines.some(looksRandom);
}

/** The beginnings of certificates and public keys, of pictures, archives, fonts, programs and documents, and of what is text. */
const publicHead =
  /^(?:iVBORw0KGgo|\/9j\/|R0lGOD|H4sI|UEsDB|JVBERi|AGFzbQ|d09G|UklGR|PHN2|PD94|PCFE|AAEAAAA|T1RUT|Qk0|SUkq|TVoA|f0VMR|KLUv|QlpoO|\/Td6|ssh-)/;

function isPublic(line: string): boolean {
  if (publicHead.test(line)) return true;
  const bytes = decoded(line);
  const [a, , c, d, e] = Buffer.from(bytes, 'latin1');
  // A sequence (48) that begins with a sequence: a certificate where both have lengths of two bytes, a public key where the other is short.
  if (a === 48 && (e === 48 || (c === 48 && d !== undefined && d < 32))) return true;
  return (bytes.match(/[\t\n\r\x20-\x7e]/g)?.length ?? 0) > bytes.length * 0.9;
}

/** Behind a last line that is shorter. */
function edgeAfter(text: string, end: number): number {
  const rest =
    /^["'`,]{0,2}(?:\s*\r?\n|\\{1,4}n)(?:[\w./@-]{1,100}[:-]\d{1,7}[:-]|\d{1,7}[:│|]?)?[ \t>+|│#*"'-]{0,40}([A-Za-z0-9+/]{4,127}={0,2})(?=["'`,]{0,2}(?:\s*(?:\n|$)|\\{1,4}n))/.exec(
      text.slice(end, end + 360),
    );
  return rest?.[1] !== undefined && (/=$/.test(rest[1]) || (isMixedCase(rest[1]) && rest[1].length >= 8))
    ? end + rest[0].length
    : end;
}

/** What is longer is a picture or a map of sources. */
const longestCode = 65_536;

const printable = /^[\t\n\r\x20-\x7e]+$/;

/** Texts in base64 in which a secret is found, each as a whole: of one line, or of lines that follow each other. */
export function findEncoded(text: string, runs: readonly Run[], find: (text: string) => readonly Span[]): Span[] {
  const pieces = runs.map(run => pieceOf(text, run));
  const blocks = groupsOf(pieces, (last, next) =>
    /^(?:\\{0,4}\r?\n[ \t]{0,40}|\\{1,4}(?:r\\{1,4})?n)$/.test(text.slice(last.end, next.start)),
  );
  return blocks.flatMap(block => {
    const code = block.map(({ start, end }) => text.slice(start, end)).join('');
    if (code.length > longestCode || !printable.test(decoded(code.slice(0, shortestRun)))) return [];
    const [surest] = find(decoded(code)).toSorted((a, b) => a.rank - b.rank);
    const [{ start, end } = { start: 0, end: 0 }] = block;
    const last = block.at(-1)?.end ?? end;
    return surest ? [{ start, end: last > end ? edgeAfter(text, last) : end, kind: surest.kind, rank: 2 }] : [];
  });
}
