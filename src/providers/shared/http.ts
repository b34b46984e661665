import { throwIfAborted } from '../../core/errors.ts';
import { isRecord, type JsonObject } from '../../core/json.ts';
import { type CodeOf, codedError } from '../../models/extras/upstream/coded-error.ts';
import { vendorFetch } from '../../models/extras/wire/vendor-fetch.ts';
import { badUpstream, toModelError } from '../../models/resilience/errors.ts';

/** Where a vendor's services beside its chat are asked, and as whom. */
export interface VendorDoor {
  /** Id of the provider, for errors. */
  provider: string;
  /** Without a slash at its end. */
  baseUrl: string;
  headers: Readonly<Record<string, string>>;
  /** Environment variable of the key, for advice. */
  keyName: string;
  /** Epoch milliseconds, for waits that a vendor gives as a date. */
  now(): number;
  codeOf?: CodeOf;
}

export interface VendorRequest {
  method: 'GET' | 'POST' | 'DELETE';
  /** From the base address on, with its slash. */
  path: string;
  body?: JsonObject | FormData;
  headers?: Readonly<Record<string, string>>;
  /** What was asked for, as errors name it: `its files`. */
  what: string;
  /** The most it may take. */
  timeoutMs: number;
  signal: AbortSignal;
  /** Statuses that are answers, not errors. */
  expects?: readonly number[];
}

export interface VendorResponse {
  status: number;
  text: string;
}

/** An extracted book fits; what never ends must not fill the memory. */
const mostBytes = 64 * 1024 * 1024;

/** Asks once. Throws an `AppError` of kind `model`, or `CANCELLED` when the caller gave up. */
export async function vendorRequest(door: VendorDoor, request: VendorRequest): Promise<VendorResponse> {
  const { method, path, body, signal, timeoutMs, what } = request;
  throwIfAborted(signal);
  const isForm = body instanceof FormData;
  const headers = {
    ...door.headers,
    ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
    ...request.headers,
  };
  try {
    const response = await vendorFetch(`${door.baseUrl}${path}`, {
      method,
      headers,
      body: isForm ? body : body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    const text = await limitedText(response);
    if (response.ok || request.expects?.includes(response.status)) return { status: response.status, text };
    const responseHeaders = Object.fromEntries(response.headers);
    throw Object.assign(new Error(`no answer about ${what}`), {
      statusCode: response.status,
      responseBody: text,
      responseHeaders,
    });
  } catch (error) {
    throwIfAborted(signal);
    const { provider, keyName } = door;
    const told = door.codeOf ? codedError(error, door.codeOf) : error;
    throw toModelError(told, { provider, model: what, now: door.now(), keyName });
  }
}

/** The same for answers that are JSON objects. */
export async function vendorJson(door: VendorDoor, request: VendorRequest): Promise<Record<string, unknown>> {
  const { text } = await vendorRequest(door, request);
  const body = parsedJson(text);
  if (isRecord(body)) return body;
  throw toModelError(badUpstream(`${door.provider} answered no JSON object about ${request.what}.`), {
    provider: door.provider,
    model: request.what,
    now: door.now(),
  });
}

export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The caller says what was expected.
    return undefined;
  }
}

async function limitedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.byteLength;
    if (length > mostBytes) throw badUpstream(`The answer has more than ${mostBytes} bytes.`, false);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
