import { AppError, isAppError } from '../../core/errors.ts';
import { recordIn, recordsIn, textIn } from '../../core/json.ts';
import { cutMiddle } from '../../core/text.ts';
import { classify, type FailureClass, faultOfVendor, readVendorError, type VendorError } from './classify-error.ts';

/** Nobody waits longer; keeps nonsense from a header out of sums and replies. */
const maxRetryAfterSeconds = 7 * 24 * 3600;

export interface RetryAfterSource {
  /** Response headers, names in lower case. */
  headers: Readonly<Record<string, string>>;
  /** The parsed body of the error. */
  body: unknown;
  /** Epoch milliseconds, for answers that name a date. */
  now: number;
}

/** Seconds that the vendor asks to wait, from whichever place it uses. Undefined when it says nothing usable. */
export function retryAfterSeconds({ headers, body, now }: RetryAfterSource): number | undefined {
  const milliseconds = asNumber(headers['retry-after-ms']);
  return usable(
    milliseconds === undefined ? undefined : milliseconds / 1000,
    fromHeader(headers['retry-after'], now),
    fromRetryInfo(body),
  );
}

function usable(...found: (number | undefined)[]): number | undefined {
  const seconds = found.find(value => value !== undefined && value >= 0);
  return seconds === undefined ? undefined : Math.min(seconds, maxRetryAfterSeconds);
}

const asNumber = (text: string | undefined): number | undefined =>
  text !== undefined && /^\s*-?\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;

function fromHeader(text: string | undefined, now: number): number | undefined {
  const seconds = asNumber(text);
  if (seconds !== undefined) return seconds;
  // Date.parse takes many odd texts; an HTTP date always names a weekday or a month.
  if (text === undefined || !/[a-z]{3}/i.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, (at - now) / 1000);
}

/** Google puts `{ '@type': '…RetryInfo', retryDelay: '12.5s' }` among the details of the error. */
function fromRetryInfo(body: unknown): number | undefined {
  const { details } = recordIn(recordIn(Array.isArray(body) ? body[0] : body).error);
  const infos = recordsIn(details).filter(detail => String(detail['@type']).endsWith('RetryInfo'));
  return asNumber(
    infos
      .map(({ retryDelay }) => textIn(retryDelay))
      .find(delay => delay.endsWith('s'))
      ?.slice(0, -1),
  );
}

/** Whose failure it was. */
export interface FailureOrigin {
  provider: string;
  model: string;
  /** Counted from 1 within the call. */
  attempt?: number;
  /** Epoch milliseconds, for waits that are given as a date. */
  now: number;
  /** Environment variable of the provider's key, for the advice. */
  keyName?: string;
}

const maxMessageLength = 300;

/** Characters of a body that a program may want to look into. */
const maxBodyLength = 10_000;

/**
 * Turns whatever a model call threw into our error, with the one decision on whether it may be tried again. The message
 * carries what the vendor said, without anything that looks like a key. Its cause is the vendor's error as far as it may be kept:
 * without the prompt, headers and addresses that packages add to it.
 */
export function toModelError(error: unknown, origin: FailureOrigin): AppError {
  const { provider, model, attempt } = origin;
  const ours = innermost(error);
  if (ours) return located(ours, origin);
  const vendor = readVendorError(error, provider);
  const wait = retryAfterSeconds({ headers: vendor.headers, body: vendor.body, now: origin.now });
  const verdict = classify(vendor, wait !== undefined);
  const answered = vendor.status === undefined ? 'failed' : `answered ${vendor.status}`;
  const said = withoutKeys(cutMiddle(vendor.message.replace(/\s+/g, ' '), maxMessageLength * 4));
  return new AppError('model', `${provider} ${answered} for ${model}: ${cutMiddle(said, maxMessageLength)}`, {
    code: 'API_ERROR',
    class: verdict.class,
    next: verdict.next ?? adviceFor(verdict.class, origin, { status: vendor.status, wait }),
    provider,
    model,
    attempt,
    retryable: verdict.retryable && vendor.headers['x-should-retry'] !== 'false',
    retryAfterSeconds: wait,
    status: vendor.status,
    fault: faultOfVendor(vendor, verdict, model),
    cause: originalOf(vendor),
    ...(verdict.elsewhere && { data: { elsewhere: true } }),
  });
}

