import { hash } from 'node:crypto';
import { type Sha256, sha256 } from '../../core/ids.ts';
import { mapTexts } from '../../core/json.ts';
import type { Mask } from '../../core/ports.ts';
import type { StoredTurn } from '../../core/thread.ts';
import { mapCitations } from '../transcript.ts';
import type { FileRecordLine } from './records.ts';

/** What is known of the texts that a file brings. */
interface KnownTexts {
  /** Texts that are not what they were, or that the file does not bring: their hash before → their hash now. */
  renamed: Map<string, Sha256>;
  /** Texts that are bytes in base64: there are no secrets in those, but what looks like some. */
  pictures: Set<Sha256>;
}

/** Masks what a file brings in, as everything is that comes into the store. What was masked before stays as it is. */
export type RecordMask = ReturnType<typeof createRecordMask>;

/** What stands in a turn for a text that its file does not bring: the hash of no text that anybody stores. */
export const lostText = (of: Sha256): Sha256 => sha256(hash('sha256', `lost ${of}`));

/** Turns come before the texts they refer to: a second reading is given what the first one found out of them. */
export function createRecordMask(mask: Mask, scope: string, { renamed, pictures }: KnownTexts) {
  const found: Record<string, number> = {};

  async function text(value: string, by?: 'model'): Promise<string> {
    const masked = await mask(value, scope, by);
    for (const [kind, count] of Object.entries(masked.found)) found[kind] = (found[kind] ?? 0) + count;
    return masked.text;
  }

  async function turn(given: StoredTurn): Promise<StoredTurn> {
    const now = (sha: Sha256 | undefined) => (sha === undefined ? undefined : (renamed.get(sha) ?? sha));
    const files = given.files.map(file => ({
      ...file,
      ...(file.base && { base: now(file.base) }),
      ...(file.shown && { shown: now(file.shown) }),
    }));
    const images = given.images.map(image => ({ ...image, blob: renamed.get(image.blob) ?? image.blob }));
    return {
      ...given,
      content: await text(given.content, given.role === 'assistant' ? 'model' : undefined),
      citations: await mapCitations(given.citations, text),
      files,
      images,
    };
  }

  async function blob(given: Extract<FileRecordLine, { kind: 'blob' }>): Promise<FileRecordLine> {
    if (pictures.has(given.sha256)) return given;
    const masked = await text(given.text);
    if (masked === given.text) return given;
    const now = sha256(hash('sha256', masked));
    renamed.set(given.sha256, now);
    return { ...given, sha256: now, text: masked };
  }

  return {
    renamed,
    pictures,
    /** Kind of secret → how many were masked. */
    found,
    /** The record without secrets. Texts get another hash by that, which turns that refer to them learn from `renamed`. */
    async record(line: FileRecordLine): Promise<FileRecordLine> {
      switch (line.kind) {
        case 'head': {
          const title = await text(line.head.title);
          const initialContext = await mapTexts(line.head.initialContext, words => text(words));
          return { kind: 'head', head: { ...line.head, title, initialContext } };
        }
        case 'turn':
          return { kind: 'turn', turn: await turn(line.turn) };
        case 'compaction': {
          const summary = await text(line.compaction.summary, 'model');
          return { kind: 'compaction', compaction: { ...line.compaction, summary } };
        }
        case 'workflow':
          return { ...line, state: await mapTexts(line.state, words => text(words)) };
        case 'blob':
          return blob(line);
        case 'end':
          return line;
      }
    },
  };
}
