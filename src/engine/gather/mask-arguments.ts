import { isRecord } from '../../domain/json.ts';
import type { Mask } from '../../domain/ports.ts';

/**
 * Arguments with the secrets in their texts masked, keyed by the thread they belong to: done once, before anything is made
 * of them, so that neither provider, store, log nor reply sees one.
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

async function maskValue(mask: Mask, value: unknown, scope: string): Promise<unknown> {
  // A picture's bytes are no text; what looks like a key in them is none.
  if (typeof value === 'string') return value.startsWith('data:image/') ? value : (await mask(value, scope)).text;
  if (Array.isArray(value)) return Promise.all(value.map(item => maskValue(mask, item, scope)));
  return isRecord(value) ? maskArguments(mask, value, scope) : value;
}
