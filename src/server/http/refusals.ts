import { type AppError, isAppError } from '../../core/errors.ts';
import type { Refusal } from '../guards/refusal.ts';

export const nowhere: Refusal = {
  status: 404,
  class: 'path',
  message: 'There is nothing at this path.',
  next: 'MCP is at /mcp, single tools at /api/tools/NAME.',
};

export const wrongType: Refusal = {
  status: 415,
  class: 'type',
  message: 'The body is not declared as JSON.',
  next: 'Send it with "Content-Type: application/json".',
};

export const wrongCoding: Refusal = {
  status: 415,
  class: 'coding',
  message: 'The body is compressed.',
  next: 'Send it as it is, without "Content-Encoding".',
  headers: { 'Accept-Encoding': 'identity' },
};

/** At the path of a door that takes connections of another protocol alone; a proxy on the way may have taken that out. */
export const upgradeOnly: Refusal = {
  status: 426,
  class: 'upgrade',
  message: 'This path takes WebSockets only.',
  next: 'Connect with a WebSocket client; a proxy on the way has to pass the "Upgrade" and "Connection" headers on.',
  headers: { Upgrade: 'websocket', Connection: 'Upgrade' },
};

export const brokenOff: Refusal = {
  status: 400,
  class: 'body',
  message: 'The body ended too soon.',
  next: 'Send the request again.',
};

export function wrongMethod(allowed: readonly string[]): Refusal {
  return {
    status: 405,
    class: 'method',
    message: 'This path does not take this method.',
    next: `It takes ${allowed.join(', ')}.`,
    headers: { Allow: allowed.join(', ') },
  };
}

/** What became of a request that failed before its tool was called. */
export function refusalOf(error: unknown): Refusal {
  if (!isAppError(error)) return failed;
  const { class: kind, next = failed.next, retryAfterSeconds } = error.details;
  const refusal = { status: statusOf(error), class: kind, message: error.message, next };
  return retryAfterSeconds === undefined ? refusal : { ...refusal, retryAfterSeconds };
}

function statusOf({ kind }: AppError): Refusal['status'] {
  switch (kind) {
    case 'input':
      return 400;
    case 'security':
      return 403;
    case 'limit':
    case 'storage':
      return 503;
    default:
      return 500;
  }
}

const failed: Refusal = {
  status: 500,
  class: 'bug',
  message: 'The server failed at this request.',
  next: 'Send it again; if it fails again, see the log of the server.',
};
