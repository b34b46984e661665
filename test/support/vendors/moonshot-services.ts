import { isRecord } from '../../../src/core/json.ts';
import { o200kTokens } from './o200k-tokens.ts';
import type { Refusal } from './refusal.ts';
import type { BesideAnswer, BesideRequest } from './vendor-kind.ts';
import { recordsOf, stringOf } from './wire-values.ts';

interface StoredCache {
  id: string;
  status: string;
  ttl: number;
  messages: unknown;
}

/** Caches, balance and the counter of tokens. */
export interface MoonshotServices {
  /** By id. A test removes here what ran out at the vendor. */
  caches: Map<string, StoredCache>;
  /** The status that a new cache has. */
  status: string;
  balance: { available_balance: number; voucher_balance: number; cash_balance: number };
  asked: string[];
  /** What a chat that names a cache is refused for. */
  check(body: Record<string, unknown>, headers: Record<string, string>): Refusal | undefined;
  beside(request: BesideRequest): BesideAnswer | undefined;
}

export function createMoonshotServices(refuse: (status: number, message: string) => BesideAnswer): MoonshotServices {
  const self: MoonshotServices = {
    caches: new Map(),
    status: 'ready',
    balance: { available_balance: 49.58, voucher_balance: 46.58, cash_balance: 3 },
    asked: [],
    check: (body, headers) => checkCache(self.caches, body, headers),
    beside({ method, path, bytes }) {
      self.asked.push(`${method} ${path}`);
      if (method === 'GET' && path === '/users/me/balance')
        return { status: 200, body: { code: 0, data: self.balance, scode: '0x0', status: true } };
      if (method === 'POST' && path === '/tokenizers/estimate-token-count') return counted(bytes, refuse);
      return caching(self, method, path, bytes, refuse);
    },
  };
  return self;
}

function checkCache(
  caches: ReadonlyMap<string, StoredCache>,
  body: Record<string, unknown>,
  headers: Record<string, string>,
): Refusal | undefined {
  const id = headers['x-msh-context-cache'];
  if (id === undefined) return undefined;
  const refused = (status: number, message: string) => ({
    status,
    message,
    body: { error: { message, type: 'invalid_request_error' } },
  });
  const cache = caches.get(id);
  if (!cache) return refused(404, `context cache ${id} not found`);
  const kept = JSON.stringify(cache.messages);
  const sent = JSON.stringify(recordsOf(body.messages).slice(0, recordsOf(cache.messages).length));
  return kept === sent ? undefined : refused(400, 'Invalid request: messages do not begin with the cached ones');
}

function parsed(bytes: Buffer): Record<string, unknown> {
  const body: unknown = JSON.parse(bytes.toString('utf8'));
  return isRecord(body) ? body : {};
}

function counted(bytes: Buffer, refuse: (status: number, message: string) => BesideAnswer): BesideAnswer {
  const { model, messages } = parsed(bytes);
  if (!stringOf(model)) return refuse(400, 'Invalid request: model is required');
  if (recordsOf(messages).length === 0) return refuse(400, 'Invalid request: messages is required');
  if (recordsOf(messages).some(({ role }) => !['system', 'user', 'assistant'].includes(stringOf(role))))
    return refuse(400, 'Invalid request: role is one of system, user, assistant');
  const textOf = ({ content }: Record<string, unknown>) =>
    typeof content === 'string'
      ? content
      : recordsOf(content)
          .map(({ text }) => stringOf(text))
          .join('');
  const total = recordsOf(messages).reduce((sum, message) => sum + o200kTokens(textOf(message)).length, 0);
  return { status: 200, body: { code: 0, data: { total_tokens: total }, scode: '0x0', status: true } };
}

function caching(
  self: MoonshotServices,
  method: string,
  path: string,
  bytes: Buffer,
  refuse: (status: number, message: string) => BesideAnswer,
): BesideAnswer | undefined {
  if (method === 'POST' && path === '/caching') {
    const { model, messages, ttl } = parsed(bytes);
    if (model !== 'moonshot-v1') return refuse(400, 'Invalid request: only the moonshot-v1 family is cached');
    if (typeof ttl !== 'number' || ttl < 1 || ttl > 3_600)
      return refuse(400, 'Invalid request: ttl must be from 1 to 3600');
    if (recordsOf(messages).length === 0) return refuse(400, 'Invalid request: messages is required');
    const cache = { id: `cache-${self.caches.size + 1}`, status: self.status, ttl, messages };
    self.caches.set(cache.id, cache);
    return { status: 200, body: { ...cache, object: 'context-cache', created_at: 1, tokens: 100 } };
  }
  const id = /^\/caching\/([^/?]+)$/.exec(path)?.[1];
  if (id === undefined) return undefined;
  const cache = self.caches.get(id);
  if (!cache) return refuse(404, `cache ${id} not found`);
  if (method === 'DELETE') {
    self.caches.delete(id);
    return { status: 200, body: { deleted: true, id, object: 'context_cache_object.deleted' } };
  }
  return method === 'GET' ? { status: 200, body: { ...cache, object: 'context-cache' } } : undefined;
}
