import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { AppError, isAppError, throwIfAborted } from '../../core/errors.ts';
import { isRecord, parsedJson, recordIn, textIn } from '../../core/json.ts';
import { dryRunReason, type VendorEndpoint } from '../../models/provider.ts';
import type { BoundedAnswer } from '../../models/resilience/bounded-body.ts';
import { readVendorError } from '../../models/resilience/classify-error.ts';
import { badUpstream, toModelError } from '../../models/resilience/errors.ts';

/** The one way in which providers speak HTTP. */
export type Fetch = typeof globalThis.fetch;

/** `boundedFetch` for vendors. A redirection is refused: fetch would carry the headers, and keys in them, to another host. */
export const vendorFetch: Fetch = async (input, init) => (await vendorAnswer(input, init)).response();

/** The same before it is made a Response, for who reads it at once. */
export async function vendorAnswer(...[input, init]: Parameters<Fetch>): Promise<BoundedAnswer> {
  // Not with the settings of providers, which the start needs.
  const { boundedAnswer, rehearsedAnswer } = await import('../../models/resilience/bounded-fetch.ts');
  if (init?.signal?.reason === dryRunReason) return rehearsedAnswer(input, init);
  const answer = await boundedAnswer(input, { ...init, redirect: 'manual' });
  const target = answer.status >= 300 && answer.status < 400 ? answer.headers.get('location') : null;
  if (target === null) return answer;
  answer.body?.cancel();
  const { status } = answer;
  const { origin } = new URL(target, input instanceof Request ? input.url : input);
  throw new AppError('model', `The address redirects (${status}) to ${origin}; the request and its key stay here.`, {
    code: 'API_ERROR',
    class: 'bad_upstream',
    retryable: false,
    status,
    next: "If that is where the vendor is, set the provider's base URL to it.",
  });
}

/** Statuses of a path that a server does not have. */
const noSuchPath: readonly (number | undefined)[] = [404, 405, 501];

/**
 * Whether a failure says that the server does not have the path. Many answer with the same status to a model that they do not
 * have; then they mention it, and the path is there.
 */
export function isPathMissing(error: unknown): boolean {
  const { status, words, message } = readVendorError(error);
  // Pages have words of all kinds, a path may be named, and LiteLLM adds its name of the model to whatever it was told.
  const isPage = /^\s*</.test(textIn(recordIn(error).responseBody));
  const mentionsModel = /\bmodel|模型/i.test(
    `${words} ${message.replace(/\/\S*|LiteLLM: model group.*|Received Model Group.*/gs, '')}`,
  );
  return noSuchPath.includes(status) && (isPage || !mentionsModel);
}

/** The same of an answer, whose body can still be read. */
export async function lacksPath(response: Response): Promise<boolean> {
  if (!noSuchPath.includes(response.status)) return false;
  const responseBody = await response
    .clone()
    .text()
    .catch(() => '');
  return isPathMissing(Object.assign(new Error(), { statusCode: response.status, responseBody }));
}

/**
 * fetch for an address that other programs write without its version path (`ANTHROPIC_BASE_URL` of Claude Code): what is not
 * found below the address as it was written is looked for below `/v1`, and the place that answered is kept.
 */
export function versionedFetch(baseUrl: string, fetch: Fetch) {
  const versioned = `${baseUrl}/v1`;
  let found = /\/v\d+\w*(?:\/|$)/.test(new URL(baseUrl).pathname) ? baseUrl : undefined;
  const below = (base: string, input: Parameters<Fetch>[0]) =>
    typeof input === 'string' && input.startsWith(`${baseUrl}/`) ? base + input.slice(baseUrl.length) : input;
  return {
    baseUrl: () => found ?? baseUrl,
    /** Undefined where the address was written as it answers. */
    remark: (setting: string) => ((found ?? baseUrl) === baseUrl ? undefined : `${setting} is used as ${found}`),
    async fetch(...[input, init]: Parameters<Fetch>) {
      if (found !== undefined) return fetch(below(found, input), init);
      const response = await fetch(input, init);
      if (!(await lacksPath(response))) {
        found = baseUrl;
        return response;
      }
      const other = await fetch(below(versioned, input), init);
      if (await lacksPath(other)) {
        await other.body?.cancel();
        return response;
      }
      found = versioned;
      await response.body?.cancel();
      return other;
    },
  };
}

export interface JsonQuestion extends Pick<VendorEndpoint, 'provider' | 'headers'> {
  url: string;
  /** Absent: GET. */
  body?: unknown;
  /** Whose failure it would be. */
  model: string;
  /** Absent: `vendorFetch`. */
  fetch?: Fetch | undefined;
}

