import { securityError } from '../core/errors.ts';
import type { Mask, MaskedPlace } from '../core/ports.ts';
import { isDistinctiveSecret, printablePath } from '../core/text.ts';
import { changedLines } from './diff.ts';
import { isSkip } from './paths.ts';
import { type ReadOptions, readFile } from './read-file.ts';
import type { Sandbox } from './sandbox.ts';

/** What placeholders stand for. */
export type SecretsByPlaceholder = ReadonlyMap<string, string>;

interface SecretsRequest extends ReadOptions {
  /** The placeholders that are looked for. */
  wanted: ReadonlySet<string>;
  /** Files that were masked, the likeliest first; absolute. */
  paths: readonly string[];
  /** What they were masked under: thread ids. */
  scopes: readonly string[];
  sandbox: Sandbox;
  mask: Mask;
}

/** With the flag `g`: for matching and replacing all. */
export const placeholder = /\[masked:\w{1,40}:[0-9a-f]{8}\]/g;

export const placeholdersIn = (text: string): Set<string> => new Set(text.match(placeholder));

/** Numbers of the lines that have a placeholder, from 1. */
export const maskedLines = (text: string): number[] =>
  text.split('\n').flatMap((line, index) => (placeholdersIn(line).size > 0 ? [index + 1] : []));

/**
 * Finds what placeholders stand for by masking the files again, as they are now: nobody keeps a secret for this. What is not in
 * those files any more, or what two secrets share, is not found. Nothing outside the roots is looked at.
 */
export async function findSecrets(request: SecretsRequest): Promise<SecretsByPlaceholder> {
  const { sandbox, mask, maxBytes, signal } = request;
  const found = new Map<string, string>();
  const shared = new Set<string>();
  for (const path of request.paths) {
    const file = await readFile(sandbox, path, { maxBytes, signal });
    if (isSkip(file)) continue;
    for (const scope of request.scopes) {
      const { places = [] } = await mask(file.text, scope);
      for (const { start, end, placeholder: name } of places) {
        if (!request.wanted.has(name)) continue;
        const original = file.text.slice(start, end);
        if ((found.get(name) ?? original) !== original) shared.add(name);
        found.set(name, original);
      }
    }
  }
  for (const name of shared) found.delete(name);
  return found;
}

/** For what is only read: a file that is written takes its secrets back by what `maskFile` answers. */
export const restoreSecrets = (text: string, originals: SecretsByPlaceholder): string =>
  text.replace(placeholder, found => originals.get(found) ?? found);

export interface MaskContext {
  mask: Mask;
  /** What the file may have been masked under, the one of now first. */
  scopes: readonly [string, ...string[]];
}

export interface WrittenSecret {
  kind: string;
  /** Its line is as it was. */
  kept: boolean;
  /** Of the new text as it was written, from 1. */
  line: number;
}

interface Secret {
  kind: string;
  name: string;
  value: string;
  /** What stands in front of it in its line of the masked text. */
  lead: string;
  used: boolean;
}

interface Line {
  text: string;
  secrets: Secret[];
  /** The change that removed it; undefined: it is still there. */
  change?: number;
}

/** `path` is for messages; `before` is empty for a file that is to be made. */
export async function maskFile({ mask, scopes }: MaskContext, path: string, before: string) {
  const [scope, ...earlier] = scopes;
  const { text, places = [] } = await mask(before, scope);
  const names = new Map<string, string>();
  for (const other of earlier) {
    for (const { start, end, placeholder: name } of (await mask(before, other)).places ?? []) {
      const same = places.find(place => place.start === start && place.end === end);
      if (same) names.set(name, same.placeholder);
    }
  }
  return {
    text,
    /** A text that was written under any of the scopes, with the placeholders of the first. */
    canonical: (written: string) => written.replace(placeholder, name => names.get(name) ?? name),
    /**
     * The new text with the real secrets, each where it stood: in a line that is as it was, or in what replaces that line and
     * kept what stands in front of the secret. Throws SECURITY for a placeholder anywhere else, and for a change after which
     * a secret would not be recognised any more. From then on the mask knows the file's secrets by their values.
     */
    async restore(after: string) {
      const lines = linesOf(before, text, places);
      const secrets = lines.flatMap(line => line.secrets);
      if (secrets.length > 0) mask.remember?.(secrets, scope);
      const restored = putBack(path, { before, lines }, after);
      const [was, is] = [await mask(before, scope, 'rules'), await mask(restored.text, scope, 'rules')];
      for (const { kind, value } of secrets) {
        const parts = [value, ...value.split('\n')].filter(isDistinctiveSecret);
        if (parts.some(part => is.text.split(part).length > was.text.split(part).length))
          throw securityError(
            `With this change a secret of ${printablePath(path)} (${kind}) would not be recognized as one any more.`,
            {
              class: 'masked',
              next: 'Keep the names and the form of the lines around the secret, or say in the answer what the user has to change there.',
            },
          );
      }
      return restored;
    },
  };
}

