/** Why a request gets no further than the door. */
export interface Refusal {
  /** HTTP status. */
  status: 400 | 401 | 403 | 404 | 405 | 406 | 408 | 413 | 415 | 421 | 426 | 429 | 431 | 500 | 503;
  /** One word a program can switch on. */
  class: string;
  /** What was wrong, and what is allowed. */
  message: string;
  /** What to do now, as one sentence. */
  next: string;
  retryAfterSeconds?: number;
  /** What the status asks for beside, such as `Allow`. */
  headers?: Readonly<Record<string, string>>;
}

/** A refusal as every door writes it, with the headers that go along. */
export function refusalResponse(refusal: Refusal): Response {
  const { status, message, next, retryAfterSeconds } = refusal;
  const error = {
    class: refusal.class,
    message,
    next,
    ...(retryAfterSeconds !== undefined && { retry_after_s: retryAfterSeconds }),
  };
  const headers: Record<string, string> = {
    ...(status === 401 && { 'WWW-Authenticate': 'Bearer realm="polylogue"' }),
    ...(retryAfterSeconds !== undefined && { 'Retry-After': String(retryAfterSeconds) }),
    'Cache-Control': 'no-store',
    ...refusal.headers,
  };
  return Response.json({ status: 'error', error }, { status, headers });
}
