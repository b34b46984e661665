import { isRecord, type Json, type JsonObject, textIn } from '../core/json.ts';
import { cutMiddle, safeCut } from '../core/text.ts';
import { estimateTokens, prefixWithin } from '../core/tokens.ts';
import type { ToolReply } from '../core/tool-host.ts';

export type ReplyFormat = 'json' | 'structured' | 'markdown';

/** A reply as its one text block: the document as JSON, or what a person would want to read first. */
export function renderReply(reply: Omit<ToolReply, 'text' | 'markdown'>, format: ReplyFormat): ToolReply {
  const { document, isError } = reply;
  if (format === 'markdown') return { ...reply, markdown: true, text: markdown(document, isError) };
  const text = JSON.stringify(document);
  return { ...reply, text, ...(format === 'structured' && { structured: document }) };
}

/** Keys that the page shows in places of their own. */
const placed = new Set([
  'status',
  'content',
  'content_type',
  'metadata',
  'continuation_offer',
  'continuation_id',
  'error',
]);

/** The content of replies that have no `content`. */
const leading = new Set(['expert_analysis', 'plan', 'model_response', 'required_actions', 'trace_text']);

function markdown(document: JsonObject, isError: boolean): string {
  const { content, metadata, continuation_offer: offer, error } = document;
  const rest = Object.entries(document).filter(([key]) => !placed.has(key));
  // What was found, or what to do, comes before what was counted.
  rest.sort(([a], [b]) => Number(leading.has(b)) - Number(leading.has(a)));
  const sections = [
    isError && isRecord(error) ? `**${error.code}**: ${error.message}\n\n${error.next ?? ''}` : textIn(content),
    ...rest.map(([key, value]) => `## ${titleOf(key)}\n${valueText(value)}`),
    // The three words that callers of the first design's pages know.
    isRecord(metadata)
      ? metadataSection(metadata, isError ? 'error' : document.status === 'partial' ? 'partial' : 'success')
      : '',
    isRecord(metadata) && isRecord(metadata.files) ? `## Files Processed\n${list(metadata.files)}` : '',
    isRecord(offer) ? `## Continuation ID\n${offer.continuation_id}\n${offer.note}` : '',
  ];
  return sections.filter(section => section.trim() !== '').join('\n\n');
}

function metadataSection(metadata: Record<string, unknown>, status: string): string {
  const usage = isRecord(metadata.usage) ? metadata.usage : {};
  const facts = {
    status,
    tool_name: metadata.tool_name,
    model_used: metadata.model_used,
    provider_used: metadata.provider_used,
    thinking_mode: metadata.effort,
    tokens_used: typeof usage.input === 'number' ? usage.input + Number(usage.output) : undefined,
    cost_usd: metadata.cost_usd,
    response_time:
      typeof metadata.latency_ms === 'number' ? `${(metadata.latency_ms / 1_000).toFixed(1)} s` : undefined,
    warnings: metadata.warnings,
  };
  return `## Metadata\n${list(facts)}`;
}

const list = (facts: Record<string, unknown>): string =>
  Object.entries(facts)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `- ${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('\n');

const titleOf = (key: string): string => key.replaceAll('_', ' ').replace(/^./, first => first.toUpperCase());

function valueText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (isRecord(value) && typeof value.raw_analysis === 'string') return value.raw_analysis;
  if (Array.isArray(value) && value.every(item => typeof item === 'string'))
    return value.map(item => `- ${item}`).join('\n');
  return `\`\`\`json\n${JSON.stringify(value, undefined, 2)}\n\`\`\``;
}

/** Where the whole of a model's answer is kept. */
export interface AnswerPlace {
  thread: string;
  seq: number;
  /** As the reply shows it. */
  text: string;
  /** The stored turn has just this text, so that reading on can begin where the reply stops. */
  asStored: boolean;
}

/** What the estimate of a text full of escapes may be short of: callers enforce their limit. */
export const replyMargin = 1.08;

/** No text is cut shorter than this many tokens. */
const shortTokens = 60;

export const documentTokens = (document: JsonObject): number => estimateTokens(JSON.stringify(document), replyMargin);

/** No text has more tokens than bytes: most replies need no estimate, and where there is no limit none is measured. */
function fits(document: JsonObject, limit: number): boolean {
  if (limit === Number.MAX_SAFE_INTEGER) return true;
  const text = JSON.stringify(document);
  return Buffer.byteLength(text) * replyMargin <= limit || estimateTokens(text, replyMargin) <= limit;
}

/**
 * A reply with a model's answer in it, at most `limit` tokens. One that is too long carries the answer's beginning and the
 * cursor at which the tool `threads` reads on; nothing is lost, since the thread has all of it.
 */
