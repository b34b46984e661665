import { hash } from 'node:crypto';
import { remember, withDeadline } from '../../core/concurrency.ts';
import { recordIn, recordsIn, textsIn } from '../../core/json.ts';
import { estimateTokens } from '../../core/tokens.ts';
import { type ConnectContext, shownFiles, type VendorEndpoint } from '../../models/provider.ts';
import { cacheKey, listVendorCaches, readVendorCache, type VendorCache } from '../../models/vendor-services.ts';
import { type VendorRequest, vendorJson } from '../shared/http.ts';
import { firstCount } from '../shared/list-models.ts';

/** What a request of a thread says before its newest message. */
export interface PromptOfThread extends GooglePrefix {
  thread: string;
}

/** A beginning by which a longer prompt is known. */
type Beginning = Pick<VendorCache, 'messages' | 'hash'>;

const beginningOf = ({ model, systemInstruction, contents }: GooglePrefix): Beginning => ({
  messages: contents.length,
  hash: hash('sha256', JSON.stringify([model, systemInstruction, contents])),
});

function beginsLike(prompt: GooglePrefix, { messages, hash: wanted }: Beginning): boolean {
  if (messages > prompt.contents.length) return false;
  return beginningOf({ ...prompt, contents: prompt.contents.slice(0, messages) }).hash === wanted;
}

const textsOf = ({ systemInstruction, contents }: Omit<GooglePrefix, 'model'>): string[] =>
  [systemInstruction, ...contents].flatMap(message =>
    textsIn(recordsIn(recordIn(message).parts).map(({ text }) => text)),
  );

/** An estimate; images are not counted. */
const tokensOf = (prefix: Omit<GooglePrefix, 'model'>): number =>
  textsOf(prefix).reduce((sum, text) => sum + estimateTokens(text), 0);

/** Paths of the files whose text stands there. */
function filesOf(prefix: GooglePrefix): string[] {
  const shown = textsOf(prefix).flatMap(text => shownFiles(text).filter(({ lines }) => lines > 0));
  return [...new Set(shown.map(({ path }) => path))];
}

const provider = 'google';

/** One that ends within this time might be gone before the request arrives. */
const graceMs = 15_000;

/** How long the record of a cache that is gone is kept at the most, beyond its own time. */
const recordGraceMs = 60_000;

const partingMs = 3_000;

type CacheRecords = ReturnType<typeof cacheRecords>;

const keyOf = ({ model, thread }: Pick<PromptOfThread, 'model' | 'thread'>): string =>
  cacheKey({ provider, model, thread });

/** Which caches there are, told to all processes on the store, and which of them are this process's to remove. */
function cacheRecords({ vendor, state, clock }: GoogleCachesOptions) {
  const own = new Map<string, VendorCache>();
  const parting = new Set<Promise<unknown>>();
  const drop = (key: string, name: string) =>
    state
      // Another process may have made a new one meanwhile.
      .change(key, recordGraceMs, before => (before?.name === name ? undefined : before))
      // A record that stays leads to one more "not found" at the most.
      .catch(() => undefined);

  /** Removes it at the vendor, without waiting for it. */
  function part(name: string): void {
    // A vendor that does not answer drops it by itself when its time is over.
    const gone = withDeadline(clock, partingMs, signal => vendor.remove(name, signal)).catch(() => undefined);
    parting.add(gone);
    void gone.finally(() => parting.delete(gone));
  }

  return {
    /** The cache of a thread and model, while it lives. */
    async find(prompt: PromptOfThread) {
      const cache = readVendorCache(await state.get(keyOf(prompt)));
      return cache && isCacheName(cache.name) && clock.storeTime() < cache.expires - graceMs ? cache : undefined;
    },
    /** Says that this process made, renewed or used it: it goes when this process does. */
    async keep(cache: VendorCache) {
      for (const [key, { expires }] of own) if (expires <= clock.storeTime()) own.delete(key);
      own.set(cacheKey(cache), cache);
      await state.change(cacheKey(cache), cache.expires - clock.storeTime() + recordGraceMs, () => ({ ...cache }));
    },
    use: (cache: VendorCache) => void own.set(cacheKey(cache), cache),
    async forget(prompt: Pick<PromptOfThread, 'model' | 'thread'>, name: string) {
      const key = keyOf(prompt);
      if (own.get(key)?.name === name) own.delete(key);
      await drop(key, name);
    },
    part,
    /** Removes those that this process kept or used, record and all. */
    async close() {
      const mine = [...own];
      own.clear();
      for (const [, { name, expires }] of mine) if (expires > clock.storeTime()) part(name);
      await Promise.all(parting);
      await Promise.all(mine.map(([key, { name }]) => drop(key, name)));
    },
  };
}

