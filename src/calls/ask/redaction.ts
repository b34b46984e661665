import { isRecord, type JsonObject } from '../../core/json.ts';
import type { Mask } from '../../core/ports.ts';

/**
 * Arguments with the secrets in their texts masked, keyed by the thread they belong to: done once, before anything is made
 * of them, so that neither provider, store, log nor reply sees one. Halves of surrogate pairs, which some vendors refuse and
 * no store keeps, are replaced on the way.
 */
export async function maskArguments(
  mask: Mask,
  args: Record<string, unknown>,
  scope: string,
): Promise<Record<string, unknown>> {
  const entries = Object.entries(args).map(
    async ([name, value]) => [name, await maskValue(mask, value, scope)] as const,
  );
  return Object.fromEntries(await Promise.all(entries));
}

/** The same for a document of ours: an error may quote what was refused before it was masked, or what a vendor said. */
export async function maskDocument(mask: Mask, document: JsonObject, scope: string): Promise<JsonObject> {
  const masked: JsonObject = JSON.parse(JSON.stringify(await maskArguments(mask, document, scope)));
  return masked;
}

async function maskValue(mask: Mask, value: unknown, scope: string): Promise<unknown> {
  if (typeof value === 'string') return (await mask(value.toWellFormed(), scope)).text;
  if (Array.isArray(value)) return Promise.all(value.map(item => maskValue(mask, item, scope)));
  return isRecord(value) ? maskArguments(mask, value, scope) : value;
}
