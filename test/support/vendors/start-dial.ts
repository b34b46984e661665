import { chatWire } from './chat-wire.ts';
import { checkChat } from './check-chat.ts';
import type { FakeVendor, FakeVendorOptions, ListedModel } from './fake-vendor.ts';
import { openAiRefusal, openAiStatusBody } from './open-ai-refusal.ts';
import { createPrefixCache } from './prefix-cache.ts';
import { tokensOf } from './prompt.ts';
import { readChat } from './read-chat.ts';
import type { Refusal } from './refusal.ts';
import { startVendor } from './start-vendor.ts';
import type { AddressFields, VendorKind } from './vendor-kind.ts';
import { stringOf } from './wire-values.ts';

const ask = '/deployments/{name}/chat/completions';
const versionPattern = /^20\d{2}-\d{2}-\d{2}(-preview)?$/;

/**
 * A DIAL server: POST /openai/deployments/{name}/chat/completions?api-version=…, in the dialect of Azure OpenAI, and
 * GET /openai/models, which tells what a deployment can do and its limits. The key stands in `Api-Key` alone.
 */
export function startDial(options: FakeVendorOptions = {}): Promise<FakeVendor> {
  const prefixes = createPrefixCache();
  const keys = options.keys ?? ['test-key'];
  const kind: VendorKind = {
    root: '/openai',
    routes: { [`POST ${ask}`]: 'chat', 'GET /models': 'models' },
    readAddress,
    authorise(headers) {
      const key = headers['api-key'];
      if (headers.authorization !== undefined && key !== undefined) {
        return dialRefusal('Either API-KEY or Authorization header must be provided but not both', 400);
      }
      if (key === undefined || key === '')
        return dialRefusal('At least API-KEY or Authorization header must be provided', 401);
      return keys.length === 0 || keys.includes(key) ? undefined : dialRefusal('Unknown api key', 401);
    },
    check(_dialect, body, headers, { version }) {
      if (!(headers['content-type'] ?? '').startsWith('application/json')) {
        return dialRefusal('Only application/json is supported', 415);
      }
      if (!versionPattern.test(stringOf(version))) return dialRefusal('API version is not supported', 404);
      return checkChat(body);
    },
    // The address says which deployment it is; the body's model is for whoever stands behind.
    read: (_dialect, body, { name }) => ({ ...readChat(body), model: stringOf(name) }),
    cache: (_dialect, body, segments, { name }) => ({
      read: prefixes.cached(stringOf(name), segments),
      written: 0,
      wire: reply => chatWire(body, reply),
    }),
    listing: models => ({ object: 'list', data: models.map(row) }),
    headers: () => ({ 'x-upstream-attempts': '1' }),
    stamp: body => body,
    badJson: () => dialRefusal('Failed to parse the request body', 400),
    wrongAddress: () => dialRefusal('Not found', 404),
    unknownModel: id => dialRefusal(`Deployment ${id} is not found`, 404),
    tooLong: (_dialect, tokens, window) =>
      openAiRefusal(
        `This model's maximum context length is ${window} tokens. However, your messages resulted in ${tokens} tokens.`,
        { param: 'messages', code: 'context_length_exceeded' },
      ),
    statusBody: openAiStatusBody,
  };
  return startVendor(kind, tokensOf, options);
}

function dialRefusal(message: string, status: number): Refusal {
  return {
    status,
    message,
    body: { error: { message, type: 'dial_core', code: String(status), display_message: message } },
  };
}

function readAddress(path: string): { route: string; fields: AddressFields } {
  const { pathname, searchParams } = new URL(path, 'http://localhost');
  const name = /^\/deployments\/(.+)\/chat\/completions$/.exec(pathname)?.[1];
  if (name === undefined) return { route: pathname, fields: {} };
  return { route: ask, fields: { name: decodeURIComponent(name), version: searchParams.get('api-version') ?? '' } };
}

function row({ id, window, capabilities = ['chat_completion'] }: ListedModel) {
  return {
    id,
    model: id,
    display_name: id,
    object: 'model',
    owner: 'organization-owner',
    status: 'succeeded',
    created_at: 1_672_534_800,
    updated_at: 1_672_534_800,
    lifecycle_status: 'generally-available',
    capabilities: {
      scale_types: ['standard'],
      completion: false,
      chat_completion: capabilities.includes('chat_completion'),
      embeddings: capabilities.includes('embeddings'),
      fine_tune: false,
      inference: false,
    },
    ...(capabilities.includes('image') && { input_attachment_types: ['image/*'] }),
    ...(window !== undefined && { limits: { max_total_tokens: window } }),
  };
}
