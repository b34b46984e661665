import { checkGenerate } from './check-generate.ts';
import type { FakeVendor, FakeVendorOptions } from './fake-vendor.ts';
import { generateWire } from './generate-wire.ts';
import { cacheDesk, type GoogleCaches } from './google-caches.ts';
import { googleModel } from './google-models.ts';
import { googleRefusal, googleStatusBody, missingKey, wrongKey } from './google-refusal.ts';
import { createPrefixCache } from './prefix-cache.ts';
import { tokensOf } from './prompt.ts';
import { readGenerate } from './read-generate.ts';
import type { Refusal } from './refusal.ts';
import { startVendor } from './start-vendor.ts';
import type { AddressFields, VendorKind } from './vendor-kind.ts';
import { recordOf, stringOf } from './wire-values.ts';

const mostBytes = 20 * 1024 * 1024;
const ask = '/models/{model}:generateContent';
const count = '/models/{model}:countTokens';
const askForStream = '/models/{model}:streamGenerateContent?alt=sse';

/**
 * The Gemini API with its caches: POST /models/{model}:generateContent, POST /models/{model}:streamGenerateContent?alt=sse,
 * POST /models/{model}:countTokens and GET /models, which tells a model's window as `inputTokenLimit`.
 */
export async function startGoogle(options: FakeVendorOptions = {}): Promise<FakeVendor & { caches: GoogleCaches }> {
  const prefixes = createPrefixCache();
  const tokenize = tokensOf;
  const caches = cacheDesk(tokenize);
  const keys = options.keys ?? ['test-key'];
  const kind: VendorKind = {
    root: '/v1beta',
    routes: {
      [`POST ${ask}`]: 'generate',
      [`POST ${askForStream}`]: 'generate',
      [`POST ${count}`]: 'count',
      'GET /models': 'models',
    },
    count: {
      check: checkCount,
      read: (body, address) => readGenerate(recordOf(body.generateContentRequest ?? body), address),
      answer: tokens => ({ totalTokens: tokens, promptTokensDetails: [{ modality: 'TEXT', tokenCount: tokens }] }),
    },
    readAddress,
    authorise(headers) {
      const key = headers['x-goog-api-key'] ?? '';
      if (keys.length === 0) return undefined;
      if (key === '') return missingKey();
      return keys.includes(key) ? undefined : wrongKey();
    },
    check: (_dialect, body, _headers, address) =>
      checkGenerate(body, stringOf(address.model)) ?? caches.check(body, stringOf(address.model)),
    read: (_dialect, body, address) => readGenerate(caches.whole(body), address),
    beside: caches.serve,
    cache(_dialect, body, segments, address) {
      const model = stringOf(address.model);
      const common = prefixes.cached(model, segments);
      const found = common < googleModel(model).cacheFrom ? 0 : common;
      const read = Math.max(found, caches.tokensOf(body));
      return { read, written: 0, wire: reply => generateWire(body, reply) };
    },
    listing: pageOfModels,
    headers: () => ({ server: 'scaffolding on HTTPServer2', 'server-timing': 'gfet4t7; dur=5' }),
    stamp: body => body,
    badJson: () => googleRefusal('Invalid JSON payload received. Expected an object key or }.'),
    tooLarge: bytes =>
      bytes > mostBytes ? googleRefusal(`Request payload size exceeds the limit: ${mostBytes} bytes.`) : undefined,
    wrongAddress: () => googleRefusal('Requested entity was not found.', 404),
    unknownModel: id =>
      googleRefusal(
        `models/${id} is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.`,
        404,
      ),
    tooLong: (_dialect, tokens, window) =>
      googleRefusal(`The input token count (${tokens}) exceeds the maximum number of tokens allowed (${window}).`),
    statusBody: googleStatusBody,
  };
  return { ...(await startVendor(kind, tokenize, options)), caches };
}

/** Either contents alone, or the whole request with the model's name in it; never both. */
function checkCount(body: Record<string, unknown>, address: AddressFields): Refusal | undefined {
  const { generateContentRequest, contents, ...stray } = body;
  const [strange] = Object.keys(stray);
  if (strange !== undefined) {
    return googleRefusal(`Invalid JSON payload received. Unknown name "${strange}": Cannot find field.`);
  }
  if (generateContentRequest === undefined) return checkGenerate({ contents }, stringOf(address.model));
  if (contents !== undefined) return googleRefusal('contents and generate_content_request are mutually exclusive.');
  const { model, ...request } = recordOf(generateContentRequest);
  if (model !== `models/${stringOf(address.model)}`) {
    return googleRefusal('* CountTokensRequest.generate_content_request.model: model is not specified');
  }
  return checkGenerate(request, stringOf(address.model));
}

/** Model and manner stand in the address. A stream without `alt=sse` would be one JSON array, which nobody here reads. */
function readAddress(path: string): ReturnType<NonNullable<VendorKind['readAddress']>> {
  const { pathname, searchParams } = new URL(path, 'http://localhost');
  const [, model, method] =
    /^\/models\/([^/]+):(generateContent|streamGenerateContent|countTokens)$/.exec(pathname) ?? [];
  if (model === undefined) return { route: pathname, fields: {} };
  if (method === 'countTokens') return { route: count, fields: { model: decodeURIComponent(model), stream: false } };
  const stream = method === 'streamGenerateContent';
  if (stream && searchParams.get('alt') !== 'sse') return { route: pathname, fields: {} };
  return { route: stream ? askForStream : ask, fields: { model: decodeURIComponent(model), stream } };
}

/** 50 models a page unless `pageSize` says otherwise; the token names the place of the next page. */
function pageOfModels(models: readonly { id: string; window?: number }[], query: URLSearchParams) {
  const size = Math.min(1_000, Number(query.get('pageSize') ?? 50) || 50);
  const from = Number(query.get('pageToken') ?? 0) || 0;
  return {
    models: models
      .slice(from, from + size)
      .map(({ id, window = 1_048_576 }) => ({
        name: `models/${id}`,
        version: '001',
        displayName: id,
        inputTokenLimit: window,
        outputTokenLimit: 65_536,
        supportedGenerationMethods: /embedding/.test(id)
          ? ['embedContent', 'countTokens']
          : ['generateContent', 'countTokens', 'createCachedContent', 'batchGenerateContent'],
      })),
    ...(from + size < models.length && { nextPageToken: String(from + size) }),
  };
}
