import { isRecord } from '../../core/json.ts';

/** Nobody waits longer; keeps nonsense from a header out of sums and replies. */
const longestSeconds = 7 * 24 * 3600;

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
  return seconds === undefined ? undefined : Math.min(seconds, longestSeconds);
}

function asNumber(text: string | undefined): number | undefined {
  if (text === undefined || !/^\s*-?\d+(\.\d+)?\s*$/.test(text)) return undefined;
  return Number(text);
}

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
  const first = Array.isArray(body) ? body[0] : body;
  const error = isRecord(first) ? first.error : undefined;
  const details = isRecord(error) ? error.details : undefined;
  if (!Array.isArray(details)) return undefined;
  for (const detail of details) {
    if (!isRecord(detail) || !String(detail['@type']).endsWith('RetryInfo')) continue;
    const delay = detail.retryDelay;
    if (typeof delay === 'string' && delay.endsWith('s')) return asNumber(delay.slice(0, -1));
  }
  return undefined;
}
