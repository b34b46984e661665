import { hash } from 'node:crypto';

declare const brand: unique symbol;
type Brand<Name extends string> = string & { readonly [brand]: Name };

/** UUIDv4 of a thread: the `continuation_id` that callers see. Never changes. */
export type ThreadId = Brand<'ThreadId'>;
/** UUIDv4 of one exchange: a question and, when it is done, its answer. */
export type ExchangeId = Brand<'ExchangeId'>;
/** UUIDv4 of a call that goes on without its caller: the `job_id` that callers see, the `taskId` of the Tasks extension. */
export type JobId = Brand<'JobId'>;
/** UUIDv4 of one call of a tool; correlates replies, events and logs. */
export type RequestId = Brand<'RequestId'>;
/** Lower-case hex SHA-256 of a text or of bytes; the key of a blob. */
export type Sha256 = Brand<'Sha256'>;

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export const isUuid = (text: string): boolean => uuidPattern.test(text);

/** An id as it was given out: without quotes, spaces and capitals; empty for a word that models write for no id. */
export const tidyId = (text: string): string =>
  (/^[\s"'`]*([^\s"'`]+|$)[\s"'`]*$/.exec(text)?.[1] ?? text).toLowerCase().replace(/^(null|none|undefined|new)$/, '');

export const isThreadId = (text: string): text is ThreadId => isUuid(text);

export const isExchangeId = (text: string): text is ExchangeId => isUuid(text);

export const isJobId = (text: string): text is JobId => isUuid(text);

export const isRequestId = (text: string): text is RequestId => isUuid(text);

export const isSha256 = (text: string): text is Sha256 => /^[0-9a-f]{64}$/.test(text);

function branded<Id extends string>(text: string, is: (text: string) => text is Id & string, what: string): Id {
  if (!is(text)) throw new TypeError(`not ${what}: ${text}`);
  return text;
}

export const threadId = (text: string): ThreadId => branded(text, isThreadId, 'a thread id');
export const exchangeId = (text: string): ExchangeId => branded(text, isExchangeId, 'an exchange id');
export const jobId = (text: string): JobId => branded(text, isJobId, 'a job id');
export const requestId = (text: string): RequestId => branded(text, isRequestId, 'a request id');
export const sha256 = (text: string): Sha256 => branded(text, isSha256, 'a SHA-256');

/** The SHA-256 of a text or of bytes. */
export const hashOf = (content: string | Uint8Array): Sha256 => sha256(hash('sha256', content));
