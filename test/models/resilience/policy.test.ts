import { describe, expect, it } from 'vitest';
import { AppError, type ErrorDetails } from '../../../src/core/errors.ts';
import type { SharedState } from '../../../src/core/ports.ts';
import type { CountedFault } from '../../../src/models/resilience/breaker-registry.ts';
import { toModelError } from '../../../src/models/resilience/errors.ts';
import { createResilience, createRetryBudget, othersAfter } from '../../../src/models/resilience/policy.ts';
import { manualClock } from '../../support/clock.ts';
import { createLocalState } from '../../support/local-state.ts';
import { seededRandom } from '../../support/random.ts';
import { apiError, candidate } from '../scripted-model.ts';

describe('who may still be asked after a failure', () => {
  const failed = candidate({ provider: 'alpha', id: 'one', window: 100 });
  const left = [
    candidate({ provider: 'alpha', id: 'sibling', window: 100 }),
    candidate({ provider: 'alpha', id: 'wide', window: 200 }),
    candidate({ provider: 'beta', id: 'other', window: 50 }),
  ];
  const others = ['other'];
  const all = ['sibling', 'wide', 'other'];
  it.each<[string, Partial<ErrorDetails>, string[]]>([
    ['content_filter', {}, []],
    ['context_length', {}, ['wide']],
    ['context_length', { data: { elsewhere: true } }, others],
    ['timeout', { retryable: true }, all],
    ['timeout', { retryable: false }, []],
    ['bad_request', {}, []],
    ['bad_request', { status: 400 }, []],
    ['bad_request', { status: 404 }, all],
    ['auth', {}, others],
    ['auth', { fault: { scope: 'key_model', lasting: true } }, all],
    ['balance', { fault: { scope: 'key', lasting: true } }, others],
    ['quota', {}, others],
    ['over_capacity', {}, []],
    ['bad_upstream', {}, all],
  ])('%s %o: %s', (kind, details, expected) => {
    const error = new AppError('model', 'no', { code: 'API_ERROR', class: kind, ...details });
    expect(othersAfter(error, failed, left).map(({ model }) => model.id)).toEqual(expected);
  });

  const said = (status: number, message: string, more: object = {}) =>
    apiError(status, { error: { message, ...more } });
  const serves = /^Check that \w+ serves glm-5 to this account/;
  const mayUse = /^Check at the provider what this account may use/;
  // As the vendors answer by their own pages, or by what users quote of them.
  it.each<[string, ReturnType<typeof apiError>, string[], RegExp]>([
    ['groq', said(400, 'The model `glm-5` has been decommissioned.', { code: 'model_decommissioned' }), all, serves],
    ['zhipu', said(400, 'Unknown Model, please check the model code.', { code: '1211' }), all, serves],
    ['openrouter', said(400, 'x/glm-5 is not a valid model ID'), all, serves],
    ['deepseek', said(400, 'Model Not Exist', { type: 'invalid_request_error' }), all, serves],
    [
      'zhipu',
      said(429, 'Your current subscription plan does not yet include access to GLM-5', { code: '1311' }),
      all,
      /key/,
    ],
    ['google', said(429, 'Quota exceeded for metric: x, limit: 0, model: glm-5\nPlease retry in 20s.'), all, /quota/],
    [
      'google',
      said(400, 'User location is not supported for the API use.', { status: 'FAILED_PRECONDITION' }),
      others,
      mayUse,
    ],
    ['google', said(400, 'Gemini API free tier is not available in your country.'), others, mayUse],
    [
      'openai',
      said(403, 'Country, region, or territory not supported', { code: 'unsupported_country_region_territory' }),
      others,
      mayUse,
    ],
    ['openai', said(400, 'Your organization must be verified to stream this model.', { param: 'stream' }), all, mayUse],
    ['anthropic', said(403, 'Request not allowed', { type: 'forbidden' }), others, mayUse],
    ['anthropic', said(400, 'Claude is not available for organizations with zero data retention.'), others, mayUse],
    ['openai', apiError(403, '<html><title>Just a moment...</title></html>'), others, /^Check the network, the proxy/],
    ['openai', said(400, 'Invalid model parameters: temperature'), [], /^Check that the provider supports/],
  ])('%s %s', (provider, failure, expected, next) => {
    const error = toModelError(failure, { provider, model: 'glm-5', now: 0, keyName: 'X_API_KEY' });
    expect(othersAfter(error, failed, left).map(({ model }) => model.id)).toEqual(expected);
    expect(error.details).toMatchObject({ next: expect.stringMatching(next), retryable: false });
    if (expected.length > 0) expect(error.details.fault).toBeDefined();
  });
});

