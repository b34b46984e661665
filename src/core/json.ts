export type Json = string | number | boolean | null | Json[] | JsonObject;

/** A JSON object; keys whose value is undefined are left out when it is written. */
export interface JsonObject {
  [key: string]: Json | undefined;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A text where one should stand, as far as it does: what was stored may have been written by anybody. */
export function textIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The same for a number. */
export function numberIn(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

/** The texts of a list, without what else stands in it. */
export function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter(item => typeof item === 'string') : [];
}
