import { checkContents } from './check-gemini-parts.ts';
import { type FieldTable, firstFieldFault } from './field-check.ts';
import { googleModel } from './google-models.ts';
import { badField, googleRefusal, unknownField } from './google-refusal.ts';
import { segmentsOf, tokensIn } from './prompt.ts';
import { readGenerate } from './read-generate.ts';
import type { Refusal } from './refusal.ts';
import type { BesideAnswer, BesideRequest } from './vendor-kind.ts';
import { recordOf, stringOf } from './wire-values.ts';

type Body = Record<string, unknown>;

export interface FakeCache {
  name: string;
  /** `models/ID`. */
  model: string;
  /** What was cached: contents, systemInstruction, tools, toolConfig. */
  content: Body;
  tokens: number;
  /** Seconds, as last asked for. */
  ttl: number;
}

export interface GoogleCaches {
  /** Those that exist now. */
  live(): FakeCache[];
  /** `create cachedContents/1`, `renew …`, `delete …`, `get …`, in order. */
  log: string[];
  /** What the vendor would have refused, one line each. */
  refused: string[];
  /** Forgets a cache, as the vendor does when its time is over. */
  lose(name: string): void;
  /** Every request to create one is answered with this status from now on; undefined: as usual. */
  failCreation(status: number | undefined): void;
  /** Keeps no cache for longer than so many seconds, whatever is asked for. */
  keepFor(seconds: number): void;
}

export interface CacheDesk extends GoogleCaches {
  serve(request: BesideRequest): BesideAnswer | undefined;
  /** What is wrong with a request that names a cache. */
  check(body: Body, model: string): Refusal | undefined;
  /** The request as if it held what its cache holds. */
  whole(body: Body): Body;
  /** Tokens of the cache that a request names. */
  tokensOf(body: Body): number;
}

const creationFields: FieldTable = {
  contents: ['array'],
  displayName: ['string'],
  expireTime: ['string'],
  model: ['string'],
  systemInstruction: ['object'],
  toolConfig: ['object'],
  tools: ['array'],
  ttl: ['string'],
};
const besideCache = ['systemInstruction', 'tools', 'toolConfig'];
const missing = () => googleRefusal('CachedContent not found (or permission denied)', 403);

