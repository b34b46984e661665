import { setImmediate as turn } from 'node:timers/promises';
import { AppError } from '../../core/errors.ts';
import { type JsonObject, jsonOf, mapTexts, textIn } from '../../core/json.ts';
import { type Message, textOf } from '../../core/message.ts';
import type { Mask, MaskedPlace } from '../../core/ports.ts';
import { estimateTokens, tokenFactor } from '../../core/tokens.ts';
import type { ModelAnswer } from '../../models/ask-model.ts';
import { scopesOf } from '../../threads/threads.ts';
import { mapCitations } from '../../threads/transcript.ts';
import type { SecretsByPlaceholder } from '../../workspace/restore-secrets.ts';
import { findSecrets, placeholdersIn, restoreSecrets } from '../../workspace/restore-secrets.ts';
import type { PreparedCall } from '../call-record.ts';
import type { CallServices } from './services.ts';

/**
 * Arguments with the secrets in their texts masked, keyed by the thread they belong to: done once, before anything is made
 * of them, so that neither provider, store, log nor reply sees one. Halves of surrogate pairs, which some vendors refuse and
 * no store keeps, are replaced on the way.
 */
export const maskArguments = (mask: Mask, args: Record<string, unknown>, scope: string) =>
  mapTexts(args, maskText(mask, scope));

/** The same for a document of ours: an error may quote what was refused before it was masked, or what a vendor said. */
export const maskDocument = (mask: Mask, document: JsonObject, scope: string): Promise<JsonObject> =>
  mapTexts(jsonOf(document), maskText(mask, scope));

/** An error becomes part of an ordinary reply and of the thread: what a vendor quotes of a key must not. */
export async function withoutSecrets(mask: Mask, scope: string, error: AppError): Promise<AppError> {
  const { message, next } = await maskDocument(mask, { message: error.message, next: error.details.next }, scope);
  return new AppError(error.kind, textIn(message), { ...error.details, next: textIn(next) || undefined });
}

function maskText(mask: Mask, scope: string): (text: string) => Promise<string> {
  return async text => (await mask(text.toWellFormed(), scope)).text;
}

/** Files that are read again for this, the newest first. */
const maxFiles = 200;

/** What placeholders of a thread stand for, as far as the files that it was sent still hold that; nothing else is asked. */
export async function secretsOfThread(
  { store, sandbox, mask, maxFileBytes }: CallServices,
  { thread, turn, signal }: Pick<PreparedCall, 'thread' | 'turn' | 'signal'>,
  wanted: ReadonlySet<string>,
): Promise<SecretsByPlaceholder> {
  if (wanted.size === 0) return new Map();
  const sent = [...thread.turns, turn].flatMap(({ files }) => files).toReversed();
  // An outline shows text of its file as well, and has no base.
  const showing = sent.filter(({ base, shown }) => (base ?? shown) !== undefined);
  const paths = [...new Set(showing.map(({ path }) => path))].slice(0, maxFiles);
  const scopes = await scopesOf(store, thread);
  return findSecrets({ wanted, paths, scopes, sandbox, mask, maxBytes: maxFileBytes, signal });
}

/**
 * For models that run on this machine: the stored, masked prompt with the secrets of its files put back as it is sent, and those
 * secrets, which the thread must not keep.
 * Undefined where there are none, where any candidate is elsewhere, or where it would not fit any more.
 */
export async function unmaskPrompt(services: CallServices, gathered: PreparedCall) {
  const { candidates, messages, thread } = gathered;
  if (!candidates.every(({ model }) => services.runsHere(model.provider))) return undefined;
  const shown = await secretsOfThread(services, gathered, placeholdersIn(messages.map(textOf).join('\n')));
  if (shown.size === 0) return undefined;
  // What a local model makes of them may be written anywhere.
  const secrets = [...shown].map(([name, value]) => ({ kind: name.split(':')[1] ?? 'secret', value }));
  services.mask.remember?.(secrets, thread.id);
  const clear = messages.map(message => ({
    ...message,
    parts: message.parts.map(part =>
      part.type === 'text' ? { ...part, text: restoreSecrets(part.text, shown) } : part,
    ),
  }));
  return fits(gathered, clear) ? { messages: clear, shown } : undefined;
}

/** Secrets are longer than what stands for them. */
function fits({ candidates: [{ model }], messages, budget }: PreparedCall, clear: readonly Message[]): boolean {
  const count = (all: readonly Message[]) => all.reduce((sum, each) => sum + estimateTokens(textOf(each)), 0);
  const more = (count(clear) - count(messages)) * tokenFactor(model.id);
  return budget.reserved + budget.historyUsed + budget.filesUsed + budget.answer + more <= model.window;
}

/** Parts of a secret of several lines that are long enough to be known by themselves. */
const leastPart = 12;

/**
 * An answer as it may be stored and shown. Models make secrets up, and repeat what they found in ways the files did not have;
 * one that was `shown` secrets may repeat them without what they are known by.
 */