function linesOf(before: string, text: string, places: readonly MaskedPlace[]): Line[] {
  let shift = 0;
  const secrets = places.map(({ start, end, kind, placeholder: name }) => {
    const at = start + shift;
    shift += name.length - (end - start);
    return { kind, name, value: before.slice(start, end), at };
  });
  let next = 0;
  return text.split('\n').map(line => {
    const from = next;
    next += line.length + 1;
    const own = secrets.filter(({ at }) => at >= from && at < next);
    const known = own.map(({ at, ...secret }) => ({ ...secret, lead: line.slice(0, at - from), used: false }));
    return { text: line, secrets: known };
  });
}

function putBack(path: string, { before, lines: old }: { before: string; lines: Line[] }, after: string) {
  const now = after.split('\n');
  const texts = old.map(line => line.text);
  const changes = changedLines(texts, now);
  const rows: { text: string; same?: Line; change: number }[] = [];
  let at = 0;
  for (const [index, { value, added, removed }] of changes.entries()) {
    // What is removed and what is added follow each other: what is the same parts two changes.
    const change = added && changes[index - 1]?.removed ? index - 1 : index;
    for (const text of value) {
      const line = added ? undefined : old[at++];
      if (removed && line) line.change = change;
      if (!removed) rows.push({ text, ...(line && { same: line }), change });
    }
  }
  const gone = old.filter(line => line.change !== undefined);
  const secrets: WrittenSecret[] = [];
  const done = rows.map(({ text, same, change }, index) =>
    text.replace(placeholder, (name, offset: number) => {
      const lead = text.slice(0, offset);
      const own = ({ name: other, used }: Secret) => other === name && !used;
      const inPlace = same?.secrets.find(secret => secret.lead === lead);
      const near = gone.flatMap(line => (line.change === change ? line.secrets : []));
      const edited = near.find(secret => own(secret) && isKept(secret.lead, lead, texts, now));
      const moved = () => gone.find(line => isMoved(line.text, text))?.secrets.find(own);
      const found = same ? inPlace : (edited ?? moved());
      if (found) {
        found.used = true;
        secrets.push({ kind: found.kind, kept: same !== undefined, line: index + 1 });
        return found.value;
      }
      const isText = before.includes(name) && !old.some(line => line.secrets.some(secret => secret.name === name));
      if (same || isText) return name;
      const [file, line] = [printablePath(path), index + 1];
      const message = `Line ${line} of ${file} would have ${name}, and no secret that it replaces was at this place.`;
      throw securityError(message, {
        class: 'masked',
        next: `Write the placeholder only in the line of ${file} that has it, behind the same name. Leave it out elsewhere, and say in the answer where the user has to put the secret.`,
        data: { lines: [line] },
      });
    }),
  );
  return { text: done.join('\n'), secrets };
}

/** A line of the file that stands elsewhere now. One that is nothing but a placeholder has nothing to be known by. */
const isMoved = (before: string, text: string): boolean =>
  before.trim() === text.trim() && /\w/.test(text.replace(placeholder, ''));

/**
 * Whether the text in front of a secret is still the same but for quotes and spaces, ends in the same name, or is an
 * assignment whose name was changed: the old one is gone from the file, and the new one is no other line's.
 */
function isKept(before: string, now: string, oldLines: readonly string[], newLines: readonly string[]): boolean {
  const [old, lead] = [compared(before), compared(now)];
  if (old === lead) return true;
  const name = lastWord.exec(lead)?.[0] ?? '';
  if (/\w/.test(name) && name === lastWord.exec(old)?.[0]) return true;
  const begins = (lines: readonly string[], text: string) => lines.some(line => compared(line).startsWith(text));
  return assignment.test(old) && assignment.test(lead) && !begins(newLines, old) && !begins(oldLines, lead);
}

/** With what joins it to its value. */
const lastWord = /(?<![^\s,{([;])[^\s,{([;]+[({[]?$/;

const assignment = /^[\w.$ -]+(?::=|=>|[=:])$/;

const compared = (text: string): string =>
  text
    .replace(/["'`]/g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([=:]+>?) ?/g, '$1')
    .trim();
