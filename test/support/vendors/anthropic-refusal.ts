import type { Refusal } from './refusal.ts';

const types: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

/** Anthropic's error shape; the request's id is put in where the answer is written. */
export function anthropicRefusal(message: string, status = 400): Refusal {
  const type = types[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  return { status, message, body: { type: 'error', error: { type, message } } };
}

const messages: Record<number, string> = {
  400: 'The request was not valid.',
  401: 'invalid x-api-key',
  402: 'Your credit balance is too low to access the API.',
  403: 'Your API key does not have permission to use the specified resource.',
  404: 'model: the-model',
  408: 'Request timed out',
  413: 'Request exceeds the maximum size',
  429: 'Number of requests has exceeded your per-minute rate limit.',
  504: 'Request timed out',
  529: 'Overloaded',
};

/** What Anthropic sends with a status when nothing else is scripted; the proxy in front of it answers 502 and 503. */
export function anthropicStatusBody(status: number): unknown {
  if (status === 502 || status === 503)
    return `<html>\r\n<head><title>${status}</title></head>\r\n<body>\r\n<center><h1>${status}</h1></center>\r\n<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n`;
  return anthropicRefusal(messages[status] ?? 'Internal server error', status).body;
}
