import type { LoggedCall } from '../../calls/durable/call-log.ts';
import { inputError } from '../../core/errors.ts';
import type { JobReply } from '../../core/job.ts';

/** A reply that did not arrive, and an end without one, are kept for this long. */
const keptMs = 600_000;

/** The record of a call that is over. */
export function ended(call: LoggedCall, now: number, reply?: JobReply): LoggedCall {
  const answered = reply && !reply.isError;
  return { ...call, status: answered ? 'done' : 'interrupted', ...(answered && { reply }), expiresAt: now + keptMs };
}

/** Says that nobody was asked again. */
export function replayed({ isError, document }: JobReply): JobReply {
  const { metadata } = document;
  const facts = typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata) ? metadata : {};
  return { isError, document: { ...document, metadata: { ...facts, replayed: true } } };
}

/** Why a call is refused that bears the name of another one. */
export function keyInUse(): Error {
  return inputError('This idempotencyKey was given to another call.', {
    class: 'idempotency_key',
    next: 'Give each call a key of its own, and send a call again with the very same arguments.',
    validationErrors: [{ field: '_meta.idempotencyKey', error: 'used for another call' }],
  });
}
