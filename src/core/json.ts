/** Whatever JSON can say. */
export type Json = string | number | boolean | null | Json[] | JsonObject;

/** A JSON object; keys whose value is undefined are left out when it is written. */
export interface JsonObject {
  [key: string]: Json | undefined;
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What a JSON text says, a byte order mark aside; undefined where it is none. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text);
  } catch {
    // Who asks knows what it is then; the parser's own message quotes the text.
    return undefined;
  }
}

/** JSON in which the order of an object's keys says nothing. */
export const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) =>
    isRecord(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );

/** What is left of a record when it is written as JSON. */
export function jsonOf(record: object): JsonObject {
  const copy: JsonObject = JSON.parse(JSON.stringify(record));
  return copy;
}

/** The fields of a record as logs and replies name them (`reqId` → `req_id`), put into `copy`. */
export function snakeCased(record: object, copy: Record<string, unknown> = {}): Record<string, unknown> {
  for (const [name, value] of Object.entries(record)) {
    const shown = /[A-Z]/.test(name) ? name.replace(/[A-Z]/g, '_$&').toLowerCase() : name;
    copy[shown] = isRecord(value) ? snakeCased(value) : value;
  }
  return copy;
}

type MapText = (text: string) => Promise<string>;

/** A copy in which `text` has replaced every text; keys stay as they are. */
export function mapTexts(value: JsonObject, text: MapText): Promise<JsonObject>;
export function mapTexts(value: Record<string, unknown>, text: MapText): Promise<Record<string, unknown>>;
export function mapTexts(value: unknown, text: MapText): Promise<unknown>;
export async function mapTexts(value: unknown, text: MapText): Promise<unknown> {
  if (typeof value === 'string') return text(value);
  if (Array.isArray(value)) return Promise.all(value.map(item => mapTexts(item, text)));
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).map(async ([key, inner]) => [key, await mapTexts(inner, text)] as const);
  return Object.fromEntries(await Promise.all(entries));
}

/** A text where one should stand, as far as it does: what was stored may have been written by anybody. */
export const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The same for a number. */
export const numberIn = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** The texts of a list, without what else stands in it. */
export const textsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter(item => typeof item === 'string') : [];

/** The same for an object. */
export const recordIn = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {});

/** Objects in a list that may hold anything; none where it is no list. */
export const recordsIn = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isRecord) : [];
