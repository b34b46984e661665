import { AppError, type Fault, isAppError } from '../../core/errors.ts';
import { isRecord, recordIn, recordsIn, textIn } from '../../core/json.ts';
import { cutMiddle, withoutKeys } from '../../core/text.ts';
import type { CallLimits } from '../ask-model.ts';
import type { FailureClass, VendorError } from './classify-error.ts';
import { classify, faultOfVendor, isRetryable, readVendorError } from './classify-error.ts';

/** Nobody waits longer; keeps nonsense from a header out of sums and replies. */
const maxRetryAfterSeconds = 7 * 24 * 3600;

/** `now`: epoch milliseconds, for answers that name a moment. */
export type RetryAfterSource = Pick<VendorError, 'headers'> & Partial<VendorError> & { now: number };

/** Seconds that the vendor asks to wait, from whichever place it uses. Undefined when it says nothing usable. */
export function retryAfterSeconds({ status, headers, message = '', body, now }: RetryAfterSource): number | undefined {
  const error = errorIn(body);
  const all = { ...headersIn(error.metadata), ...headers };
  const milliseconds = asNumber(all['retry-after-ms']);
  const waits = [
    milliseconds === undefined ? undefined : milliseconds / 1000,
    secondsUntil(all['retry-after'], now),
    fromRetryInfo(error.details),
    // Refusals of another kind may quote such words.
    status === undefined || status === 429 || status >= 500 ? duration(waitInWords.exec(message)?.[1]) : undefined,
    status === 429 ? fromResets(all, now) : undefined,
  ];
  const seconds = waits.find(value => value !== undefined && value >= 0);
  return seconds === undefined ? undefined : Math.min(seconds, maxRetryAfterSeconds);
}

/** The error in a body, or the body where it is the error itself. */
function errorIn(body: unknown): Record<string, unknown> {
  const whole = recordIn(Array.isArray(body) ? body[0] : body);
  return isRecord(whole.error) ? whole.error : whole;
}

/** OpenRouter has the headers of whoever refused in the body, as those of its own answer may be sent by then. */
function headersIn(metadata: unknown): Record<string, string> {
  const entries = Object.entries(recordIn(recordIn(metadata).headers));
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), String(value)]));
}

const asNumber = (text: string | undefined): number | undefined =>
  text !== undefined && /^\s*-?\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;

/** One or several amounts with their units: `6m0s`, `12ms`, `20 seconds`. */
const amounts = String.raw`(?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?|d|days?)(?![a-z])\s*)+`;

const durationPattern = new RegExp(`^\\s*${amounts}$`, 'i');

const waitInWords = new RegExp(`\\b(?:try again|retry) (?:in|after) (${amounts})`, 'i');

const unitSeconds: Readonly<Record<string, number>> = { ms: 0.001, mil: 0.001, s: 1, m: 60, h: 3_600, d: 86_400 };

/** Seconds of an amount with units; undefined for what is none. */
function duration(text = ''): number | undefined {
  if (!durationPattern.test(text)) return undefined;
  const parts = [...text.toLowerCase().matchAll(/(\d+(?:\.\d+)?)\s*(ms|mil|[smhd])/g)];
  return parts.reduce((sum, [, amount, unit = '']) => sum + Number(amount) * (unitSeconds[unit] ?? 0), 0);
}

/** Seconds until what a header names: a number of them, a duration, a date, or a moment in seconds or milliseconds of the epoch. */
function secondsUntil(text: string | undefined, now: number): number | undefined {
  const number = asNumber(text);
  if (number !== undefined && number < 1e9) return number;
  if (number !== undefined) return Math.max(0, ((number < 1e11 ? number * 1000 : number) - now) / 1000);
  const seconds = duration(text);
  // Date.parse takes many odd texts; an HTTP date always names a weekday or a month.
  if (seconds !== undefined || text === undefined || !/[a-z]{3}|^\d{4}-\d\d-\d\dT/i.test(text)) return seconds;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, (at - now) / 1000);
}

/**
 * When a limit that is used up is whole again, by headers such as `x-ratelimit-reset-requests`: one of which something remains is
 * no reason to wait. Where no header tells what remains, the first of them.
 */
function fromResets(headers: RetryAfterSource['headers'], now: number): number | undefined {
  const waits = (remaining: number | undefined) =>
    Object.entries(headers)
      .filter(([name]) => /rate-?limit.*reset/.test(name))
      .filter(([name]) => asNumber(headers[name.replace('reset', 'remaining')]) === remaining)
      .flatMap(([, text]) => secondsUntil(text, now) ?? [])
      .toSorted((a, b) => a - b);
  return waits(0).at(-1) ?? waits(undefined)[0];
}