export const truncateAnswer = (
  make: (text: string) => JsonObject,
  { thread, seq, text, asStored }: AnswerPlace,
  limit: number,
): JsonObject =>
  fitTexts([text], limit, ([shown = '']) => {
    if (shown === text) return make(text);
    const truncated = {
      total_tokens: estimateTokens(text),
      shown_characters: shown.length,
      artifact: `polylogue://threads/${thread}/turns/${seq}`,
      next_cursor: `${seq}:${asStored ? shown.length : 0}`,
      note: 'The rest of the answer: call "threads" with action "read", this continuation_id and next_cursor as cursor, until no next_cursor comes back.',
    };
    return { ...make(shown), truncated };
  });

/** The document, cut to `limit` tokens: short texts stay whole, long ones get equal parts of what is left. */
export function fitTexts(
  texts: readonly string[],
  limit: number,
  make: (shown: readonly string[]) => JsonObject,
): JsonObject {
  const whole = make(texts);
  if (fits(whole, limit)) return whole;
  const sizes = texts.map(text => estimateTokens(JSON.stringify(text)));
  const overhead = documentTokens(make(texts.map(() => '')));
  for (let room = (limit - overhead) / replyMargin; ; room = Math.floor(room * 0.8)) {
    const share = Math.max(shortTokens, equalShare(sizes, room));
    const document = make(texts.map((text, at) => ((sizes[at] ?? 0) <= share ? text : prefixWithin(text, share))));
    if (share <= shortTokens || fits(document, limit)) return document;
  }
}

/** The size that each may have at the most, so that all together take no more than `room`. */
function equalShare(sizes: readonly number[], room: number): number {
  let left = room;
  const ascending = sizes.toSorted((a, b) => a - b);
  for (const [index, size] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index));
    if (size > share) return share;
    left -= size;
  }
  return Math.max(0, ...sizes);
}

/** Any reply, at most `limit` tokens: its longest texts and lists are cut, the longest first, and it says so. */
export function truncateDocument(document: JsonObject, limit: number): JsonObject {
  if (fits(document, limit)) return document;
  const cut = { total_tokens: documentTokens(document), note: 'The longest texts and lists of this reply were cut.' };
  for (let allowed = Math.floor(limit / 2); ; allowed = Math.floor(allowed / 2)) {
    const short = { ...shorten(document, allowed), cut };
    if (allowed < shortTokens || fits(short, limit)) return short;
  }
}

const shorten = (object: JsonObject, allowed: number): JsonObject =>
  Object.fromEntries(
    Object.entries(object).map(([key, value]) => [key, value === undefined ? value : shortenValue(value, allowed)]),
  );

function shortenValue(value: Json, allowed: number): Json {
  if (typeof value === 'string')
    return estimateTokens(value) <= allowed ? value : `${prefixWithin(value, allowed)}… [cut]`;
  if (Array.isArray(value)) return shortenList(value, allowed);
  return typeof value === 'object' && value !== null ? shorten(value, allowed) : value;
}

function shortenList(items: Json[], allowed: number): Json[] {
  const kept: Json[] = [];
  let left = allowed;
  for (const item of items) {
    const short = shortenValue(item, allowed);
    left -= estimateTokens(JSON.stringify(short));
    if (left < 0) return [...kept, `… ${items.length - kept.length} more [cut]`];
    kept.push(short);
  }
  return kept;
}

/** Characters; of what is longer, the beginning and the end. */
const maxShownLength = 12_000;

const maxNamesLength = 4_000;

/** Control characters could hide on a terminal what is about to happen. */
export const printable = (text: string): string => text.replace(/[^\P{C}\n\t]/gu, '\ufffd');

/** What somebody is asked to approve. Where it is too long for a form, that comes first, with every file that a patch in it may name. */
export function shownToApprove(whole: string): string {
  const text = printable(whole);
  if (text.length <= maxShownLength) return text;
  const heads = text.match(/^(?:diff --git .*|--- .*\n\+\+\+ .*)$/gm) ?? [];
  const names = heads.flatMap(head => head.split('\n').map(line => safeCut(line, 300))).join('\n');
  const left = names.length > maxNamesLength ? '\n… and MORE FILES than can be named here.' : '';
  const files = names === '' ? '' : `\nAll files in it:\n${safeCut(names, maxNamesLength)}${left}\n`;
  const notShown = text.length - maxShownLength;
  return `!! About ${notShown} characters are NOT shown: the middle of it. Refuse where that will not do.\n${files}\n${cutMiddle(text, maxShownLength)}`;
}
