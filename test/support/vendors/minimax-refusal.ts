import type { Refusal } from './refusal.ts';

const texts: Readonly<Record<number, [message: string, type: string]>> = {
  400: ['invalid params, bad request (2013)', 'bad_request_error'],
  401: [
    "login fail: Please carry the API secret key in the 'Authorization' field of the request header (1004)",
    'authorized_error',
  ],
  402: ['insufficient balance (1008)', 'insufficient_balance_error'],
  408: ['request timeout (1001)', 'timeout_error'],
  413: ['request too large', 'request_too_large'],
  429: ['rate limit exceeded (1002)', 'rate_limit_error'],
  529: ['The server cluster is currently under high load. (2064)', 'overloaded_error'],
};

/** MiniMax's error, as both of its interfaces send it: the status stands in it as a text. */
export function minimaxRefusal(status: number, message?: string): Refusal {
  const [text, type] = texts[status] ?? ['unknown error (1000)', 'api_error'];
  const said = message ?? text;
  const error = { type, message: said, http_code: String(status) };
  return { status, message: said, body: { type: 'error', error, request_id: '0123456789abcdef' } };
}
