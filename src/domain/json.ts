export type Json = string | number | boolean | null | Json[] | JsonObject;

/** A JSON object; keys whose value is undefined are left out when it is written. */
export interface JsonObject {
  [key: string]: Json | undefined;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
