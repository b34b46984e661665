import { isRecord } from '../../core/json.ts';

/** What can be read from a failed call, whatever threw it. */
export interface VendorError {
  /** Name of the thrown error, such as `AI_APICallError`; empty for what was no error. */
  name: string;
  /** HTTP status, where the vendor answered. */
  status?: number;
  /** The machine words of the answer (codes, types, reasons) in lower case, with a space between. */
  words: string;
  /** What it said to people, unshortened and unmasked. */
  message: string;
  /** Response headers, names in lower case. */
  headers: Readonly<Record<string, string>>;
  /** The parsed body; undefined when it is no JSON. */
  body: unknown;
  /** Code of the network failure below it, such as `ECONNRESET`. */
  systemCode?: string;
}

/**
 * Reads AI SDK errors (by shape, so that no vendor package is loaded for it), error parts of a stream, bodies of all
 * vendors' kinds (`{error: {…}}`, `{error: "…"}`, `[{error}]`, `{detail}`, HTML, text, a bare string) and network errors.
 */
export function readVendorError(error: unknown): VendorError {
  if (!isRecord(error)) {
    return { name: '', words: '', message: asText(error) ?? 'no reason was given', headers: {}, body: undefined };
  }
  const text = asText(error.responseBody);
  const body = parsed(text) ?? error.data;
  const objects = [error, ...errorObjects(body)];
  return {
    name: error instanceof Error ? error.name : '',
    status: statusOf(error),
    words: objects.flatMap(wordsOf).join(' ').toLowerCase(),
    message: firstText(messageOf(body), readable(text), ownMessage(error)) ?? 'no reason was given',
    headers: headersOf(error.responseHeaders),
    body,
    systemCode: systemCodeOf(error),
  };
}

/** Node's fetch says why only in the cause. */
function ownMessage(error: Record<string, unknown>): string | undefined {
  const cause = isRecord(error.cause) ? asText(error.cause.message) : undefined;
  return error.message === 'fetch failed' ? (cause ?? 'fetch failed') : asText(error.message);
}

function asText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function firstText(...texts: (string | undefined)[]): string | undefined {
  return texts.map(text => text?.trim()).find(text => text !== undefined && text !== '');
}

function parsed(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: the text itself is then what the vendor said.
    return undefined;
  }
}

/** A page or a plain text as one line without its markup. */
function readable(text: string | undefined): string | undefined {
  const head = text?.slice(0, 20_000);
  if (head === undefined || parsed(text) !== undefined) return undefined;
  return head
    .replace(/<(script|style)[\s>][\s\S]*?<\/\1>/gi, ' ')
    .replace(/<[^<>]*>/g, ' ')
    .replace(/\s+/g, ' ');
}

function statusOf(error: Record<string, unknown>): number | undefined {
  const status = error.statusCode ?? error.status ?? error.code;
  const number = typeof status === 'string' && /^\d{3}$/.test(status) ? Number(status) : status;
  return typeof number === 'number' && number >= 100 && number <= 599 ? number : undefined;
}

/** The object itself and what it wraps under the names that vendors use. */
function errorObjects(body: unknown): Record<string, unknown>[] {
  const first = Array.isArray(body) ? body[0] : body;
  if (!isRecord(first)) return [];
  const response = isRecord(first.response) ? first.response : undefined;
  return [first.error, response?.error, first].filter(isRecord);
}

function wordsOf(error: Record<string, unknown>): string[] {
  const details = Array.isArray(error.details) ? error.details.filter(isRecord) : [];
  const reasons = details.map(detail => detail.reason);
  return [error.code, error.type, error.status, ...reasons].filter(word => typeof word === 'string');
}

function messageOf(body: unknown): string | undefined {
  if (typeof body === 'string') return body;
  for (const error of errorObjects(body)) {
    const said = firstText(
      asText(error.message),
      asText(error.error),
      asText(error.detail),
      validationOf(error.detail),
    );
    if (said !== undefined) return said;
  }
  return undefined;
}

/** `detail: [{ loc, msg }]`, as servers written with FastAPI answer. */
function validationOf(detail: unknown): string | undefined {
  if (!Array.isArray(detail)) return undefined;
  return detail
    .filter(isRecord)
    .map(entry => asText(entry.msg) ?? '')
    .join('; ');
}

function headersOf(headers: unknown): Record<string, string> {
  if (!isRecord(headers)) return {};
  const texts = Object.entries(headers).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return Object.fromEntries(texts.map(([name, value]) => [name.toLowerCase(), value]));
}

function systemCodeOf(error: unknown): string | undefined {
  let current = error;
  for (let depth = 0; depth < 8 && isRecord(current); depth++) {
    const code = current.code;
    if (typeof code === 'string' && /^(E[A-Z]{3,}|UND_ERR|CERT_|ERR_|DEPTH_|SELF_|UNABLE_)/.test(code)) return code;
    const several = Array.isArray(current.errors) ? current.errors[0] : undefined;
    current = current.cause ?? several;
  }
  return undefined;
}