/** Our own error below what packages and fetch wrapped it in. */
function innermost(error: unknown, depth = 0): AppError | undefined {
  const below = error instanceof Error && depth < 8 ? innermost(error.cause, depth + 1) : undefined;
  return below ?? (isAppError(error) ? error : undefined);
}

/** What the vendor said, under the names that the AI SDK has for it. */
function originalOf({ name, message, status, body }: VendorError): Error {
  const responseBody = body === undefined ? undefined : withoutKeys(cutMiddle(JSON.stringify(body), maxBodyLength));
  const told = { ...(name !== '' && { name }), statusCode: status, responseBody };
  const original = Object.assign(new Error(withoutKeys(message)), told);
  // Where in Polylogue it was made helps nobody.
  original.stack = `${original.name}: ${original.message}`;
  return original;
}

/** An answer that came, but is none: empty, cut off, or not a stream at all. */
export const badUpstream = (message: string, retryable = true, next?: string): AppError =>
  new AppError('model', message, { code: 'API_ERROR', class: 'bad_upstream', retryable, next });

/** Our own errors (a limit that expired, a provider that is not configured) keep what they say and learn where it was. */
function located(error: AppError, origin: FailureOrigin): AppError {
  const { provider, model, attempt } = origin;
  const next =
    error.details.next ??
    (isFailureClass(error.details.class) ? adviceFor(error.details.class, origin, {}) : undefined);
  return new AppError(error.kind, error.message, { provider, model, attempt, ...error.details, next });
}

const advice: Readonly<Record<FailureClass, string>> = {
  quota: 'Raise the quota of your provider account, or choose a model from another provider.',
  rate_limit: 'Retry later, or choose a model from another provider.',
  auth: "Check the provider's API key and its permissions, or choose a model from another provider.",
  balance: 'Add credit to your provider account, or choose a model from another provider.',
  network: "Check the network, the proxy and the provider's base URL, or choose a model from another provider.",
  timeout: 'Retry, shorten the request, or choose a faster model.',
  content_filter: 'Rephrase the question, remove the content the provider rejects, or choose another model.',
  context_length: 'Send fewer or smaller files, or choose a model with a larger context window.',
  bad_request: 'Check that the provider supports these parameters and files, or choose another model.',
  bad_upstream: 'Retry later, or choose another model.',
  unknown: 'Retry, or choose another model. If it keeps failing, check the server log.',
};

const isFailureClass = (name: string): name is FailureClass => Object.hasOwn(advice, name);

function adviceFor(failure: FailureClass, origin: FailureOrigin, seen: { status?: number; wait?: number }): string {
  if (failure === 'auth' && origin.keyName !== undefined) {
    return `Set ${origin.keyName} to a valid key with access to ${origin.model}, or choose a model from another provider.`;
  }
  if (failure === 'rate_limit' && seen.wait !== undefined) {
    return `Retry in ${Math.ceil(seen.wait)} s, or choose a model from another provider.`;
  }
  if (failure === 'bad_request' && seen.status === 404) {
    return `Check that ${origin.provider} serves ${origin.model} to this account and that the base URL is right.`;
  }
  return advice[failure];
}

const removed = '[removed]';

/** Takes out what looks like a key, a token or the user part of an address. Vendors repeat the key they refuse. */
export const withoutKeys = (text: string): string =>
  text
    .replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]+@/gi, `$1${removed}@`)
    .replace(/([?&](?:key|api_key|apikey|token|access_token)=)[^\s&"']+/gi, `$1${removed}`)
    .replace(/\b(bearer|basic)\s+[^\s"',;]+/gi, `$1 ${removed}`)
    .replace(/\b((?:api[ _-]?)?(?:key|token)["']?(?: provided)?\s*[:=]\s*["']?)[^\s"',;]+/gi, `$1${removed}`)
    .replace(/\b(?:sk|pk|rk|xai|gsk|nvapi|hf|ghp|r8|fw|tgp|ak)[-_][A-Za-z0-9*_-]{6,}/g, removed)
    .replace(/\bAIza[A-Za-z0-9_-]{10,}/g, removed)
    .replace(/\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{24,}(?:\.[A-Za-z0-9_-]{8,})*/g, removed);
