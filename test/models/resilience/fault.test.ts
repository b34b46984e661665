import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/errors.ts';
import { type AttemptCourse, faultOf, toModelError } from '../../../src/models/resilience/errors.ts';
import { apiError } from '../scripted-model.ts';

const origin = { provider: 'alpha', model: 'alpha-1', now: 0 };
const course: AttemptCourse = {
  limits: { firstByteMs: 120_000, idleMs: 60_000, totalMs: 300_000 },
  elapsedMs: 1_000,
  progressed: false,
};
const network = (code: string) =>
  Object.assign(new Error('fetch failed'), { cause: Object.assign(new Error('x'), { code }) });
const faultFor = (failure: unknown) => faultOf(toModelError(failure, origin), course);

describe('what a failure tells of the vendor', () => {
  it.each([
    ['a refused connection', network('ECONNREFUSED'), 'key', false],
    ['a name that nobody knows', network('ENOTFOUND'), 'key', false],
    ['a certificate that is not trusted', network('CERT_HAS_EXPIRED'), 'key', false],
    ['a connection that is not opened in time', network('UND_ERR_CONNECT_TIMEOUT'), 'key', false],
    ['a reset in the middle', network('ECONNRESET'), 'model', false],
    ['headers that do not come', network('UND_ERR_HEADERS_TIMEOUT'), 'model', false],
    ['a 401', apiError(401, 'no'), 'key', true],
    ['a bad key that answers 400', apiError(400, { error: { message: 'API key not valid.' } }), 'key', true],
    ['a 403', apiError(403, { error: { message: 'This key is blocked.' } }), 'key', true],
    ['a 403 for one model', apiError(403, { error: { message: 'No access to model alpha-1.' } }), 'key_model', true],
    ['a 403 that is the page of a proxy', apiError(403, '<html>Blocked here</html>'), 'key', false],
    ['a 402', apiError(402, { error: { message: 'Pay.' } }), 'key', false],
    ['a spent quota', apiError(429, { error: { message: 'x', code: 'insufficient_quota' } }), 'account', false],
    ['a 429', apiError(429, { error: { message: 'Slow down.' } }), 'key_model', false],
    [
      'a 429 of the account',
      apiError(429, { error: { message: 'Your organization made too many requests.' } }),
      'account',
      false,
    ],
    [
      'a 429 that names both',
      apiError(429, { error: { message: 'Rate limit for alpha-1 in organization o.' } }),
      'key_model',
      false,
    ],
    ['a 500', apiError(500), 'model', false],
    ['a 504', apiError(504), 'model', false],
    ['a 500 that is not to be tried again', apiError(500, '', { 'X-Should-Retry': 'false' }), 'model', false],
    ['an overload', apiError(529, { error: { type: 'overloaded_error' } }), 'model', false],
  ])('%s', (_name, failure, scope, lasting) => {
    expect(faultFor(failure)).toEqual({ scope, lasting });
  });

  it.each([
    ['no file left here for a connection', network('EMFILE')],
    ['a malformed request', apiError(400, { error: { message: 'x', type: 'invalid_request_error' } })],
    ['a model that is not there', apiError(404, { error: { message: 'x' } })],
    ['a prompt that is too long', apiError(400, { error: { message: 'x', code: 'context_length_exceeded' } })],
    ['refused content', apiError(400, { error: { message: 'x', code: 'content_filter' } })],
  ])('nothing: %s', (_name, failure) => {
    expect(faultFor(failure)).toBeUndefined();
  });
});

it.each([
  [true, { scope: 'model', lasting: false }],
  [false, undefined],
])('an answer that we could not use and may ask for again (%s) is a fault: %o', (retryable, fault) => {
  const error = new AppError('model', 'odd', { code: 'API_ERROR', class: 'bad_upstream', retryable });
  expect(faultOf(error, course)).toEqual(fault);
});

describe('a limit of our own', () => {
  const late = (clock: string, retryable = true) =>
    new AppError('model', 'late', { code: 'API_ERROR', class: 'timeout', retryable, data: { clock } });

  it('is the vendor to blame for when nothing came', () => {
    expect(faultOf(late('first_byte'), course)).toEqual({ scope: 'model', lasting: false });
    expect(faultOf(late('idle'), course)).toEqual({ scope: 'model', lasting: false });
  });

  it('is not, when the caller set it for this call', () => {
    expect(faultOf(late('first_byte'), { ...course, own: { firstByteMs: 3_000 } })).toBeUndefined();
    expect(faultOf(late('idle'), { ...course, own: { idleMs: 3_000 } })).toBeUndefined();
    expect(faultOf(late('total', false), { ...course, elapsedMs: 300_000, own: { totalMs: 300_000 } })).toBeUndefined();
  });

  it('counts for the total only after a long silence', () => {
    expect(faultOf(late('total', false), { ...course, elapsedMs: 149_000 })).toBeUndefined();
    expect(faultOf(late('total', false), { ...course, elapsedMs: 150_000 })).toBeDefined();
    expect(faultOf(late('total', false), { ...course, elapsedMs: 150_000, progressed: true })).toBeUndefined();
  });
});
