import { isRecord } from '../../core/json.ts';
import { toModelError } from '../resilience/errors.ts';
import { vendorFetch } from './wire/vendor-fetch.ts';

export interface JsonQuestion {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: unknown;
  /** Whose failure it would be. */
  provider: string;
  model: string;
}

/** The object that a vendor answers to an object. Throws an `AppError` of kind `model`, or the signal's reason. */
export async function postJson(
  { url, headers, body, provider, model }: JsonQuestion,
  signal: AbortSignal | undefined,
): Promise<Record<string, unknown>> {
  try {
    const sent = { 'content-type': 'application/json', ...headers };
    const response = await vendorFetch(url, { method: 'POST', headers: sent, body: JSON.stringify(body), signal });
    const text = await response.text();
    const answer: unknown = response.ok ? JSON.parse(text) : undefined;
    if (isRecord(answer)) return answer;
    throw Object.assign(new Error('no answer in JSON'), { statusCode: response.status, responseBody: text });
  } catch (error) {
    signal?.throwIfAborted();
    throw toModelError(error, { provider, model, now: 0 });
  }
}

/** A count of tokens as a vendor told it. Throws when it told none. */
export function toldCount(answer: Record<string, unknown>, member: string): number {
  const count = answer[member];
  if (typeof count === 'number' && Number.isInteger(count) && count >= 0) return count;
  throw new Error(`the answer has no count "${member}"`);
}