/** The object that a vendor answers, or a bare list as its `data`. Throws an `AppError` of kind `model`, or the signal's reason. */
export async function askJson(question: JsonQuestion, signal: AbortSignal | undefined, wanted = 'answer in JSON') {
  const { url, headers, body, provider, model, fetch = vendorFetch } = question;
  const sent = body !== undefined && { method: 'POST', body: JSON.stringify(body) };
  try {
    const type = sent && { 'content-type': 'application/json' };
    const response = await fetch(url, { ...sent, headers: { ...type, ...headers }, signal });
    const text = await response.text();
    const answer = response.ok ? parsedJson(text) : undefined;
    if (Array.isArray(answer)) return { data: answer };
    if (isRecord(answer)) return answer;
    throw Object.assign(new Error(`no ${wanted}`), { statusCode: response.status, responseBody: text });
  } catch (error) {
    signal?.throwIfAborted();
    throw toModelError(error, { provider, model, now: 0 });
  }
}

/** A count of tokens as a vendor told it. Throws when it told none. */
export function reportedCount(answer: Record<string, unknown>, member: string): number {
  const count = answer[member];
  if (typeof count === 'number' && Number.isInteger(count) && count >= 0) return count;
  throw new Error(`the answer has no count "${member}"`);
}

/** The JSON object that a request sends; undefined where its body is none. */
export function sentBody(init: RequestInit | undefined): Record<string, unknown> | undefined {
  const body: unknown = typeof init?.body === 'string' ? JSON.parse(init.body) : undefined;
  return isRecord(body) ? body : undefined;
}

type MakeModel = (fetch: Fetch) => LanguageModelV4 | PromiseLike<LanguageModelV4>;

/**
 * The body that a vendor's package would send for a call, without sending it: what is counted is then what would be asked.
 * `make` gets the function that stands for the network. Throws what the package throws when it makes none.
 */
export async function requestBody(make: MakeModel, call: LanguageModelV4CallOptions) {
  let body: Record<string, unknown> | undefined;
  const refuse: Fetch = (_address, init) => {
    body = sentBody(init);
    return Promise.reject(new Error('nothing is sent'));
  };
  try {
    await (await make(refuse)).doStream(call);
  } catch (error) {
    if (body) return body;
    throw error;
  }
  throw new Error('the package sent something past its fetch');
}

export interface VendorRequest {
  /** Absent: POST with a body, GET without one. */
  method?: 'DELETE' | 'PATCH' | 'POST';
  /** From the base address on, with its slash. */
  path: string;
  /** Sent as JSON, unless it is a form. */
  body?: object;
  headers?: Readonly<Record<string, string>>;
  /** What was asked for, as errors name it: `its files`. */
  what: string;
  /** The most it may take. */
  timeoutMs: number;
  signal: AbortSignal;
  /** Statuses that are answers, not errors. */
  expects?: readonly number[];
}

type Read<Result> = (text: string, status: number) => Result;

/** Asks once. Throws an `AppError` of kind `model`, or `CANCELLED` when the caller gave up. */
async function asked<Result>(endpoint: VendorEndpoint, request: VendorRequest, read: Read<Result>): Promise<Result> {
  const { path, body, signal, timeoutMs, what } = request;
  const method = request.method ?? (body === undefined ? 'GET' : 'POST');
  throwIfAborted(signal);
  const isForm = body instanceof FormData;
  const headers = {
    ...endpoint.headers,
    ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
    ...request.headers,
  };
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  try {
    const response = await vendorFetch(`${endpoint.baseUrl}${path}`, {
      method,
      headers,
      body: isForm ? body : body === undefined ? null : JSON.stringify(body),
      signal: limit,
    });
    const text = await response.text().catch((error: unknown) => {
      if (!response.ok || isAppError(error) || limit.aborted) throw error;
      throw badUpstream(`The answer about ${what} broke off.`);
    });
    if (response.ok || request.expects?.includes(response.status)) return read(text, response.status);
    const responseHeaders = Object.fromEntries(response.headers);
    const answered = { statusCode: response.status, responseBody: text, responseHeaders };
    throw Object.assign(new Error(`no answer about ${what}`), answered);
  } catch (error) {
    throwIfAborted(signal);
    const { provider, keyName } = endpoint;
    throw toModelError(error, { provider, model: what, now: endpoint.now(), keyName });
  }
}

export const vendorRequest = (endpoint: VendorEndpoint, request: VendorRequest) =>
  asked(endpoint, request, (text, status) => ({ text, status }));

/** The same for answers that are JSON objects. */
export const vendorJson = (endpoint: VendorEndpoint, request: VendorRequest) =>
  asked(endpoint, request, text => {
    const body = parsedJson(text);
    if (isRecord(body)) return body;
    throw badUpstream(`${endpoint.provider} answered no JSON object about ${request.what}.`);
  });
