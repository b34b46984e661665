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

interface TokenFormat {
  /** Stands in the placeholder; letters and underscores. */
  kind: string;
  /** Source of a regular expression. Linear: a quantifier without bound must not be followed by something that can fail. */
  pattern: string;
  /** Decides where the format alone would also fit ordinary words. */
  accept?(token: string): boolean;
}

/** Keys that are known by how they look, the more special ones first. */
const formats: readonly TokenFormat[] = [
  { kind: 'anthropic_key', pattern: 'sk-ant-[\\w-]{16,}' },
  { kind: 'openrouter_key', pattern: 'sk-or-(?:v\\d-)?[\\w-]{16,}' },
  { kind: 'openai_key', pattern: 'sk-(?:proj|svcacct|admin|None)-[\\w-]{16,}', accept: hasCode },
  // OpenAI's older keys, and those of the vendors that took the form over: DeepSeek, Moonshot, Langfuse…
  { kind: 'api_key', pattern: 'sk-[\\w-]{16,}', accept: hasCode },
  { kind: 'google_key', pattern: 'AIza[\\w-]{30,}' },
  { kind: 'google_token', pattern: 'ya29\\.[\\w-]{20,}|GOCSPX-[\\w-]{20,}' },
  { kind: 'xai_key', pattern: 'xai-[A-Za-z0-9]{20,}' },
  { kind: 'groq_key', pattern: 'gsk_[A-Za-z0-9]{20,}' },
  { kind: 'perplexity_key', pattern: 'pplx-[A-Za-z0-9]{32,}' },
  { kind: 'zhipu_key', pattern: '[0-9a-f]{32}\\.[A-Za-z0-9]{16}(?![\\w.-])', accept: hasMixedTail },
  { kind: 'github_token', pattern: 'gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\\w{22,}' },
  { kind: 'gitlab_token', pattern: 'gl(?:pat|ptt|dt|rt|cbt|soat)-[\\w-]{20,}', accept: hasCode },
  { kind: 'aws_access_key', pattern: '(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])' },
  { kind: 'slack_token', pattern: 'xox[a-z]-[A-Za-z0-9-]{10,}|xapp-\\d-[A-Za-z0-9-]{10,}' },
  { kind: 'stripe_key', pattern: '[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}' },
  { kind: 'npm_token', pattern: 'npm_[A-Za-z0-9]{30,}' },
  { kind: 'pypi_token', pattern: 'pypi-AgE[\\w-]{40,}' },
  { kind: 'huggingface_token', pattern: 'hf_[A-Za-z0-9]{30,}' },
  { kind: 'sendgrid_key', pattern: 'SG\\.[\\w-]{16,64}\\.[\\w-]{16,}' },
  { kind: 'telegram_token', pattern: '\\d{8,10}:AA[\\w-]{32,}' },
  { kind: 'age_key', pattern: 'AGE-SECRET-KEY-1[A-Z0-9]{40,}' },
  // Tried at the beginning of a run only: it may read all of it and still fail.
  { kind: 'jwt', pattern: '(?<![_-])eyJ[\\w-]{8,}\\.eyJ[\\w-]{8,}(?:\\.[\\w-]*)?' },
];

/** Begins a word, also after an escaped line break (`\n`) or an encoded character (`%3D`). */
const beginning = '(?:(?<![A-Za-z0-9])|(?<=\\\\[nrtbf])|(?<=%[0-9A-Fa-f]{2}))';

const anyFormat = new RegExp(
  `${beginning}(?:${formats.map(({ kind, pattern }) => `(?<${kind}>${pattern})`).join('|')})`,
  'g',
);

export function findTokens(text: string): Span[] {
  const spans: Span[] = [];
  for (const { 0: token, index, groups = {} } of text.matchAll(anyFormat)) {
    const format = formats.find(({ kind }) => groups[kind] !== undefined);
    if (format && (format.accept?.(token) ?? true)) {
      spans.push({ start: index, end: index + token.length, kind: format.kind, rank: 1 });
    }
  }
  return [
    ...spans,
    ...besideAwsKeys(
      text,
      spans.filter(({ kind }) => kind === 'aws_access_key'),
    ),
  ];
}

/** `sk-` and the like also begin names of packages and of CSS classes; a key has a long part with letters and digits. */
function hasCode(token: string): boolean {
  return token.split(/[-_]/).some(part => part.length >= 16 && /\d/.test(part) && /[A-Za-z]/.test(part));
}

/** The name of a hashed file (`<md5>.something`) is lower case after the dot. */
function hasMixedTail(token: string): boolean {
  const tail = token.slice(33);
  return /[a-z]/.test(tail) && /[A-Z]/.test(tail);
}

const reach = 200;

/** The secret half of an AWS key has no form of its own but its length: it is looked for near the public half. */
function besideAwsKeys(text: string, keys: readonly Span[]): Span[] {
  // Neighbourhoods that overlap are one, so that nothing is read twice.
  const near = joinSpans(keys.map(key => ({ ...key, start: Math.max(0, key.start - reach), end: key.end + reach })));
  return near.flatMap(({ start, end }) =>
    [...text.slice(start, end).matchAll(/(?<![\w/+=])[A-Za-z0-9/+]{40}(?![\w/+=])/g)]
      .filter(([code]) => /[a-z]/.test(code) && /[A-Z]/.test(code) && /[0-9/+]/.test(code))
      .map(({ index, 0: code }) => ({
        start: start + index,
        end: start + index + code.length,
        kind: 'aws_secret_key',
        rank: 1,
      })),
  );
}

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

const maxBodyLength = 16_384;

/** For a key whose beginning is missing: its lines are gone back over from the end mark. */
function bodyBefore(text: string, covered: number, to: number): Body | undefined {
  const from = Math.max(covered, to - maxBodyLength);
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
