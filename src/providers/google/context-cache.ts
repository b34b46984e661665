import { hash } from 'node:crypto';
import { createQueue, orAbort, remember, withDeadline, withTimeout } from '../../core/concurrency.ts';
import { abortError, throwIfAborted } from '../../core/errors.ts';
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

const keyOf = ({ model, thread }: Pick<PromptOfThread, 'model' | 'thread'>): string =>
  cacheKey({ provider, model, thread });

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

/** From how many tokens on the vendor takes a cache, and never below what is worth the trouble; from the fourth generation on it takes none. */
function leastTokens(model: string): number {
  if (/^gemini-(1|2\.0|[4-9])/.test(model)) return Number.POSITIVE_INFINITY;
  return /^gemini-(2\.5|3)-flash/.test(model) ? 2_048 : 4_096;
}

/** The caches of prompts' beginnings, one for each thread and model that is worth it. All processes on the store know them. */
export class GoogleCaches {
  readonly #options: GoogleCachesOptions;
  /** Those that this process made, renewed or used: they go when it does. */
  readonly #own = new Map<string, VendorCache>();
  /** What is being made or removed at the vendor; none of them rejects. */
  readonly #pending = new Set<Promise<unknown>>();
  readonly #turns = createQueue();
  #isClosed = false;
  /** Of the last answered prompt of each thread: a call that begins like the one before will probably be followed by more. */
  readonly #beginnings = new Map<string, Beginning>();
  /** Key → tokens from which on a cache may be tried again. */
  readonly #refused = new Map<string, number>();

  constructor(options: GoogleCachesOptions) {
    this.#options = options;
  }