/** Asked for; the vendor may grant less. */
const ttlMs = 3_600_000;
const ttl = `${ttlMs / 1_000}s`;

/** From this part of its time on, a cache that is used is renewed. */
const renewAt = 0.9;

/** The call waits for a cache no longer than this; it goes without one then. */
const patienceMs = 20_000;

/** Threads whose last prompt is remembered, so that the second call is known for one. */
const maxRemembered = 2_000;

interface GoogleCachesOptions extends ConnectContext {
  vendor: ReturnType<typeof cachedContents>;
}

/** What a request may leave out because a cache has it. */
export interface CacheInUse {
  name: string;
  /** Messages from the beginning that the cache holds. */
  messages: number;
  /** Tokens that were written to make it just now; 0 when it was there. */
  written: number;
  /** Tokens times hours of storage that were bought just now: its whole time, also where it goes earlier. */
  stored: number;
}

/** The caches of prompts' beginnings, one for each thread and model that is worth it. */
export type GoogleCaches = ReturnType<typeof googleCaches>;

/** From how many tokens on the vendor takes a cache, and never below what is worth the trouble; from the fourth generation on it takes none. */
function leastTokens(model: string): number {
  if (/^gemini-(1|2\.0|[4-9])/.test(model)) return Number.POSITIVE_INFINITY;
  return /^gemini-(2\.5|3)-flash/.test(model) ? 2_048 : 4_096;
}

export function googleCaches(options: GoogleCachesOptions) {
  const records = cacheRecords(options);
  /** Of the last answered prompt of each thread: a call that begins like the one before will probably be followed by more. */
  const beginnings = new Map<string, Beginning>();
  const answered = (prompt: PromptOfThread) => remember(beginnings, keyOf(prompt), beginningOf(prompt), maxRemembered);
  const build = builder(options, records);
  const renew = renewer(options, records);

  async function choose(prompt: PromptOfThread, signal: AbortSignal): Promise<CacheInUse | undefined> {
    const cache = await records.find(prompt);
    const before = beginnings.get(keyOf(prompt));
    if (!cache) return before && beginsLike(prompt, before) ? build(prompt, undefined, signal) : undefined;
    if (!beginsLike(prompt, cache)) {
      const other = await build(prompt, cache, signal);
      // A call without the thread's history leaves the cache to those with it; a history that begins otherwise was compacted.
      if (!other && prompt.contents.length > 0) await giveUp(prompt, cache.name);
      return other;
    }
    const beyond = tokensOf({ systemInstruction: undefined, contents: prompt.contents.slice(cache.messages) });
    // A longer one is made when it has doubled: all of them together cost no more than twice the last.
    const larger = beyond >= Math.max(cache.tokens, leastTokens(prompt.model)) && (await build(prompt, cache, signal));
    if (larger) return larger;
    const stored = await renew(cache, signal);
    records.use(cache);
    return { name: cache.name, messages: cache.messages, written: 0, stored };
  }

  async function giveUp(prompt: Pick<PromptOfThread, 'model' | 'thread'>, name: string): Promise<void> {
    await records.forget(prompt, name);
    records.part(name);
  }

  return {
    /** The cache that holds the beginning of this prompt; undefined: ask without one. Never throws. */
    async forPrompt(prompt: PromptOfThread, signal: AbortSignal) {
      try {
        return await choose(prompt, signal);
      } catch {
        // The store of the records failed: what matters there is said by whoever stores the answer.
        return undefined;
      }
    },
    /** The vendor took this prompt: the next one that begins like it is known for another of its thread. */
    answered,
    /** The vendor does not know it any more. */
    async lost(prompt: PromptOfThread, name: string) {
      // That this prompt had a cache shows that it is worth one.
      answered(prompt);
      await records.forget(prompt, name);
    },
    /** Removes those of a thread that is no more, whichever process made them. */
    async forget(thread: string) {
      const all = await listVendorCaches(options.state, options.clock.storeTime());
      const gone = all.filter(cache => cache.provider === provider && cache.thread === thread);
      await Promise.all(gone.map(cache => giveUp(cache, cache.name)));
    },
    /** Removes those that this process made or used. */
    close: records.close,
  };
}

