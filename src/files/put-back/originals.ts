import type { Mask } from '../../core/ports.ts';
import { readFile } from '../../workspace/read-file.ts';
import type { Sandbox } from '../../workspace/sandbox.ts';
import { isSkip } from '../skip.ts';

/** What placeholders stand for. */
export type Originals = ReadonlyMap<string, string>;

export interface OriginalsRequest {
  /** The placeholders that are looked for. */
  wanted: ReadonlySet<string>;
  /** Files that were masked, the likeliest first; absolute. */
  paths: readonly string[];
  /** What they were masked under: thread ids. */
  scopes: readonly string[];
  sandbox: Sandbox;
  mask: Mask;
  maxBytes: number;
  signal?: AbortSignal;
}

/** With the flag `g`: for matching and replacing all. */
export const placeholder = /\[masked:\w{1,40}:[0-9a-f]{8}\]/g;

export function placeholdersIn(text: string): Set<string> {
  return new Set(text.match(placeholder));
}

/**
 * Finds what placeholders stand for by masking the files again, as they are now: nobody keeps a secret for this. What is not in
 * those files any more, or what two secrets share, is not found. Nothing outside the roots is looked at.
 */
export async function findOriginals(request: OriginalsRequest): Promise<Originals> {
  const { sandbox, mask, maxBytes, signal } = request;
  const found = new Map<string, string>();
  const shared = new Set<string>();
  if (request.wanted.size === 0) return found;
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
