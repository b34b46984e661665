import { isRecord, type Json, type JsonObject } from '../../core/json.ts';
import type { ToolReply } from '../../core/tool-host.ts';
import { type PageSize, pageSizeOf } from './clients.ts';

/** Characters of a text that stays in the document; a longer one follows as a block of its own. */
const inlineLength = 4_000;

/** Of a page's bytes; a document that takes more even without its long texts is paged as a whole. */
const headShare = 0.5;

/** Bytes for the words about pages in the first block. */
const noteBytes = 300;

/** A page has room for this many bytes of text, however little the operator allows. */
const leastBytes = 1_000;

/** What a model needs of the metadata; the rest is for programs, and comes in `_meta`. */
const shownFacts = 'tool_name model_used provider_used model_corrected replayed output_summarized warnings'.split(' ');

/** Of the files, what did not reach the model as it is. */
const shownFiles = ['outlined', 'summarised', 'skipped', 'masked'];

/** Under which `_meta` has what programs read: all metadata, and the offer as a whole. */
export const factsKey = 'polylogue/facts';

/** Keys that come first, so that a reply that a host cuts still says how it stands and how to go on. */
const firstKeys = ['status', 'continuation_id', 'continuation_offer', 'job_id', 'error', 'content_type'];

function shownDocument({ metadata, continuation_offer: offer, ...document }: JsonObject): JsonObject {
  const { expires_at: _expires, ...shownOffer } = isRecord(offer) ? offer : {};
  const all: JsonObject = {
    ...document,
    ...(offer !== undefined && { continuation_offer: isRecord(offer) ? shownOffer : offer }),
    ...(metadata !== undefined && { metadata: isRecord(metadata) ? shownMetadata(metadata) : metadata }),
  };
  return { ...only(all, firstKeys), ...all };
}

function shownMetadata({ files, ...facts }: JsonObject): JsonObject {
  const shown = isRecord(files) ? only(files, shownFiles) : {};
  return { ...only(facts, shownFacts), ...(Object.keys(shown).length > 0 && { files: shown }) };
}

function only(record: JsonObject, keys: readonly string[]): JsonObject {
  const kept: JsonObject = {};
  for (const key of keys) if (record[key] !== undefined) kept[key] = record[key];
  return kept;
}

/** The answer itself needs no heading. */
const headingOf = (path: string): string => (path === 'content' ? '' : `## ${path}\n\n`);

type LongText = Record<'path' | 'text', string>;

/** A value without its long texts, which are put into `found`. */
function withoutLong(value: Json | undefined, path: string, found: LongText[]): Json | undefined {
  if (typeof value === 'string') {
    if (value.length <= inlineLength) return value;
    found.push({ path, text: value });
    return `The text follows in the next content block${headingOf(path) && `, under "## ${path}"`}.`;
  }
  if (Array.isArray(value)) return value.map((item, index) => withoutLong(item, `${path}[${index}]`, found) ?? null);
  if (!isRecord(value)) return value;
  const entries = Object.entries(value);
  for (const entry of entries) entry[1] = withoutLong(entry[1], path === '' ? entry[0] : `${path}.${entry[0]}`, found);
  return Object.fromEntries(entries);
}

/** The text in pages that give it again when they are put together; they end with a line where they can. */
function pagesOf(text: string, { bytes, lines }: PageSize): string[] {
  const pages: string[] = [];
  // No character has more than four bytes.
  const piece = new RegExp(`[^\\n]{1,${Math.floor((bytes - 1) / 4)}}\\n?|\\n`, 'gu');
  let [page, size, count] = ['', 0, 0];
  for (const [part] of text.matchAll(piece)) {
    const length = Buffer.byteLength(part);
    if (size + length > bytes || count === lines) {
      pages.push(page);
      [page, size, count] = ['', 0, 0];
    }
    page += part;
    size += length;
    count++;
  }
  return [...pages, page];
}

function blocksOf({ document, text, markdown }: ToolReply, { bytes }: PageSize) {
  const found: LongText[] = [];
  const shown = markdown ? {} : shownDocument(document);
  const head = withoutLong(shown, '', found);
  const headText = JSON.stringify(head);
  if (isRecord(head) && !markdown && Buffer.byteLength(headText) <= (found.length > 0 ? bytes * headShare : bytes))
    return { head, headText, text: found.map(each => headingOf(each.path) + each.text).join('\n\n') };
  const { error: _error, ...brief } = only(document, firstKeys);
  return { head: brief, headText: JSON.stringify(brief), text: markdown ? text : JSON.stringify(shown, undefined, 1) };
}

export interface PagedFor {
  /** The name that the client gave. */
  client: string | undefined;
  /** The most tokens of one reply; absent: what the client takes. */
  maxTokens?: number | undefined;
  /** Keeps a reply, so that its other pages can be read, and resolves with the id of the job that has it. */
  keep(reply: ToolReply): Promise<string | undefined>;
}

/** A reply as the protocol's result of a call: one block, or what it is about and then its long text, page by page. */
export async function resultOf(reply: ToolReply, reader: PagedFor) {
  const { isError, document, markdown, structured, kept } = reply;
  const size = pageSizeOf(reader.client, reader.maxTokens, isError);
  const { head, headText, text } = blocksOf(reply, size);
  const known = only(document, ['metadata', 'continuation_offer']);
  const facts = { isError, ...(Object.keys(known).length > 0 && { _meta: { [factsKey]: known } }) };
  const fits = markdown && Buffer.byteLength(text) <= size.bytes;
  if (text === '' || fits) {
    const content = [{ type: 'text' as const, text: markdown ? text : headText }];
    return { ...facts, content, ...(structured && { structuredContent: structured }) };
  }
  const room = Math.max(leastBytes, size.bytes - Buffer.byteLength(headText) - noteBytes);
  const pages = pagesOf(text, { ...size, bytes: room });
  const number = Math.min(kept?.page ?? 1, pages.length);
  const job = pages.length === 1 ? undefined : (kept?.job ?? (await reader.keep(reply)));
  const wayTo = `Call "job" with job_id "${job}" and page ${number + 1}.`;
  const shown = number === 1 ? head : only(head, firstKeys);
  const first = {
    ...only(shown, firstKeys),
    page: `${number} of ${pages.length}`,
    ...(number < pages.length && { next_page: job === undefined ? notKept : wayTo }),
    content: 'The text follows in the next content block.',
    ...shown,
  };
  const page = pages[number - 1] ?? '';
  const content = [JSON.stringify(first), page].map(block => ({ type: 'text' as const, text: block }));
  const whole = pages.length === 1 ? structured : { ...first, content: page };
  return { ...facts, content, ...(structured && { structuredContent: whole }) };
}

const notKept = 'The reply could not be kept; "threads" with action "read" and this continuation_id has all of it.';