/** /cachedContents of the Gemini API: POST, GET, PATCH and DELETE. */
export function cacheDesk(tokenize: (text: string) => readonly number[]): CacheDesk {
  const caches = new Map<string, FakeCache>();
  const log: string[] = [];
  const refused: string[] = [];
  let failing: number | undefined;
  let longest = Number.POSITIVE_INFINITY;
  let made = 0;

  function create(body: Body): FakeCache | Refusal {
    if (failing !== undefined) return googleRefusal('The service is currently unavailable.', failing);
    const unsound = checkCreation(body);
    if (unsound) return unsound;
    const { ttl, model, displayName: _title, expireTime: _end, ...content } = body;
    const id = stringOf(model).replace(/^models\//, '');
    const tokens = tokensIn(segmentsOf(readGenerate(content, { model: id }).prompt, tokenize));
    const least = googleModel(id).explicitFrom;
    if (tokens < least)
      return googleRefusal(`Cached content is too small. total_token_count=${tokens}, min_total_token_count=${least}`);
    const name = `cachedContents/fake${++made}`;
    const cache = { name, model: stringOf(model), content, tokens, ttl: Math.min(longest, seconds(ttl) ?? 3_600) };
    caches.set(name, cache);
    return cache;
  }

  function renew(cache: FakeCache, body: Body, mask: string | null): FakeCache | Refusal {
    const stray = Object.keys(body).find(key => key !== 'ttl' && key !== 'expireTime');
    if (stray) return googleRefusal(`Only expiration can be updated, not ${stray}.`);
    if (mask !== null && mask !== 'ttl') return googleRefusal(`Invalid update mask: ${mask}`);
    const ttl = seconds(body.ttl);
    if (ttl === undefined) return badField(`Invalid value at 'cached_content.ttl', ${JSON.stringify(body.ttl)}`, 'ttl');
    cache.ttl = Math.min(longest, ttl);
    return cache;
  }

  function handle({ method, path, bytes }: BesideRequest): { what: string; result: FakeCache | Refusal | undefined } {
    const { pathname, searchParams } = new URL(path, 'http://localhost');
    const name = pathname.slice(1);
    const body = recordOf(bytes.length === 0 ? {} : JSON.parse(bytes.toString('utf8')));
    if (method === 'POST' && name === 'cachedContents') return { what: 'create', result: create(body) };
    const cache = caches.get(name);
    if (!cache) return { what: method, result: missing() };
    if (method === 'PATCH') return { what: 'renew', result: renew(cache, body, searchParams.get('updateMask')) };
    if (method === 'DELETE') caches.delete(name);
    return { what: method === 'DELETE' ? 'delete' : 'get', result: method === 'DELETE' ? undefined : cache };
  }

  return {
    live: () => [...caches.values()],
    log,
    refused,
    lose: name => void caches.delete(name),
    keepFor(seconds) {
      longest = seconds;
    },
    failCreation(status) {
      failing = status;
    },
    serve(request) {
      if (!/^\/cachedContents(\/|\?|$)/.test(request.path)) return undefined;
      const { what, result } = handle(request);
      if (result && 'status' in result) {
        refused.push(`${request.method} ${request.path}: ${result.status} ${result.message}`);
        return { status: result.status, body: result.body };
      }
      log.push(`${what} ${result?.name ?? request.path.slice(1)}`);
      return { status: 200, body: result ? shown(result) : {} };
    },
    check(body, model) {
      if (body.cachedContent === undefined) return undefined;
      const cache = caches.get(stringOf(body.cachedContent));
      if (!cache) return missing();
      if (cache.model !== `models/${model}`)
        return googleRefusal(
          `Model used by GenerateContent request (models/${model}) and CachedContent (${cache.model}) has to be the same.`,
        );
      if (besideCache.some(field => body[field] !== undefined))
        return googleRefusal(
          'CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request.',
        );
      return undefined;
    },
    whole(body) {
      const cache = caches.get(stringOf(body.cachedContent));
      if (!cache) return body;
      return { ...body, ...cache.content, contents: [...listed(cache.content.contents), ...listed(body.contents)] };
    },
    tokensOf: body => caches.get(stringOf(body.cachedContent))?.tokens ?? 0,
  };
}

const listed = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

function checkCreation(body: Body): Refusal | undefined {
  const fault = firstFieldFault(body, creationFields, true);
  if (fault)
    return fault.kind === 'unknown' ? unknownField(fault.field) : badField(`Invalid value at '${fault.field}'`);
  if (!/^models\/[\w.-]+$/.test(stringOf(body.model)))
    return googleRefusal('* CreateCachedContentRequest.model: invalid');
  if (body.ttl !== undefined && body.expireTime !== undefined)
    return badField("Invalid value at 'cached_content' (oneof), oneof field 'expiration' is already set.");
  if (body.ttl !== undefined && seconds(body.ttl) === undefined)
    return badField(`Invalid value at 'cached_content.ttl', ${JSON.stringify(body.ttl)}`);
  if (body.contents === undefined && body.systemInstruction === undefined)
    return googleRefusal('* CreateCachedContentRequest: contents or system_instruction must be set.');
  return (
    (body.systemInstruction === undefined
      ? undefined
      : checkContents([{ ...recordOf(body.systemInstruction), role: 'user' }], 'system_instruction')) ??
    (body.contents === undefined ? undefined : checkContents(body.contents))
  );
}

function seconds(ttl: unknown): number | undefined {
  const [, number] = /^(\d+(?:\.\d+)?)s$/.exec(stringOf(ttl)) ?? [];
  return number === undefined ? undefined : Number(number);
}

function shown({ name, model, tokens, ttl }: FakeCache): Body {
  const now = new Date();
  const at = now.toISOString();
  return {
    name,
    model,
    createTime: at,
    updateTime: at,
    expireTime: new Date(now.getTime() + ttl * 1_000).toISOString(),
    displayName: '',
    usageMetadata: { totalTokenCount: tokens },
  };
}
