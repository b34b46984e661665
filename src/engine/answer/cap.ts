import type { Json, JsonObject } from '../../core/json.ts';
import { estimateTokens, prefixWithin } from '../../core/tokens.ts';

/** Where the whole of a model's answer is kept. */
export interface AnswerPlace {
  thread: string;
  seq: number;
  /** As the reply shows it. */
  text: string;
  /** The stored turn has just this text, so that reading on can begin where the reply stops. */
  asStored: boolean;
}

/** Room for the words that say that something was cut. */
const noteTokens = 200;
/** What the estimate of a text full of escapes may be short of: callers enforce their limit. */
export const replyMargin = 1.08;
/** A text shorter than this many tokens is never cut. */
const shortTokens = 120;

export function documentTokens(document: JsonObject): number {
  return estimateTokens(JSON.stringify(document), replyMargin);
}

/** No text has more tokens than bytes: most replies need no estimate. */
function fits(document: JsonObject, limit: number): boolean {
  const text = JSON.stringify(document);
  return Buffer.byteLength(text) * replyMargin <= limit || estimateTokens(text, replyMargin) <= limit;
}

/**
 * A reply with a model's answer in it, at most `limit` tokens. One that is too long carries the answer's beginning and the
 * cursor at which the tool `threads` reads on; nothing is lost, since the thread has all of it.
 */
export function capAnswer(make: (text: string) => JsonObject, place: AnswerPlace, limit: number): JsonObject {
  const whole = make(place.text);
  if (fits(whole, limit)) return whole;
  const around = documentTokens(make(''));
  for (let room = Math.max(shortTokens, limit - around - noteTokens); ; room = Math.floor(room * 0.7)) {
    const beginning = prefixWithin(place.text, room / replyMargin);
    const document: JsonObject = {
      ...make(beginning),
      truncated: {
        total_tokens: estimateTokens(place.text),
        shown_characters: beginning.length,
        artifact: `polylogue://threads/${place.thread}/turns/${place.seq}`,
        next_cursor: `${place.seq}:${place.asStored ? beginning.length : 0}`,
        note: 'The rest of the answer: call "threads" with action "read", this continuation_id and next_cursor as cursor, until no next_cursor comes back.',
      },
    };
    if (room <= shortTokens || fits(document, limit)) return document;
  }
}

/** Any reply, at most `limit` tokens: its longest texts and lists are cut, the longest first, and it says so. */
export function capDocument(document: JsonObject, limit: number): JsonObject {
  if (fits(document, limit)) return document;
  const total = documentTokens(document);
  let allowed = Math.floor(limit / 2);
  for (;;) {
    const cut: JsonObject = {
      ...shorten(document, allowed),
      cut: { total_tokens: total, note: 'The longest texts and lists of this reply were cut.' },
    };
    if (allowed < shortTokens || fits(cut, limit)) return cut;
    allowed = Math.floor(allowed / 2);
  }
}

function shorten(object: JsonObject, allowed: number): JsonObject {
  const entries = Object.entries(object).map(([key, value]) => [
    key,
    value === undefined ? value : shortenValue(value, allowed),
  ]);
  return Object.fromEntries(entries);
}

function shortenValue(value: Json, allowed: number): Json {
  if (typeof value === 'string') {
    return estimateTokens(value) <= allowed ? value : `${prefixWithin(value, allowed)}… [cut]`;
  }
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
