import { isRecord } from '../../../src/core/json.ts';
import { anthropicRefusal, anthropicStatusBody } from './anthropic-refusal.ts';
import { checkMessages } from './check-messages.ts';
import { claudeModel } from './claude-models.ts';
import type { FakeVendor, FakeVendorOptions } from './fake-vendor.ts';
import { createMarkCache } from './mark-cache.ts';
import { messagesWire } from './messages-wire.ts';
import { tokensOf } from './prompt.ts';
import { readMessages } from './read-messages.ts';
import { startVendor } from './start-vendor.ts';
import type { VendorKind } from './vendor-kind.ts';
import { recordsOf, stringOf } from './wire-values.ts';

const versions = ['2023-01-01', '2023-06-01'];
const mostBytes = 32 * 1024 * 1024;

const countFields = [
  'model',
  'messages',
  'system',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'cache_control',
];

/** The counting interface takes the question and nothing of how it is to be answered. */
function checkCount(body: Record<string, unknown>) {
  const stray = Object.keys(body).find(field => !countFields.includes(field));
  if (stray !== undefined) return anthropicRefusal(`${stray}: Extra inputs are not permitted`);
  if (recordsOf(body.tools).some(tool => stringOf(tool.type).startsWith('web_search_')))
    return anthropicRefusal('tools.0: server tools are not supported by token counting');
  return checkMessages({ ...body, max_tokens: 1 }, false);
}

/** Anthropic: POST /messages, POST /messages/count_tokens and GET /models, which tells a model's window as `max_input_tokens`. */
export function startAnthropic(options: FakeVendorOptions = {}): Promise<FakeVendor> {
  const tokenize = tokensOf;
  const marks = createMarkCache(tokenize);
  const keys = options.keys ?? ['test-key'];
  const kind: VendorKind = {
    routes: { 'POST /messages': 'messages', 'POST /messages/count_tokens': 'count', 'GET /models': 'models' },
    count: { check: checkCount, read: readMessages, answer: tokens => ({ input_tokens: tokens }) },
    authorise(headers) {
      const key = headers['x-api-key'] ?? '';
      if (keys.length > 0 && key === '') return anthropicRefusal('x-api-key header is required', 401);
      if (keys.length > 0 && !keys.includes(key)) return anthropicRefusal('invalid x-api-key', 401);
      const version = headers['anthropic-version'];
      if (version === undefined) return anthropicRefusal('anthropic-version: header is required');
      return versions.includes(version)
        ? undefined
        : anthropicRefusal(`anthropic-version: "${version}" is not a valid version for this endpoint`);
    },
    check: (_dialect, body, headers) => checkMessages(body, (headers['anthropic-beta'] ?? '') !== ''),
    read: (_dialect, body) => readMessages(body),
    cache(_dialect, body) {
      const { read, short, long } = marks.use(body);
      return { read, written: short + long, wire: reply => messagesWire(body, reply, { short, long }) };
    },
    listing: models => ({
      data: models.map(({ id, window }) => ({
        type: 'model',
        id,
        display_name: id,
        created_at: '2025-01-01T00:00:00Z',
        max_tokens: claudeModel(id).maxOutput,
        ...(window !== undefined && { max_input_tokens: window }),
      })),
      has_more: false,
      first_id: models[0]?.id ?? null,
      last_id: models.at(-1)?.id ?? null,
    }),
    headers: id => ({ 'request-id': `req_${id}` }),
    stamp: (body, id) => (isRecord(body) ? { ...body, request_id: `req_${id}` } : body),
    badJson: () => anthropicRefusal('The request body is not valid JSON'),
    tooLarge: bytes => (bytes > mostBytes ? anthropicRefusal('Request exceeds the maximum size', 413) : undefined),
    wrongAddress: () => anthropicRefusal('Not Found', 404),
    unknownModel: id => anthropicRefusal(`model: ${id}`, 404),
    tooLong: (_dialect, tokens, window) => anthropicRefusal(`prompt is too long: ${tokens} tokens > ${window} maximum`),
    statusBody: anthropicStatusBody,
  };
  return startVendor(kind, tokenize, options);
}
