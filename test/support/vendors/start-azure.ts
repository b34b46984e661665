import { chatWire } from './chat-wire.ts';
import { checkChat } from './check-chat.ts';
import { checkResponses } from './check-responses.ts';
import type { FakeVendor, FakeVendorOptions } from './fake-vendor.ts';
import { createPrefixCache } from './prefix-cache.ts';
import { tokensOf } from './prompt.ts';
import { readChat } from './read-chat.ts';
import { readResponses } from './read-responses.ts';
import type { Refusal } from './refusal.ts';
import { responsesWire } from './responses-wire.ts';
import { startVendor } from './start-vendor.ts';
import type { AddressFields, VendorKind } from './vendor-kind.ts';
import type { Wire } from './wire.ts';
import { stringOf } from './wire-values.ts';

/** Deployments of the resource, and the model that each runs. */
export type Deployments = Readonly<Record<string, string>>;

const codes: Readonly<Record<number, [code: string, message: string]>> = {
  401: [
    '401',
    'Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.',
  ],
  403: ['AccessDenied', 'Access denied due to Virtual Network/Firewall rules.'],
  404: ['DeploymentNotFound', 'The API deployment for this resource does not exist.'],
  408: ['Timeout', 'The operation was timeout.'],
  429: ['429', 'Requests to this operation have exceeded the call rate limit of your current pricing tier.'],
  500: ['InternalServerError', 'The server had an error while processing your request.'],
  503: ['ServiceUnavailable', 'Service Unavailable'],
};

function refusal(status: number, message?: string, code?: string): Refusal {
  const [known, text] = codes[status] ?? [String(status), 'The request failed.'];
  const said = message ?? text;
  return { status, message: said, body: { error: { code: code ?? known, message: said } } };
}

/** Models of other vendors, and the chat of dated versions, know nothing of what is OpenAI's alone. */
const isOthers = (model: string) => !/^(?:gpt-\d|o\d)/.test(model);
const ownFields = ['prompt_cache_key', 'prompt_cache_retention', 'store', 'include', 'thinking'];

const dated = /^\d{4}-\d{2}-\d{2}(-preview)?$/;
const addresses: readonly [RegExp, string][] = [
  [/^\/v1\/(responses|chat\/completions)$/, 'v1'],
  [/^\/deployments\/([^/]+)\/(chat\/completions)$/, 'deployment'],
  [/^\/(responses)$/, 'dated'],
];

/** The undated interface takes no date; the dated ones take nothing else, and Responses only from 2025-03-01 on. */
function readAddress(path: string): { route: string; fields: AddressFields } {
  const { pathname, searchParams } = new URL(path, 'http://localhost');
  const version = searchParams.get('api-version') ?? '';
  for (const [pattern, kind] of addresses) {
    const match = pattern.exec(pathname);
    if (!match) continue;
    const sound =
      kind === 'v1'
        ? ['', 'v1', 'preview', 'latest'].includes(version)
        : dated.test(version) && (kind !== 'dated' || version >= '2025-03-01');
    const route = `/${match.at(-1)}`;
    return { route: sound ? route : '/unknown', fields: kind === 'deployment' ? { deployment: match[1] } : {} };
  }
  return { route: '/unknown', fields: {} };
}

/** An Azure OpenAI resource: deployments in the address or as the model, the key in `api-key`. */
export function startAzure(deployments: Deployments, options: FakeVendorOptions = {}): Promise<FakeVendor> {
  const prefixes = createPrefixCache();
  const keys = options.keys ?? ['test-key'];
  const named = (body: Record<string, unknown>, address: AddressFields) =>
    stringOf(address.deployment) || stringOf(body.model);
  const kind: VendorKind = {
    root: '/openai',
    routes: { 'POST /responses': 'responses', 'POST /chat/completions': 'chat' },
    readAddress,
    authorise(headers) {
      if (headers.authorization !== undefined) return refusal(401, 'The token is no Microsoft Entra token.');
      return keys.includes(headers['api-key'] ?? '') ? undefined : refusal(401);
    },
    check(dialect, body, _headers, address) {
      const model = deployments[named(body, address)];
      if (model === undefined) return refusal(404);
      const told = { ...body, model };
      const foreign =
        (isOthers(model) || address.deployment !== undefined) && ownFields.find(field => body[field] !== undefined);
      if (foreign)
        return refusal(400, `Unrecognized request argument supplied: ${foreign}`, 'unrecognized_request_argument');
      if (isOthers(model) && dialect === 'responses' && body.reasoning !== undefined)
        return refusal(400, "Unsupported parameter: 'reasoning.effort' is not supported with this model.");
      const refused = dialect === 'responses' ? checkResponses(told) : checkChat(told);
      return refused && refusal(400, refused.message, 'invalid_request_error');
    },
    read(dialect, body, address) {
      const reading = dialect === 'responses' ? readResponses(body) : readChat(body);
      return { ...reading, model: named(body, address) };
    },
    cache(dialect, body, segments, address) {
      const told = { ...body, model: deployments[named(body, address)] };
      return {
        read: prefixes.cached(`${dialect} ${named(body, address)}`, segments),
        written: 0,
        wire: reply => (dialect === 'responses' ? responsesWire(told, reply) : filtered(chatWire(told, reply))),
      };
    },
    listing: () => ({}),
    headers: id => ({ 'apim-request-id': id, 'x-ms-region': 'Sweden Central' }),
    stamp: body => body,
    badJson: () => refusal(400),
    wrongAddress: () => refusal(404, 'Resource not found', '404'),
    unknownModel: () => refusal(404),
    tooLong: (_dialect, tokens, window) =>
      refusal(
        400,
        `This model's maximum context length is ${window} tokens. However, your messages resulted in ${tokens} tokens.`,
        'context_length_exceeded',
      ),
    statusBody: status => refusal(status).body,
  };
  return startVendor(kind, tokensOf, options);
}

/** Before the first chunk of a chat stands what the filter made of the prompt, without any choice. */
function filtered(wire: Wire): Wire {
  const severity = { filtered: false, severity: 'safe' };
  const results = { hate: severity, self_harm: severity, sexual: severity, violence: severity };
  const first = { id: '', model: '', created: 0, object: '', choices: [] };
  const before = { ...first, prompt_filter_results: [{ prompt_index: 0, content_filter_results: results }] };
  return { ...wire, open: () => [{ data: before }, ...wire.open()] };
}
