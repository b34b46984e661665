import type { FileRecord, LineRange } from '../core/file.ts';
import type { Sha256 } from '../core/ids.ts';
import { type Message, type Part, textOf } from '../core/message.ts';
import { cutMiddle, linesBetween, numberLines, printablePath } from '../core/text.ts';
import type { Citation, Compaction, StoredTurn, Thread, Trim, Turn } from '../core/thread.ts';
import { estimateTokens, imageTokens, tokensPerMessage } from '../core/tokens.ts';

/** Texts of the store by their hash. */
export type Blobs = ReadonlyMap<Sha256, string>;

/** The turns that a prompt of one window class is made of. */
export interface Selection {
  compaction?: Compaction;
  turns: StoredTurn[];
}

/** The done turns since the newest compaction for this window class or a larger one: until the next, a prompt grows only at its end. */
export function selectTurns(thread: Thread, windowClass: number): Selection {
  const done = thread.turns.filter(turn => turn.status === 'done');
  const compaction = thread.compactions
    .filter(candidate => candidate.window >= windowClass)
    .reduce<Compaction | undefined>((best, next) => (best && best.upToSeq > next.upToSeq ? best : next), undefined);
  if (!compaction) return { turns: done };
  return { compaction, turns: done.filter(turn => turn.seq > compaction.upToSeq) };
}

/** The blobs that rendering a selection needs. */
export function blobsOf({ compaction, turns }: Selection): Sha256[] {
  const hashes = turns.flatMap(turn => {
    const files = trimOf(compaction, turn) ? [] : turn.files;
    return [...turn.images.map(({ blob }) => blob), ...files.flatMap(file => shownBlob(file) ?? [])];
  });
  return [...new Set(hashes)];
}

/** The text that is shown of a file; undefined where it is only named. */
export const shownBlob = ({ form, shown, base }: FileRecord): Sha256 | undefined =>
  form === 'unchanged' || form === 'changed' ? undefined : (shown ?? base);

/** The stored part of a prompt: the same turns give the same bytes, whichever model or tool is asked next. */
export function renderTurns({ compaction, turns }: Selection, blobs: Blobs): Message[] {
  const messages: Message[] = [];
  if (compaction) messages.push(asMessage('user', 'turn', compaction.summary));
  let previous: Turn | undefined;
  for (const turn of turns) {
    const text = renderTurn(turn, previous, blobs, trimOf(compaction, turn));
    const parts: Part[] = [{ type: 'text', text }];
    for (const image of turn.images) {
      const data = blobs.get(image.blob);
      if (data !== undefined)
        parts.push({ type: 'image', mediaType: image.mediaType, data: Buffer.from(data, 'base64') });
    }
    if (!trimOf(compaction, turn)) messages.push(...documentMessages(turn, blobs));
    messages.push({ role: turn.role, section: 'turn', parts });
    previous = turn;
  }
  return messages;
}

/** One message a document, before the turn that brought it: so that vendors can be told apart what is material. */
const documentMessages = ({ files }: Pick<Turn, 'files'>, blobs: Blobs): Message[] =>
  files.flatMap(file => {
    const text = renderDocument(file, blobs);
    return text === undefined ? [] : [{ ...asMessage('user', 'turn', text), document: true }];
  });

/** A message of one text. */
export function asMessage(role: Message['role'], section: Message['section'], text: string): Message {
  return { role, section, parts: [{ type: 'text', text }] };
}

const trimOf = (compaction: Compaction | undefined, turn: Turn): Trim | undefined =>
  compaction?.trims.find(trim => trim.seq === turn.seq);

/** A turn as text: an assistant's is its bare answer, since models imitate headings; the next user turn begins with who wrote it. */
export function renderTurn(turn: Turn, previous: Turn | undefined, blobs: Blobs, trim?: Trim): string {
  const content = trim?.chars === undefined ? turn.content : cutMiddle(turn.content, trim.chars);
  if (turn.role === 'assistant') return content;
  const header = [`[turn ${turn.seq} · ${turn.toolName}]`];
  if (previous?.role === 'assistant') header.push(`[the answer above: ${previous.toolName} by ${modelOf(previous)}]`);
  const leftOut = (path: string) => `--- FILE LEFT OUT (shown earlier, ask for it again): ${printablePath(path)} ---`;
  const files = turn.files.map(file => (trim ? leftOut(file.path) : renderFile(file, blobs)));
  return [header.join(' '), content, ...files].join('\n\n');
}

const modelOf = (turn: Turn): string =>
  turn.modelProvider && turn.modelName ? `${turn.modelProvider}:${turn.modelName}` : 'an unnamed model';

/** One file of a turn between its markers. */
export function renderFile(file: FileRecord, blobs: Blobs): string {
  // A name with a line break must not be able to close its own marker.
  const path = printablePath(file.path);
  switch (file.form) {
    case 'deleted':
      return `--- FILE DELETED: ${path} ---`;
    case 'unchanged':
      return `--- FILE UNCHANGED: ${path} ---`;
    case 'changed':
      return `--- FILE CHANGED, NOT SHOWN (no room): ${path} ---`;
    case 'diff':
      return `--- BEGIN DIFF: ${path} ---\n${storedText(file.shown, blobs)}\n--- END DIFF: ${path} ---`;
    case 'outline':
    case 'summary': {
      const extent = `${file.lines} lines, too long to show whole; each entry begins with its lines`;
      return between(file.form.toUpperCase(), path, extent, storedText(file.shown, blobs));
    }
    case 'full':
    case 'range':
      return file.document ? `--- DOCUMENT: ${path} (its text stands above) ---` : shownText('FILE', file, blobs);
  }
}