  /** The cache that holds the beginning of this prompt; undefined: ask without one. Never throws. */
  async forPrompt(prompt: PromptOfThread, signal: AbortSignal): Promise<CacheInUse | undefined> {
    try {
      // Another call may make just the one that this one would make.
      const enter = (both: AbortSignal) => this.#turns.enter(keyOf(prompt), both);
      const leave = await withDeadline(this.#options.clock, patienceMs, enter, signal);
      return await this.#choose(prompt, signal).finally(leave);
    } catch {
      // The call was ended or waited too long, or the store of the records failed: what matters there is said by whoever stores the answer.
      return undefined;
    }
  }

  /** The vendor took this prompt: the next one that begins like it is known for another of its thread. */
  answered(prompt: PromptOfThread): void {
    remember(this.#beginnings, keyOf(prompt), beginningOf(prompt), maxRemembered);
  }

  /** The vendor does not know it any more. */
  async lost(prompt: PromptOfThread, name: string): Promise<void> {
    // That this prompt had a cache shows that it is worth one.
    this.answered(prompt);
    await this.#drop(keyOf(prompt), name);
  }

  /** Removes those of a thread that is no more, whichever process made them. */
  async forget(thread: string): Promise<void> {
    const all = await listVendorCaches(this.#options.state, this.#options.clock);
    const gone = all.filter(cache => cache.provider === provider && cache.thread === thread);
    await Promise.all(gone.map(cache => this.#giveUp(cacheKey(cache), cache.name)));
  }

  /** Removes those that this process made or used, record and all. */
  async close(): Promise<void> {
    const { clock } = this.#options;
    this.#isClosed = true;
    const mine = [...this.#own];
    for (const [, { name, expires }] of mine) if (expires > clock.storeTime()) this.#part(name);
    const idle = async () => {
      while (this.#pending.size > 0) await Promise.all(this.#pending);
    };
    await withTimeout(clock, partingMs, idle());
    await Promise.all(mine.map(([key, { name }]) => this.#drop(key, name)));
  }

  async #choose(prompt: PromptOfThread, signal: AbortSignal): Promise<CacheInUse | undefined> {
    const key = keyOf(prompt);
    const cache = await this.#find(key);
    const before = this.#beginnings.get(key);
    if (!cache) return before && beginsLike(prompt, before) ? this.#build(prompt, undefined, signal) : undefined;
    if (!beginsLike(prompt, cache)) {
      const other = await this.#build(prompt, cache, signal);
      // A call without the thread's history leaves the cache to those with it; a history that begins otherwise was compacted.
      if (!other && prompt.contents.length > 0) await this.#giveUp(key, cache.name);
      return other;
    }
    const beyond = tokensOf({ systemInstruction: undefined, contents: prompt.contents.slice(cache.messages) });
    // A longer one is made when it has doubled: all of them together cost no more than twice the last.
    const isDoubled = beyond >= Math.max(cache.tokens, leastTokens(prompt.model));
    const larger = isDoubled && (await this.#build(prompt, cache, signal));
    if (larger) return larger;
    this.#own.set(key, cache);
    const stored = await this.#renew(cache, signal);
    return { name: cache.name, messages: cache.messages, written: 0, stored };
  }

  /** Makes a cache of all of a prompt where that is worth it, and only then gives up the one before. */
  async #build(prompt: PromptOfThread, before: VendorCache | undefined, signal: AbortSignal) {
    const key = keyOf(prompt);
    const tokens = tokensOf(prompt);
    const least = Math.max(leastTokens(prompt.model), this.#refused.get(key) ?? 0);
    if (tokens < least || this.#isClosed) return undefined;
    try {
      const making = this.#make(prompt, tokens, before, signal);
      this.#follow(making);
      return await orAbort(making, signal);
    } catch {
      throwIfAborted(signal);
      // A cache only saves money: the call goes on without one, and the next try waits for a prompt that is worth more.
      remember(this.#refused, key, tokens * 2, maxRemembered);
      return undefined;
    }
  }

  /** Is told its name also where nobody waits for it any more: it would be paid for, and known to nobody. */
  async #make(prompt: PromptOfThread, tokens: number, before: VendorCache | undefined, signal: AbortSignal) {
    const { vendor, clock } = this.#options;
    const { thread, model, contents } = prompt;
    const { keptMs = ttlMs, ...made } = await withDeadline(clock, patienceMs, late => vendor.create(prompt, late));
    if (signal.aborted || this.#isClosed) {
      this.#part(made.name);
      throw abortError(signal);
    }
    const created = clock.storeTime();
    const facts = { ...beginningOf(prompt), files: filesOf(prompt), created, expires: created + keptMs };
    await this.#keep(keyOf(prompt), { provider, model, thread, ...made, ...facts });
    if (before) this.#part(before.name);
    const written = made.tokens || tokens;
    return { name: made.name, messages: contents.length, written, stored: (written * keptMs) / 3_600_000 };
  }

  /** Answers the storage that was bought, in tokens times hours. */
  async #renew(cache: VendorCache, signal: AbortSignal): Promise<number> {
    const { vendor, clock } = this.#options;
    const now = clock.storeTime();
    if (now < cache.created + (cache.expires - cache.created) * renewAt) return 0;
    try {
      const kept = await withDeadline(clock, patienceMs, both => vendor.renew(cache.name, both), signal);
      const expires = now + (kept ?? ttlMs);
      await this.#keep(cacheKey(cache), { ...cache, created: now, expires });
      return (cache.tokens * (expires - cache.expires)) / 3_600_000;
    } catch {
      // Where it is gone the request will say so; else it lasts as long as it was to.
      return 0;
    }
  }

  /** The cache of a thread and model, while it lives. */
  async #find(key: string): Promise<VendorCache | undefined> {
    const cache = readVendorCache(await this.#options.state.get(key));
    const now = this.#options.clock.storeTime();
    return cache && isCacheName(cache.name) && now < cache.expires - graceMs ? cache : undefined;
  }

  async #keep(key: string, cache: VendorCache): Promise<void> {
    const { state, clock } = this.#options;
    for (const [other, { expires }] of this.#own) if (expires <= clock.storeTime()) this.#own.delete(other);
    this.#own.set(key, cache);
    await state.change(key, cache.expires - clock.storeTime() + recordGraceMs, () => ({ ...cache }));
  }

  async #giveUp(key: string, name: string): Promise<void> {
    await this.#drop(key, name);
    this.#part(name);
  }

  async #drop(key: string, name: string): Promise<void> {
    if (this.#own.get(key)?.name === name) this.#own.delete(key);
    // Another process may have made a new one meanwhile.
    const dropping = this.#options.state.change(key, recordGraceMs, now => (now?.name === name ? undefined : now));
    // A record that stays leads to one more "not found" at the most.
    await dropping.catch(() => undefined);
  }

  /** Removes it at the vendor, without waiting for it. */
  #part(name: string): void {
    const { vendor, clock } = this.#options;
    // A vendor that does not answer drops it by itself when its time is over.
    this.#follow(withDeadline(clock, partingMs, signal => vendor.remove(name, signal)));
  }

  #follow(work: Promise<unknown>): void {
    const over: Promise<unknown> = work.catch(() => undefined).finally(() => this.#pending.delete(over));
    this.#pending.add(over);
  }
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
