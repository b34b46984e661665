import { checkOpenRouter } from './check-openrouter.ts';
import type { FakeVendor, FakeVendorOptions } from './fake-vendor.ts';
import { createMarkCache } from './mark-cache.ts';
import {
  missingKey,
  openRouterRefusal,
  openRouterStatusBody,
  tooLong,
  unknownModel,
  wrongKey,
} from './openrouter-refusal.ts';
import { openRouterWire } from './openrouter-wire.ts';
import { createPrefixCache } from './prefix-cache.ts';
import { tokensOf } from './prompt.ts';
import { readChat } from './read-chat.ts';
import { startVendor } from './start-vendor.ts';
import type { VendorKind } from './vendor-kind.ts';
import { stringOf } from './wire-values.ts';

/**
 * OpenRouter: POST /chat/completions and GET /models below /api/v1. Models of Anthropic cache what is marked, as they do at
 * home; the others by themselves.
 */
export function startOpenRouter(options: FakeVendorOptions = {}): Promise<FakeVendor> {
  const tokenize = tokensOf;
  const marks = createMarkCache(tokenize);
  const prefixes = createPrefixCache();
  const keys = options.keys ?? ['test-key'];
  const kind: VendorKind = {
    root: '/api/v1',
    routes: { 'POST /chat/completions': 'chat', 'GET /models': 'models' },
    authorise({ authorization = '' }) {
      if (keys.length === 0) return undefined;
      const [scheme, key = ''] = authorization.split(' ');
      if (scheme !== 'Bearer' || key === '') return missingKey();
      return keys.includes(key) ? undefined : wrongKey();
    },
    check: (_dialect, body) => checkOpenRouter(body),
    read(_dialect, body) {
      const reading = readChat(body);
      return { ...reading, parameters: { parameters: reading.parameters, reasoning: body.reasoning } };
    },
    cache(_dialect, body, segments) {
      const wire: ReturnType<VendorKind['cache']>['wire'] = reply => openRouterWire(body, reply);
      const model = stringOf(body.model);
      if (!model.startsWith('anthropic/')) return { read: prefixes.cached(model, segments), written: 0, wire };
      const { read, short, long } = marks.use({ ...body, model: model.slice('anthropic/'.length) });
      return { read, written: short + long, wire };
    },
    listing: models => ({
      data: models.map(({ id, window, row }) => ({
        id,
        canonical_slug: id,
        name: id,
        created: 1_700_000_000,
        context_length: window ?? null,
        architecture: { modality: 'text->text', input_modalities: ['text'], output_modalities: ['text'] },
        pricing: { prompt: '0.000002', completion: '0.000002' },
        ...row,
      })),
    }),
    headers: id => ({ 'x-generation-id': `gen-${id}` }),
    stamp: body => body,
    badJson: () => openRouterRefusal('Invalid JSON body'),
    wrongAddress: () => openRouterRefusal('Not Found', 404),
    unknownModel,
    tooLong: (_dialect, tokens, window) => tooLong(tokens, window),
    statusBody: openRouterStatusBody,
  };
  return startVendor(kind, tokenize, options);
}