/** A document of a turn between its markers; undefined for what stands in the turn itself. */
export function renderDocument(file: FileRecord, blobs: Blobs): string | undefined {
  const apart = file.document && (file.form === 'full' || file.form === 'range');
  return apart ? shownText('DOCUMENT', file, blobs) : undefined;
}

/** The whole text or its range, with numbered lines: none of them can look like a marker. */
function shownText(kind: 'FILE' | 'DOCUMENT', file: FileRecord, blobs: Blobs): string {
  const path = printablePath(file.path);
  const text = storedText(file.base, blobs);
  if (file.form === 'full') return between(kind, path, `${file.lines} lines`, numberLines(text));
  const { from, to } = file.range ?? { from: 1, to: file.lines };
  return between(kind, path, `lines ${from}-${to} of ${file.lines}`, numberLines(linesBetween(text, from, to), from));
}

const between = (kind: string, path: string, extent: string, text: string): string =>
  `--- BEGIN ${kind}: ${path} (${extent}) ---\n${text}\n--- END ${kind}: ${path} ---`;

const storedText = (hash: Sha256 | undefined, blobs: Blobs): string =>
  (hash && blobs.get(hash)) ?? '[the text is no longer in the store]';

/** What a turn costs in every prompt it stands in. */
export function turnTokens(turn: Omit<Turn, 'tokens'>, previous: Turn | undefined, blobs: Blobs): number {
  const texts = [renderTurn({ ...turn, tokens: 0 }, previous, blobs), ...documentMessages(turn, blobs).map(textOf)];
  const tokens = texts.reduce((sum, text) => sum + estimateTokens(text) + tokensPerMessage, -tokensPerMessage);
  return tokens + imageTokens * turn.images.length;
}

/** A file whose text stands in the prompt that is about to be sent. */
export interface PromptFile extends Pick<FileRecord, 'path' | 'size' | 'mtimeMs' | 'sha256' | 'document'> {
  /** Blob with the text that the prompt, read to its end, amounts to. */
  base: Sha256;
  /** The lines that stand there; absent: all of them. */
  range?: LineRange;
}

/** The files whose text (or text and diffs) stands in the selected turns, by path: they need not be sent again. */
export function promptFiles(selection: Selection): Map<string, PromptFile> {
  const inPrompt = new Map<string, PromptFile>();
  for (const file of untrimmedFiles(selection)) apply(inPrompt, file);
  return inPrompt;
}

const untrimmedFiles = ({ compaction, turns }: Selection): FileRecord[] =>
  turns.filter(turn => !trimOf(compaction, turn)).flatMap(turn => turn.files);

function apply(inPrompt: Map<string, PromptFile>, file: FileRecord): void {
  const { path, form, size, mtimeMs, sha256, base, range, document } = file;
  const before = inPrompt.get(path);
  // In all other forms the file itself was not shown: it is embedded as soon as there is room.
  if (form === 'deleted') inPrompt.delete(path);
  // A diff whose base was compacted away says nothing by itself.
  else if (form === 'diff' && before && base) inPrompt.set(path, { ...before, size, mtimeMs, sha256, base });
  else if ((form === 'full' || form === 'range') && base) {
    const shown = { path, size, mtimeMs, sha256, base, ...(document && { document }) };
    inPrompt.set(path, form === 'full' ? shown : merged(before, { ...shown, range }));
  }
}

/** The texts that stand in the selected turns in place of files: diffs, outlines, summaries. */
export const shownTexts = (selection: Selection): Set<Sha256> =>
  new Set(untrimmedFiles(selection).flatMap(({ shown }) => shown ?? []));

/** Two ranges of one text stand together only when they touch; else the newer one is what counts. */
function merged(before: PromptFile | undefined, now: PromptFile): PromptFile {
  if (!before || before.sha256 !== now.sha256) return now;
  if (!before.range || !now.range) return { ...now, range: undefined };
  const touch = now.range.from <= before.range.to + 1 && before.range.from <= now.range.to + 1;
  if (!touch) return now;
  const from = Math.min(before.range.from, now.range.from);
  return { ...now, range: { from, to: Math.max(before.range.to, now.range.to) } };
}

/** Whether all the lines that are asked for stand in the prompt already. */
export function covers(inPrompt: PromptFile, wanted: LineRange | undefined): boolean {
  if (!inPrompt.range) return true;
  return wanted !== undefined && inPrompt.range.from <= wanted.from && inPrompt.range.to >= wanted.to;
}

/** Citations whose words `text` has replaced, as masking does. */
export function mapCitations(citations: readonly Citation[], text: (words: string) => Promise<string>) {
  const mapped = citations.map(async citation => ({
    ...citation,
    title: await text(citation.title),
    url: await text(citation.url),
    ...(citation.snippet !== undefined && { snippet: await text(citation.snippet) }),
  }));
  return Promise.all(mapped);
}
