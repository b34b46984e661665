import { AppError } from '../../../core/errors.ts';
import { isRecord } from '../../../core/json.ts';

/** The one way in which providers speak HTTP: Node's own fetch, without its time limits. */
export type Fetch = typeof globalThis.fetch;

/**
 * Where Node's fetch keeps what carries its requests: the proxy that was configured, else direct connections. Newer versions
 * put it under the first name.
 */
const dispatcherNames = [Symbol.for('undici.globalDispatcher.2'), Symbol.for('undici.globalDispatcher.1')] as const;

type Dispatch = (options: object, handler: unknown) => boolean;

function currentDispatcher(): { dispatch: Dispatch } | undefined {
  for (const name of dispatcherNames) {
    const found: unknown = Reflect.get(globalThis, name);
    if (isDispatcher(found)) return found;
  }
  return undefined;
}

function isDispatcher(value: unknown): value is { dispatch: Dispatch } {
  return isRecord(value) && typeof value.dispatch === 'function';
}

/**
 * Carries each request as Node would at that moment, so that a proxy counts whenever it was set up. Node gives up on an
 * answer without headers after 300 s and on one that rests for as long; here the clocks of the call decide, which are
 * wider for models that think and for machines at home. The limit for the connection itself (10 s) stays.
 */
const patient = {
  dispatch(options: object, handler: unknown): boolean {
    const carrier = currentDispatcher();
    if (!carrier) throw new Error("Node's fetch has no dispatcher.");
    return carrier.dispatch({ ...options, headersTimeout: 0, bodyTimeout: 0 }, handler);
  },
};

/**
 * fetch for everything that is asked of a vendor: the caller's signal is its only time limit once it is connected. A
 * redirection is refused: keys travel in headers that fetch would carry along to another host.
 */
export const vendorFetch: Fetch = async (input, init) => {
  // Only the first use of fetch makes the dispatcher; without one there is nothing to be patient with.
  if (!currentDispatcher()) void new Response();
  const own = { ...init, redirect: 'manual' as const };
  const response = await fetch(input, currentDispatcher() ? Object.assign(own, { dispatcher: patient }) : own);
  const target = response.status >= 300 && response.status < 400 ? response.headers.get('location') : null;
  if (target === null) return response;
  await response.body?.cancel();
  throw redirected(response.status, new URL(target, response.url || undefined));
};

function redirected(status: number, { origin }: URL): AppError {
  return new AppError('model', `The address redirects (${status}) to ${origin}; the request and its key stay here.`, {
    code: 'API_ERROR',
    class: 'bad_upstream',
    retryable: false,
    status,
    next: "If that is where the vendor is, set the provider's base URL to it.",
  });
}