export async function maskAnswer(
  mask: Mask,
  scope: string,
  answer: ModelAnswer,
  shown: SecretsByPlaceholder = new Map(),
): Promise<ModelAnswer> {
  const hide = async (text: string) => (await mask(withoutShown(text, shown), scope, 'model')).text;
  return {
    ...answer,
    // As the store keeps it: half of a surrogate pair would come back as another character and change the prompt.
    text: await hide(answer.text.toWellFormed()),
    citations: await mapCitations(answer.citations, hide),
    warnings: await Promise.all(answer.warnings.map(hide)),
  };
}

/** The longest first, so that a secret within another leaves nothing of that. */
function withoutShown(text: string, shown: SecretsByPlaceholder): string {
  const parts = [...shown].flatMap(([placeholder, original]) =>
    [original, ...original.split('\n').filter(line => line.length >= leastPart)].map(part => ({ part, placeholder })),
  );
  parts.sort((a, b) => b.part.length - a.part.length);
  return parts.reduce((left, { part, placeholder }) => left.replaceAll(part, () => placeholder), text);
}

const keyBegin = '-----BEGIN';

const keyEnd = '-----END';

/** New words are masked with so many characters before them, or a little more: what a secret is known by stands nearer. */
const overlap = 2_048;

/** No mark of a secret is longer, with all that stands between it and the secret. */
const reach = 700;

/**
 * An answer as it arrives: passes whole words on, each masked together with what stands before it in its line, since a secret may be
 * known only by that. The word that is still growing is held back, and so is a private key until it is whole. What comes in one turn
 * of the event loop is masked together, and a line once more as a whole when it ends.
 */
export function createMaskedStream(mask: Mask, scope: string, onText: (text: string) => void) {
  /** The line that is not ended yet. */
  let line = '';
  /** Where the part of it begins that new words are masked with. */
  let base = 0;
  /** The masked form of what stands after `base`, as far as it is out. */
  let out = '';
  /** The end of what is out. */
  let sent = 0;
  let isWanted = false;
  let isBusy = false;
  let work = Promise.resolve();
  // A copy: a part of a text keeps all of that in memory, for as long as it waits for a client.
  const tell = (text: string) => onText(structuredClone(text));

  async function pass(words: number): Promise<void> {
    const { text, places = [] } = await mask(line.slice(base, words), scope, 'model');
    // A secret turned out to have begun before: what is out is none of it, for it was masked with all that stood there.
    if (!text.startsWith(out)) return;
    if (text.length > out.length) tell(text.slice(out.length));
    out = text;
    sent = words;
    const next = wordStart(line, words - overlap) - base;
    const isApart = places.every(({ start, end }) => end <= next || start - reach >= next);
    if (next < overlap || !isApart) return;
    out = text.slice(lengthBefore(next, places));
    base += next;
  }

  async function ended(text: string): Promise<void> {
    const { text: masked, places = [] } = await mask(text, scope, 'model');
    // What follows may show that a secret is of another kind than it seemed.
    const rest = masked.slice(lengthBefore(sent, places));
    if (rest !== '') tell(rest);
    out = '';
    sent = 0;
    base = 0;
  }

  async function advance(): Promise<void> {
    // From the first one that begins: a key without an end is masked together with the next one.
    const key = line.indexOf(keyBegin);
    const end = line.lastIndexOf(keyEnd);
    const isOpen = end < line.lastIndexOf(keyBegin);
    const { length } = line;
    const lines = line.lastIndexOf('\n', isOpen ? key : length) + 1;
    if (lines > 0) {
      await ended(line.slice(0, lines));
      line = line.slice(lines);
    }
    // What came meanwhile may end this line: it waits for the next turn.
    const words = isOpen ? 0 : wordStart(line, length - lines);
    if (words > base) await pass(words);
  }

  async function follow(): Promise<void> {
    isBusy = true;
    for (; isWanted; await turn()) {
      isWanted = false;
      await advance();
    }
    isBusy = false;
  }

  return {
    push(delta: string): void {
      line += delta;
      isWanted ||= /\s/.test(delta);
      if (isBusy || !isWanted) return;
      work = follow();
      // `end` throws it; until then it is nobody's.
      work.catch(() => {});
    },
    /** Passes on what was held back; resolves once all of it is out. */
    async end(): Promise<void> {
      await work;
      await ended(line);
    },
  };
}

/** Behind the last white space before `end`; 0 where there is none. */
function wordStart(text: string, end: number): number {
  let at = end;
  while (at > 0 && !/\s/.test(text[at - 1] ?? '')) at--;
  return at;
}

/** How long the masked form of a beginning is; a secret that goes on behind it is no part of it. */
function lengthBefore(end: number, places: readonly MaskedPlace[]): number {
  let length = end;
  for (const place of places) {
    if (place.end <= end) length += place.placeholder.length - (place.end - place.start);
    else if (place.start < end) length -= end - place.start;
  }
  return length;
}
