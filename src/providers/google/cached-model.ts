import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import { isRecord } from '../../core/json.ts';
import { usePart } from '../../models/fees.ts';
import type { Fetch } from '../shared/http.ts';
import { changedModel } from '../shared/stream-transforms.ts';
import type { CacheInUse, GoogleCaches, PromptOfThread } from './context-cache.ts';

const own = 'polylogueCache';

/** Tells the model of which thread a prompt is. Not the vendor's: it is taken off before the vendor's package sees it. */
export const ofThread = (thread: string | undefined): SharedV4ProviderOptions =>
  thread === undefined ? {} : { [own]: { thread } };

export interface CachedModelParts {
  caches: GoogleCaches;
  /** The vendor's id of the model. */
  id: string;
  fetch: Fetch;
  /** The vendor's model, speaking through this fetch. */
  connect(fetch: Fetch): LanguageModelV4;
}

/**
 * The same model, whose requests leave out what a cache at the vendor holds. Works on requests as they are sent, so that
 * what is cached is what would have been sent.
 */
export function cachedModel(parts: CachedModelParts): LanguageModelV4 {
  const plain = parts.connect(parts.fetch);
  return changedModel(plain, {
    doGenerate: options => plain.doGenerate(withoutOwn(options)),
    async doStream(options) {
      const thread = threadOf(options);
      // Tools would have to be in the cache, and come and go with what the caller asks for.
      if (thread === undefined || (options.tools ?? []).length > 0) return plain.doStream(withoutOwn(options));
      const account: Account = { written: 0, stored: 0 };
      const asking = parts.connect(throughCache(parts, thread, account));
      const answer = await asking.doStream(withoutOwn(options));
      const { written, stored } = account;
      return written + stored === 0 ? answer : { ...answer, stream: answer.stream.pipeThrough(counting(account)) };
    },
  });
}

/** What was bought on the way to an answer: tokens written, and tokens times hours of storage. */
interface Account {
  written: number;
  stored: number;
}

function threadOf({ providerOptions }: LanguageModelV4CallOptions): string | undefined {
  const thread = providerOptions?.[own]?.thread;
  return typeof thread === 'string' ? thread : undefined;
}

function withoutOwn(options: LanguageModelV4CallOptions): LanguageModelV4CallOptions {
  const { [own]: _thread, ...providerOptions } = options.providerOptions ?? {};
  return { ...options, providerOptions };
}

/** A cache that the vendor does not know any more is made anew, once. */
function throughCache({ caches, id, fetch }: CachedModelParts, thread: string, account: Account): Fetch {
  return async (input, init) => {
    const body = bodyOf(init?.body);
    const prompt = body && promptOf(body, id, thread);
    if (!prompt) return fetch(input, init);
    const signal = init?.signal ?? new AbortController().signal;
    // An attempt that failed is made again with the same prompt: that is no second call.
    const reported = (response: Response) => {
      if (response.ok) caches.answered(prompt);
      return response;
    };
    for (let tries = 0; tries < 2; tries++) {
      const cache = await caches.forPrompt(prompt, signal);
      if (!cache) break;
      account.written += cache.written;
      account.stored += cache.stored;
      const response = await fetch(input, { ...init, body: JSON.stringify(shortened(body, cache)) });
      if (!(await isGone(response))) return reported(response);
      await caches.lost(prompt, cache.name);
    }
    return reported(await fetch(input, init));
  };
}

function bodyOf(body: unknown): Record<string, unknown> | undefined {
  const value: unknown = typeof body === 'string' ? JSON.parse(body) : undefined;
  return isRecord(value) ? value : undefined;
}

/** Everything before the newest message, which carries what is never stored. */
function promptOf(body: Record<string, unknown>, model: string, thread: string): PromptOfThread | undefined {
  const { contents, systemInstruction, tools, toolConfig } = body;
  if (!Array.isArray(contents) || contents.length === 0 || tools !== undefined || toolConfig !== undefined)
    return undefined;
  return { thread, model, systemInstruction, contents: contents.slice(0, -1) };
}

function shortened(body: Record<string, unknown>, { name, messages }: CacheInUse): Record<string, unknown> {
  const { systemInstruction: _cached, contents, ...rest } = body;
  return { ...rest, cachedContent: name, contents: Array.isArray(contents) ? contents.slice(messages) : contents };
}

/** 403 "CachedContent not found (or permission denied)"; and whatever else is wrong with the cache rather than the request. */
const isGone = async (response: Response): Promise<boolean> =>
  [400, 403, 404].includes(response.status) && /cached ?content/i.test(await response.clone().text());

/** What it took to make and keep the cache is paid beside the request itself. */
function counting({ written, stored }: Account): TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart> {
  return new TransformStream({
    start(controller) {
      if (stored > 0) controller.enqueue(usePart({ kind: 'cache_storage', amount: stored }));
    },
    transform(part, controller) {
      if (part.type !== 'finish') return controller.enqueue(part);
      const { inputTokens } = part.usage;
      const total = inputTokens.total === undefined ? undefined : inputTokens.total + written;
      const counted = { ...inputTokens, total, cacheWrite: (inputTokens.cacheWrite ?? 0) + written };
      controller.enqueue({ ...part, usage: { ...part.usage, inputTokens: counted } });
    },
  });
}
