import { isRecord, type JsonObject } from '../core/json.ts';

/** What a reply warns of, as lines for stderr. */
export function warningsOf({ metadata }: JsonObject): string[] {
  const list: unknown[] = isRecord(metadata) && Array.isArray(metadata.warnings) ? metadata.warnings : [];
  return list.map(warning => `polylogue: ${String(warning)}\n`);
}
