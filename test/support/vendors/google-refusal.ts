import type { Refusal } from './refusal.ts';

/** The words of gRPC that the vendor puts beside a status. */
const words: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  402: 'FAILED_PRECONDITION',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  408: 'DEADLINE_EXCEEDED',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

/** Google's error shape: one `error` object with code, message, status and, at times, typed details. */
export function googleRefusal(message: string, status = 400, details?: unknown[]): Refusal {
  const word = words[status] ?? (status < 500 ? 'FAILED_PRECONDITION' : 'UNKNOWN');
  return { status, message, body: { error: { code: status, message, status: word, ...(details && { details }) } } };
}

/** A body that does not fit the interface's own types; `at` is the way to the object, in the vendor's snake case. */
export function badField(description: string, at = ''): Refusal {
  const violation = { ...(at !== '' && { field: at }), description };
  return googleRefusal(description, 400, [
    { '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: [violation] },
  ]);
}

export function unknownField(name: string, at = ''): Refusal {
  const where = at === '' ? '' : ` at '${at}'`;
  return badField(`Invalid JSON payload received. Unknown name "${name}"${where}: Cannot find field.`, at);
}

/** One or more fields that the interface knows, but not so. */
export function badRequestField(field: string, problem: string): Refusal {
  return googleRefusal(`* GenerateContentRequest.${field}: ${problem}\n`);
}

export function missingKey(): Refusal {
  return googleRefusal(
    "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
    403,
  );
}

/** A wrong key is a bad request there. */
export function wrongKey(): Refusal {
  const message = 'API key not valid. Please pass a valid API key.';
  return googleRefusal(message, 400, [
    {
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason: 'API_KEY_INVALID',
      domain: 'googleapis.com',
      metadata: { service: 'generativelanguage.googleapis.com' },
    },
    { '@type': 'type.googleapis.com/google.rpc.LocalizedMessage', locale: 'en-US', message },
  ]);
}

/** The limit of a minute or a day, with the wait that the vendor asks for. */
export function quotaSpent(retryDelay: string): Refusal {
  return googleRefusal(
    'You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 10',
    429,
    [
      {
        '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
        violations: [
          {
            quotaMetric: 'generativelanguage.googleapis.com/generate_content_free_tier_requests',
            quotaId: 'GenerateRequestsPerMinutePerProjectPerModel-FreeTier',
            quotaValue: '10',
          },
        ],
      },
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay },
    ],
  );
}

const messages: Record<number, string> = {
  400: 'Request contains an invalid argument.',
  401: 'Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.',
  402: 'Your prepayment credits are depleted.',
  403: 'The caller does not have permission',
  404: 'Requested entity was not found.',
  408: 'The request timed out. Please try again.',
  429: 'Resource has been exhausted (e.g. check quota).',
  500: 'An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
  503: 'The model is overloaded. Please try again later.',
  504: 'Deadline expired before operation could complete.',
};

/** What Google sends with a status when nothing else is scripted; its front end answers 413 and 502 in HTML. */
export function googleStatusBody(status: number): unknown {
  if (status === 413 || status === 502)
    return `<!DOCTYPE html>\n<html lang=en>\n<title>Error ${status}</title>\n<p><b>${status}.</b> <ins>That's an error.</ins>\n`;
  return googleRefusal(messages[status] ?? 'Unknown Error.', status).body;
}
