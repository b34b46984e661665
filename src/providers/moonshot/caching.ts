import { createHash } from 'node:crypto';
import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { isAppError } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import { readVendorError } from '../../models/resilience/classify-error.ts';
import { type VendorEndpoint, vendorJson, vendorRequest } from '../shared/http.ts';
import { changedModel } from '../shared/stream-transforms.ts';

/** The paid cache of the moonshot-v1 family: the beginning of a prompt, kept at the vendor for a time. */
export interface MoonshotCaching {
  /** Answers the new cache's id. */
  create(messages: readonly CachedMessage[], signal: AbortSignal): Promise<StoredCache>;
  status(id: string, signal: AbortSignal): Promise<StoredCache>;
  remove(id: string, signal: AbortSignal): Promise<void>;
  /** The model, whose prompts' long beginnings are cached at the vendor and found there again. */
  cached(model: LanguageModelV4): LanguageModelV4;
}

export interface CachedMessage {
  role: 'system';
  content: string;
}

export interface StoredCache {
  id: string;
  /** `pending | ready | error | inactive`, as the vendor says it. */
  status: string;
}

/** A shorter beginning is not worth what the cache costs. */
const leastChars = 8_000;
const maxKnown = 256;
const timeoutMs = 15_000;
const what = 'its cache';

/** Keeps what it cached for `seconds` after its last use; 0: caches nothing. */
export function createMoonshotCaching(endpoint: VendorEndpoint, seconds: number): MoonshotCaching {
  const known = new Map<string, StoredCache>();

  async function create(messages: readonly CachedMessage[], signal: AbortSignal): Promise<StoredCache> {
    const body: JsonObject = {
      model: 'moonshot-v1',
      messages: messages.map(message => ({ ...message })),
      ttl: seconds,
    };
    return storedOf(await vendorJson(endpoint, { path: '/caching', body, what, timeoutMs, signal }));
  }

  async function status(id: string, signal: AbortSignal): Promise<StoredCache> {
    const path = `/caching/${encodeURIComponent(id)}`;
    return storedOf(await vendorJson(endpoint, { path, what, timeoutMs, signal }));
  }

  /** The cache of a prompt's beginning, made when there is none yet. Undefined: this call goes without. */
  async function ready(messages: readonly CachedMessage[], signal: AbortSignal): Promise<string | undefined> {
    const key = keyOf(messages);
    const before = known.get(key);
    try {
      const cache = !before
        ? await create(messages, signal)
        : before.status === 'ready'
          ? before
          : await status(before.id, signal);
      known.delete(key);
      if (cache.status === 'error' || cache.status === 'inactive') return undefined;
      known.set(key, cache);
      for (const oldest of known.keys()) if (known.size > maxKnown) known.delete(oldest);
      return cache.status === 'ready' ? cache.id : undefined;
    } catch (error) {
      // A cache only saves money: what it can't do must not stop the answer. A caller that gave up is told by the next request.
      if (!isAppError(error)) throw error;
      known.delete(key);
      return undefined;
    }
  }

  return {
    create,
    status,
    async remove(id, signal) {
      const path = `/caching/${encodeURIComponent(id)}`;
      await vendorRequest(endpoint, { method: 'DELETE', path, what, timeoutMs, signal, expects: [404] });
    },
    cached: model =>
      changedModel(model, {
        async doStream(options) {
          const beginning = seconds > 0 ? beginningOf(options) : undefined;
          const id = beginning && (await ready(beginning, options.abortSignal ?? new AbortController().signal));
          if (!beginning || id === undefined) return model.doStream(options);
          try {
            return await model.doStream(withCache(options, id, seconds));
          } catch (error) {
            if (!isGone(error)) throw error;
            // Its time ended: the prompt is whole, so the vendor can do without.
            known.delete(keyOf(beginning));
            return model.doStream(options);
          }
        },
      }),
  };
}

function storedOf({ id, status }: Record<string, unknown>): StoredCache {
  return { id: typeof id === 'string' ? id : '', status: typeof id === 'string' ? String(status) : 'error' };
}

/** Preamble and documents. A prompt with tools would need them in the cache too. */
function beginningOf({ prompt, providerOptions }: LanguageModelV4CallOptions): CachedMessage[] | undefined {
  if (providerOptions?.moonshot?.vendorSearch !== undefined) return undefined;
  const messages: CachedMessage[] = [];
  for (const message of prompt) {
    if (message.role !== 'system') break;
    messages.push({ role: 'system', content: message.content });
  }
  return messages.reduce((sum, { content }) => sum + content.length, 0) < leastChars ? undefined : messages;
}

function keyOf(messages: readonly CachedMessage[]): string {
  return createHash('sha256').update(JSON.stringify(messages)).digest('hex');
}

function withCache(options: LanguageModelV4CallOptions, id: string, seconds: number): LanguageModelV4CallOptions {
  const headers = { 'x-msh-context-cache': id, 'x-msh-context-cache-reset-ttl': String(seconds) };
  return { ...options, headers: { ...options.headers, ...headers } };
}

function isGone(error: unknown): boolean {
  const { status, message } = readVendorError(error);
  return (status === 400 || status === 404) && /cache/i.test(message);
}