/** Makes a cache of all of a prompt where that is worth it, and only then gives up the one before. */
function builder({ vendor, clock }: GoogleCachesOptions, records: CacheRecords) {
  /** Key → tokens from which on it may be tried again. */
  const refused = new Map<string, number>();
  return async (prompt: PromptOfThread, before: VendorCache | undefined, signal: AbortSignal) => {
    const { thread, model, contents } = prompt;
    const key = keyOf(prompt);
    const tokens = tokensOf(prompt);
    if (tokens < Math.max(leastTokens(model), refused.get(key) ?? 0)) return undefined;
    try {
      const making = withDeadline(clock, patienceMs, both => vendor.create(prompt, both), signal);
      const { keptMs = ttlMs, ...made } = await making;
      const created = clock.storeTime();
      const facts = { ...beginningOf(prompt), files: filesOf(prompt), created, expires: created + keptMs };
      await records.keep({ provider, model, thread, ...made, ...facts });
      if (before) records.part(before.name);
      const written = made.tokens || tokens;
      return { name: made.name, messages: contents.length, written, stored: (written * keptMs) / 3_600_000 };
    } catch {
      // A cache only saves money: the call goes on without one, and the next try waits for a prompt that is worth more.
      if (refused.size >= maxRemembered) refused.clear();
      if (!signal.aborted) refused.set(key, tokens * 2);
      return undefined;
    }
  };
}

function renewer({ vendor, clock }: GoogleCachesOptions, records: CacheRecords) {
  /** Answers the storage that was bought, in tokens times hours. */
  return async (cache: VendorCache, signal: AbortSignal): Promise<number> => {
    const now = clock.storeTime();
    if (now < cache.created + (cache.expires - cache.created) * renewAt) return 0;
    try {
      const kept = await withDeadline(clock, patienceMs, both => vendor.renew(cache.name, both), signal);
      const expires = now + (kept ?? ttlMs);
      await records.keep({ ...cache, created: now, expires });
      return (cache.tokens * (expires - cache.expires)) / 3_600_000;
    } catch {
      // Where it is gone the request will say so; else it lasts as long as it was to.
      return 0;
    }
  };
}

/** What a request of the Gemini interface says before its newest message, in the vendor's own words. */
interface GooglePrefix {
  /** The vendor's id. */
  model: string;
  systemInstruction: unknown;
  contents: readonly unknown[];
}

/** A name goes into an address, and came from outside. */
const isCacheName = (name: string): boolean => /^cachedContents\/[\w-]{1,200}$/.test(name);

/** Between two times of the vendor: its clock need not agree with ours. */
function keptIn({ expireTime, updateTime }: Record<string, unknown>): number | undefined {
  const ms = Date.parse(String(expireTime)) - Date.parse(String(updateTime));
  return ms > 0 ? ms : undefined;
}

/** The `cachedContents` of the Gemini interface. Each method throws when the vendor refuses or does not answer. */
export function cachedContents(endpoint: VendorEndpoint) {
  const send = (method: VendorRequest['method'], name: string, signal: AbortSignal, body?: object) =>
    vendorJson(endpoint, { method, path: `/${name}`, body, what: 'a cache', timeoutMs: patienceMs, signal });

  return {
    async create({ model, systemInstruction, contents }: GooglePrefix, signal: AbortSignal) {
      const said = { systemInstruction, ...(contents.length > 0 && { contents }) };
      const body = { model: `models/${model}`, ...said, ttl };
      const made = await send('POST', 'cachedContents', signal, body);
      const { name, usageMetadata } = made;
      const tokens = firstCount(recordIn(usageMetadata).totalTokenCount) ?? 0;
      if (typeof name !== 'string' || !isCacheName(name)) throw new Error('The cache that was made has no name.');
      return { name, tokens, keptMs: keptIn(made) };
    },
    /** Sets the time that it has left, and tells what was granted. */
    renew: async (name: string, signal: AbortSignal) =>
      keptIn(await send('PATCH', `${name}?updateMask=ttl`, signal, { ttl })),
    remove: (name: string, signal: AbortSignal) => send('DELETE', name, signal),
  };
}
