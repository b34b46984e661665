import type { FileRecord } from '../domain/file.ts';
import type { Sha256 } from '../domain/ids.ts';
import type { Message, Part } from '../domain/message.ts';
import { cutMiddle, numberLines, printablePath } from '../domain/text.ts';
import type { Compaction, StoredTurn, Thread, Trim, Turn } from '../domain/thread.ts';
import { estimateTokens } from '../domain/tokens.ts';

/** Texts of the store by their hash. */
export type Blobs = ReadonlyMap<Sha256, string>;

/** The turns that a prompt of one window class is made of. */
export interface Selection {
  compaction?: Compaction;
  turns: StoredTurn[];
}

/**
 * Which turns stand in a prompt: all done ones, or those after the newest compaction that was made for this window class or
 * a larger one. Nothing is dropped between compactions, so that a prompt only ever grows at its end.
 */
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
  const hashes = new Set<Sha256>();
  for (const turn of turns) {
    for (const image of turn.images) hashes.add(image.blob);
    if (trimOf(compaction, turn)) continue;
    for (const file of turn.files) {
      const hash = file.shown ?? file.base;
      if (hash && file.form !== 'unchanged' && file.form !== 'changed') hashes.add(hash);
    }
  }
  return [...hashes];
}

/** The stored part of a prompt: the same turns give the same bytes, whichever model or tool is asked next. */
export function renderTurns({ compaction, turns }: Selection, blobs: Blobs): Message[] {
  const messages: Message[] = [];
  if (compaction) messages.push(textMessage('user', compaction.summary));
  let previous: Turn | undefined;
  for (const turn of turns) {
    const text = renderTurn(turn, previous, blobs, trimOf(compaction, turn));
    const parts: Part[] = [{ type: 'text', text }];
    for (const image of turn.images) {
      const data = blobs.get(image.blob);
      if (data !== undefined)
        parts.push({ type: 'image', mediaType: image.mediaType, data: Buffer.from(data, 'base64') });
    }
    messages.push({ role: turn.role, section: 'turn', parts });
    previous = turn;
  }
  return messages;
}

function textMessage(role: Message['role'], text: string): Message {
  return { role, section: 'turn', parts: [{ type: 'text', text }] };
}

function trimOf(compaction: Compaction | undefined, turn: Turn): Trim | undefined {
  return compaction?.trims.find(trim => trim.seq === turn.seq);
}

/**
 * A turn as text. An assistant's is its bare answer, since models imitate whatever heads their answers; who wrote it is
 * said at the top of the next user turn.
 */
export function renderTurn(turn: Turn, previous: Turn | undefined, blobs: Blobs, trim?: Trim): string {
  const content = trim?.chars === undefined ? turn.content : cutMiddle(turn.content, trim.chars);
  if (turn.role === 'assistant') return content;
  const header = [`[turn ${turn.seq} · ${turn.toolName}]`];
  if (previous?.role === 'assistant') header.push(`[the answer above: ${previous.toolName} by ${modelOf(previous)}]`);
  const files = trim ? turn.files.map(file => noteOf(file)) : turn.files.map(file => renderFile(file, blobs));
  return [header.join(' '), content, ...files].join('\n\n');
}

function modelOf(turn: Turn): string {
  return turn.modelProvider && turn.modelName ? `${turn.modelProvider}:${turn.modelName}` : 'an unnamed model';
}

function noteOf(file: FileRecord): string {
  return `--- FILE LEFT OUT (shown earlier, ask for it again): ${printablePath(file.path)} ---`;
}

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
      return `--- BEGIN DIFF: ${path} ---\n${textOf(file.shown, blobs)}\n--- END DIFF: ${path} ---`;
    case 'full':
      return embedded(path, `${file.lines} lines`, numberLines(textOf(file.base, blobs)));
    case 'range': {
      const { from, to } = file.range ?? { from: 1, to: file.lines };
      const lines = textOf(file.base, blobs)
        .split('\n')
        .slice(from - 1, to);
      return embedded(path, `lines ${from}-${to} of ${file.lines}`, numberLines(lines.join('\n'), from));
    }
  }
}

function embedded(path: string, extent: string, numbered: string): string {
  return `--- BEGIN FILE: ${path} (${extent}) ---\n${numbered}\n--- END FILE: ${path} ---`;
}

function textOf(hash: Sha256 | undefined, blobs: Blobs): string {
  const text = hash === undefined ? undefined : blobs.get(hash);
  return text ?? '[the text is no longer in the store]';
}

/** What a turn costs in every prompt it stands in. */
export function turnTokens(turn: Omit<Turn, 'tokens'>, previous: Turn | undefined, blobs: Blobs): number {
  return estimateTokens(renderTurn({ ...turn, tokens: 0 }, previous, blobs)) + imageTokens * turn.images.length;
}

/** What vendors charge for an image at the most, about. */
export const imageTokens = 1_600;
