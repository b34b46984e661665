import { isRecord } from '../../core/json.ts';
import { vendorFetch } from '../shared/http.ts';

/** What a request of the Gemini interface says before its newest message, in the vendor's own words. */
export interface GooglePrefix {
  /** The vendor's id. */
  model: string;
  systemInstruction: unknown;
  contents: readonly unknown[];
}

export interface CreatedCache {
  name: string;
  tokens: number;
  /** Milliseconds for which the vendor keeps it; undefined: it did not say. */
  keptMs: number | undefined;
}

/** The `cachedContents` of the Gemini interface. Each method throws when the vendor refuses or does not answer. */
export type CachedContents = ReturnType<typeof cachedContents>;

export interface GoogleAddress {
  baseUrl: string;
  headers: Readonly<Record<string, string>>;
}

/** A name goes into an address, and came from outside. */
const namePattern = /^cachedContents\/[\w-]{1,200}$/;

export const isCacheName = (name: string): boolean => namePattern.test(name);

/** Between two times of the vendor: its clock need not agree with ours. */
function keptIn(cache: unknown): number | undefined {
  const { expireTime, updateTime } = isRecord(cache) ? cache : {};
  const ms = Date.parse(String(expireTime)) - Date.parse(String(updateTime));
  return ms > 0 ? ms : undefined;
}

export function cachedContents({ baseUrl, headers }: GoogleAddress) {
  async function send(method: string, path: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    const response = await vendorFetch(`${baseUrl}/${path}`, {
      method,
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal,
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path.split('?')[0]} was answered with ${response.status}.`);
    return JSON.parse(text);
  }

  return {
    async create({ model, systemInstruction, contents }: GooglePrefix, ttlSeconds: number, signal: AbortSignal) {
      const said = {
        ...(systemInstruction !== undefined && { systemInstruction }),
        ...(contents.length > 0 && { contents }),
      };
      const made = await send(
        'POST',
        'cachedContents',
        { model: `models/${model}`, ...said, ttl: `${ttlSeconds}s` },
        signal,
      );
      const { name, usageMetadata } = isRecord(made) ? made : {};
      const tokens = isRecord(usageMetadata) ? usageMetadata.totalTokenCount : undefined;
      if (typeof name !== 'string' || !isCacheName(name)) throw new Error('The cache that was made has no name.');
      return { name, tokens: typeof tokens === 'number' && tokens > 0 ? tokens : 0, keptMs: keptIn(made) };
    },
    /** Sets the time that it has left, and tells what was granted. */
    renew: async (name: string, ttlSeconds: number, signal: AbortSignal) =>
      keptIn(await send('PATCH', `${name}?updateMask=ttl`, { ttl: `${ttlSeconds}s` }, signal)),
    async remove(name: string, signal: AbortSignal) {
      await send('DELETE', name, undefined, signal);
    },
  };
}
