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
export const normalizeId = (text: string): string =>
  (/^[\s"'`]*([^\s"'`]+|$)[\s"'`]*$/.exec(text)?.[1] ?? text).toLowerCase().replace(/^(null|none|undefined|new)$/, '');

/** What tells the ids of one kind, and what makes one of a text or throws. */
function idsOf<Id extends string>(isSound: (text: string) => boolean, what: string) {
  const is = (text: string): text is Id & string => isSound(text);
  const of = (text: string): Id => {
    if (!is(text)) throw new TypeError(`not ${what}: ${text}`);
    return text;
  };
  return { is, of };
}

export const { is: isThreadId, of: threadId } = idsOf<ThreadId>(isUuid, 'a thread id');
export const { is: isExchangeId, of: exchangeId } = idsOf<ExchangeId>(isUuid, 'an exchange id');
export const { is: isJobId, of: jobId } = idsOf<JobId>(isUuid, 'a job id');
export const { is: isRequestId, of: requestId } = idsOf<RequestId>(isUuid, 'a request id');
export const { is: isSha256, of: sha256 } = idsOf<Sha256>(text => /^[0-9a-f]{64}$/.test(text), 'a SHA-256');

/** The SHA-256 of a text or of bytes. */
export const hashOf = (content: string | Uint8Array): Sha256 => sha256(hash('sha256', content));
