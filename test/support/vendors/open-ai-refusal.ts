import type { FieldType } from './field-check.ts';
import type { Refusal } from './refusal.ts';

interface OpenAiError {
  status?: number;
  type?: string;
  param?: string;
  code?: string;
}

/** OpenAI's error shape: one `error` object with message, type, param and code. */
export function openAiRefusal(message: string, about: OpenAiError = {}): Refusal {
  const { status = 400, type = 'invalid_request_error', param = null, code = null } = about;
  return { status, message, body: { error: { message, type, param, code } } };
}

/** What OpenAI sends with a status when nothing else is scripted. Proxies in front of it answer 413, 502 and 504 in HTML. */
export function openAiStatusBody(status: number): unknown {
  switch (status) {
    case 400:
      return openAiRefusal('The request was not valid.').body;
    case 401:
      return wrongKey('test-key').body;
    case 402:
      return openAiRefusal('Your account is out of credit. Check your plan and billing details.', {
        type: 'insufficient_quota',
        code: 'insufficient_quota',
      }).body;
    case 403:
      return openAiRefusal('Country, region, or territory not supported', {
        type: 'request_forbidden',
        code: 'unsupported_country_region_territory',
      }).body;
    case 404:
      return unknownModel('the-model').body;
    case 429:
      return openAiRefusal('Rate limit reached for requests. Try again later.', {
        type: 'requests',
        code: 'rate_limit_exceeded',
      }).body;
    case 413:
    case 502:
    case 504:
      return `<html>\r\n<head><title>${status}</title></head>\r\n<body>\r\n<center><h1>${status}</h1></center>\r\n<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n`;
    case 503:
      return openAiRefusal('The engine is currently overloaded, please try again later', {
        type: 'service_unavailable_error',
        code: 'service_unavailable',
      }).body;
    default:
      return openAiRefusal('The server had an error while processing your request.', { type: 'server_error' }).body;
  }
}

export function missingKey(): Refusal {
  return openAiRefusal("You didn't provide an API key. Send it in an Authorization header as a Bearer token.", {
    status: 401,
  });
}

/** The vendor shows the ends of a wrong key, never its middle. */
export function wrongKey(key: string): Refusal {
  const shown = key.length > 12 ? `${key.slice(0, 8)}${'*'.repeat(key.length - 12)}${key.slice(-4)}` : key;
  return openAiRefusal(`Incorrect API key provided: ${shown}.`, { status: 401, code: 'invalid_api_key' });
}

export function unknownModel(id: string): Refusal {
  return openAiRefusal(`The model \`${id}\` does not exist or you do not have access to it.`, {
    status: 404,
    code: 'model_not_found',
  });
}

export function unsupportedParameter(param: string, instead = ''): Refusal {
  return openAiRefusal(`Unsupported parameter: '${param}' is not supported with this model.${instead}`, {
    param,
    code: 'unsupported_parameter',
  });
}

const typeWords: Record<FieldType, string> = {
  string: 'a string',
  integer: 'an integer',
  number: 'a decimal',
  boolean: 'a boolean',
  array: 'an array',
  strings: 'an array of strings',
  object: 'an object',
  any: 'any value',
};

export function wrongType(param: string, expected: readonly FieldType[], value: unknown): Refusal {
  const wanted = expected.map(type => typeWords[type]).join(' or ');
  return openAiRefusal(`Invalid type for '${param}': expected ${wanted}, but got ${kindOf(value)} instead.`, {
    param,
    code: 'invalid_type',
  });
}

export function missingParameter(param: string): Refusal {
  return openAiRefusal(`Missing required parameter: '${param}'.`, { param, code: 'missing_required_parameter' });
}

export function invalidValue(param: string, value: string, supported: readonly string[]): Refusal {
  return openAiRefusal(`Invalid value: '${value}'. Supported values are: ${quoted(supported)}.`, {
    param,
    code: 'invalid_value',
  });
}

export function quoted(words: readonly string[]): string {
  return words.map(word => `'${word}'`).join(', ');
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
