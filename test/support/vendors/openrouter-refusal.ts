import type { FieldType } from './field-check.ts';
import type { Refusal } from './refusal.ts';

/** OpenRouter's error shape: the code is the HTTP status; what an upstream provider said stands in the metadata. */
export function openRouterRefusal(message: string, code = 400, metadata?: Record<string, unknown>): Refusal {
  return {
    status: code,
    message,
    body: { error: { message, code, ...(metadata && { metadata }) }, user_id: 'user_1' },
  };
}

export function missingKey(): Refusal {
  return openRouterRefusal('Missing Authentication header', 401);
}

export function wrongKey(): Refusal {
  return openRouterRefusal('User not found.', 401);
}

export function unknownModel(id: string): Refusal {
  return openRouterRefusal(`No endpoints found for ${id}.`, 404);
}

export function wrongType(field: string, expected: readonly FieldType[]): Refusal {
  return openRouterRefusal(`Invalid input: expected ${expected.join(' or ')} at "${field}"`);
}

/** The upstream's own refusal of a prompt, as OpenRouter passes it on. */
export function tooLong(tokens: number, window: number): Refusal {
  const said = `prompt is too long: ${tokens} tokens > ${window} maximum`;
  return openRouterRefusal('Provider returned error', 400, {
    provider_name: 'Anthropic',
    raw: JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: said } }),
  });
}

const texts: Readonly<Record<number, string>> = {
  401: 'User not found.',
  402: 'Insufficient credits. Add more using https://openrouter.ai/settings/credits',
  403: 'This key may not use this model.',
  404: 'No endpoints found for the-model.',
  408: 'Request timed out',
  413: 'Request entity too large',
  429: 'Rate limit exceeded: free-models-per-min.',
  503: 'No available model provider that meets your routing requirements',
};

/** A chosen upstream that is down is named; the edge in front of OpenRouter answers a gateway timeout in HTML. */
export function openRouterStatusBody(status: number): unknown {
  if (status === 504)
    return `<html>\n<head><title>${status}</title></head>\n<body><h1>${status}</h1></body>\n</html>\n`;
  const text = texts[status];
  if (text) return openRouterRefusal(text, status).body;
  return openRouterRefusal('Provider returned error', status, { provider_name: 'Anthropic', raw: 'Overload' }).body;
}