/** Google puts `{ '@type': '…RetryInfo', retryDelay: '12.5s' }` among the details of the error. */
function fromRetryInfo(details: unknown): number | undefined {
  const infos = recordsIn(details).filter(detail => String(detail['@type']).endsWith('RetryInfo'));
  return infos.map(({ retryDelay }) => duration(textIn(retryDelay))).find(seconds => seconds !== undefined);
}

export interface FailureOrigin {
  provider: string;
  model: string;
  /** Counted from 1 within the call. */
  attempt?: number;
  /** Epoch milliseconds, for waits that are given as a date. */
  now: number;
  /** Environment variable of the provider's key, for the advice. */
  keyName?: string;
  /** The provider's secret settings, which a server may repeat. */
  keys?: readonly string[];
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
  const wait = retryAfterSeconds({ ...vendor, now: origin.now });
  const verdict = classify(vendor, wait !== undefined);
  const answered = vendor.status === undefined ? 'failed' : `answered ${vendor.status}`;
  const hide = (text: string, maxChars: number) => cutMiddle(withoutKeys(text, origin.keys), maxChars);
  const said = hide(vendor.said.replace(/\s+/g, ' '), maxMessageLength);
  return new AppError('model', `${provider} ${answered} for ${model}: ${said}`, {
    code: 'API_ERROR',
    class: verdict.class,
    next:
      verdict.next ??
      adviceFor(verdict.class, origin, { status: verdict.noModel ? 404 : vendor.status, wait, body: vendor.body }),
    provider,
    model,
    attempt,
    retryable: isRetryable(verdict) && vendor.headers['x-should-retry'] !== 'false',
    retryAfterSeconds: wait,
    status: vendor.status,
    fault: faultOfVendor(vendor, verdict, model),
    cause: originalOf(vendor, hide),
    ...((verdict.elsewhere || verdict.noModel) && { data: { elsewhere: verdict.elsewhere, noModel: verdict.noModel } }),
  });
}

/** Our own error below what packages and fetch wrapped it in. */
function innermost(error: unknown, depth = 0): AppError | undefined {
  const below = error instanceof Error && depth < 8 ? innermost(error.cause, depth + 1) : undefined;
  return below ?? (isAppError(error) ? error : undefined);
}

/** What the vendor said, under the names that the AI SDK has for it. */
function originalOf(
  { name, said, status, body }: VendorError,
  hide: (text: string, maxChars: number) => string,
): Error {
  const responseBody = body === undefined ? undefined : hide(JSON.stringify(body), maxBodyLength);
  const told = { ...(name !== '' && { name }), statusCode: status, responseBody };
  const original = Object.assign(new Error(hide(said, maxBodyLength)), told);
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
  const { class: kind, next = isFailureClass(kind) ? adviceFor(kind, origin, {}) : undefined } = error.details;
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

/** `wait`: seconds that the vendor asks for; `body`: undefined for what is no JSON. */
function adviceFor(
  failure: FailureClass,
  origin: FailureOrigin,
  { status, wait, body }: { status?: number | undefined; wait?: number | undefined; body?: unknown },
): string {
  // A page is of something on the way.
  if (failure === 'auth' && status === 403 && body === undefined) return advice.network;
  if (failure === 'auth' && origin.keyName !== undefined)
    return `Set ${origin.keyName} to a valid key with access to ${origin.model}, or choose a model from another provider.`;
  if (failure === 'rate_limit' && wait !== undefined) {
    return `Retry in ${Math.ceil(wait)} s, or choose a model from another provider.`;
  }
  if (failure === 'bad_request' && status === 404)
    return `Check that ${origin.provider} serves ${origin.model} to this account and that the base URL is right.`;
  return advice[failure];
}

/** How an attempt went, as far as its end by one of our own limits has to be judged. */
export interface AttemptCourse {
  /** The limits that the caller set for this call alone; to miss those is no sign of trouble. */
  own?: Partial<CallLimits>;
  limits: CallLimits;
  elapsedMs: number;
  /** Some text or reasoning came. */
  progressed: boolean;
}

/** What a failed attempt tells of its vendor. */
export function faultOf(error: AppError, course: AttemptCourse): Fault | undefined {
  const { class: kind, data, retryable, fault } = error.details;
  if (fault) return fault;
  const model: Fault = { scope: 'model', lasting: false };
  if (kind === 'bad_upstream') return retryable ? model : undefined;
  if (kind !== 'timeout') return undefined;
  if (data?.clock === 'first_byte') return course.own?.firstByteMs === undefined ? model : undefined;
  if (data?.clock === 'idle') return course.own?.idleMs === undefined ? model : undefined;
  // What is left of the total is often little. Only who was silent for most of it is to blame.
  const silent = !course.progressed && course.elapsedMs * 2 >= course.limits.totalMs;
  return course.own?.totalMs === undefined && silent ? model : undefined;
}
