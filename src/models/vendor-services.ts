import { isRecord, type JsonObject } from '../core/json.ts';
import type { SharedState } from '../core/ports.ts';

/** A prompt's beginning that is kept at a vendor, and paid for while it is. */
export interface VendorCache {
  provider: string;
  /** The vendor's id of the model; a cache serves no other. */
  model: string;
  /** The thread whose prompts begin so. */
  thread: string;
  /** The vendor's name of it. */
  name: string;
  /** Of what was cached; another hash is another prompt. */
  hash: string;
  /** Messages in it, instructions not counted. */
  messages: number;
  /** As the vendor counts them. */
  tokens: number;
  /** Epoch milliseconds; a renewal sets both anew. */
  created: number;
  expires: number;
  /** Paths of the files whose text is in it. */
  files: string[];
}

const prefix = 'cache/';

export function cacheKey({ provider, model, thread }: Pick<VendorCache, 'provider' | 'model' | 'thread'>): string {
  return `${prefix}${provider}/${model}/${thread}`;
}

/** All caches that processes on this store have at vendors, the newest first. */
export async function listVendorCaches(state: SharedState, now: number): Promise<VendorCache[]> {
  const found = [...(await state.list(prefix)).values()].flatMap(value => readVendorCache(value) ?? []);
  return found.filter(cache => cache.expires > now).sort((a, b) => b.created - a.created);
}

/** Undefined for what another program wrote there. */
export function readVendorCache(value: JsonObject | undefined): VendorCache | undefined {
  if (!isRecord(value)) return undefined;
  const { provider, model, thread, name, hash, messages, tokens, created, expires, files } = value;
  if (typeof provider !== 'string' || typeof model !== 'string' || typeof thread !== 'string') return undefined;
  if (typeof name !== 'string' || typeof hash !== 'string' || typeof messages !== 'number') return undefined;
  if (typeof tokens !== 'number' || typeof created !== 'number' || typeof expires !== 'number') return undefined;
  const paths = Array.isArray(files) ? files.filter(path => typeof path === 'string') : [];
  return { provider, model, thread, name, hash, messages, tokens, created, expires, files: paths };
}