describe('a model that is not asked', () => {
  const { model } = candidate({ provider: 'alpha', id: 'one' });
  const sibling = { ...model, id: 'sibling' };

  async function setUp(fault: CountedFault, times: number, keyName?: string, state?: SharedState) {
    const clock = manualClock();
    const limits = { total: 100, perProvider: () => 100, queue: 100 };
    const upstreams = [{ provider: 'alpha', endpoint: 'alpha.1', key: 'k' }];
    const parts = { clock, limits, upstreams, random: seededRandom(), emit: () => {}, keyName: () => keyName, state };
    const resilience = createResilience(parts);
    for (let n = 0; n < times; n++) {
      const permit = await resilience.admit(model, 1_000, 'r');
      if (permit instanceof AppError) throw permit;
      permit.failed(fault, true);
    }
    return { clock, resilience };
  }

  it.each<[CountedFault['scope'], string, number]>([
    ['model', 'alpha:one', 0],
    ['key_model', 'alpha:one', 0],
    ['account', 'alpha', 1],
    ['key', 'alpha', 1],
  ])('for a fault of its %s is named %s, with the wait', async (scope, name, siblings) => {
    const { clock, resilience } = await setUp({ scope, cause: 'rate_limit', lasting: false }, 5);
    await clock.advance(500);
    const error = resilience.blocked(model);
    expect(error?.message).toBe(`${name} is paused for 30 s: it failed 5 times in a row (rate_limit).`);
    expect(error?.details).toMatchObject({
      ...{ class: 'rate_limit', retryable: true, retryAfterSeconds: 30, fault: { scope, lasting: false } },
      next: 'Retry in 30 s, or choose a model from another provider.',
    });
    expect(await resilience.admit(model, 1_000, 'r')).toMatchObject({ message: error?.message });
    expect(resilience.blocked(sibling) === undefined).toBe(siblings === 0);
    expect(resilience.health()).toMatchObject([{ scope, state: 'open' }]);
  });

  it.each<[string | undefined, string]>([
    ['ALPHA_API_KEY', 'Set ALPHA_API_KEY to a valid key'],
    [undefined, 'Change the settings of alpha'],
  ])('because of its key %s is not asked again until that is known to work', async (keyName, next) => {
    const { resilience } = await setUp({ scope: 'key', cause: 'auth', lasting: true }, 1, keyName);
    expect(resilience.blocked(model)).toMatchObject({
      message: 'alpha is not asked: it refused the key.',
      details: { class: 'auth', retryable: false, fault: { lasting: true }, next: expect.stringContaining(next) },
    });
    await resilience.keyWorks('alpha');
    await resilience.settled();
    expect(resilience.blocked(model)).toBeUndefined();
  });

  it('is told to other processes, which learn of it', async () => {
    const store = createLocalState(manualClock());
    const change: SharedState['change'] = async (...given) => {
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
      return store.change(...given);
    };
    const fault = { scope: 'model', cause: 'rate_limit', lasting: false } as const;
    const { resilience } = await setUp(fault, 5, undefined, { ...store, change });
    await resilience.settled();
    const other = await setUp(fault, 0, undefined, store);
    expect(other.resilience.blocked(model)).toBeUndefined();
    await other.resilience.refresh();
    expect(other.resilience.blocked(model)).toBeDefined();
  });

  it('earns its retries by calls', async () => {
    const { resilience } = await setUp({ scope: 'key', cause: 'network', lasting: false }, 0);
    const retry = () => resilience.mayRetry(model);
    expect([retry(), retry(), retry(), retry()]).toEqual([true, true, true, false]);
    for (let call = 0; call < 40; call++) resilience.called(model);
    expect(retry()).toBe(true);
  });
});

it('forgets a retry exactly an hour later', () => {
  const budget = createRetryBudget();
  for (let retry = 0; retry < 3; retry++) expect(budget.take('alpha', 0)).toBe(true);
  expect([budget.take('alpha', 3_599_999), budget.take('alpha', 3_600_000)]).toEqual([false, true]);
});
