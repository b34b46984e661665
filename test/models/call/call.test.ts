import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { AppEvent } from '../../../src/core/events.ts';
import type { ModelQuestion } from '../../../src/models/ask-model.ts';
import { createAskModel } from '../../../src/models/call/call.ts';
import type { Connection } from '../../../src/models/provider.ts';
import { manualClock } from '../../support/clock.ts';
import { ownTime } from '../../support/own-time.ts';
import { seededRandom } from '../../support/random.ts';
import { apiError, candidate, finish, never, say, scriptedConnection, text } from '../scripted-model.ts';

const limits = { firstByteMs: 120_000, idleMs: 60_000, totalMs: 300_000 };

type Scripted = ReturnType<typeof scriptedConnection>;

function setUp(vendors: Record<string, Scripted | Error>, local: string[] = []) {
  const clock = manualClock();
  const events: AppEvent[] = [];
  const ask = createAskModel({
    connection: async (id): Promise<Connection> => {
      const vendor = vendors[id];
      if (!vendor || vendor instanceof Error) throw vendor ?? new Error(`no ${id}`);
      return vendor.connection;
    },
    clock,
    random: seededRandom(),
    emit: event => events.push(event),
    isLocal: id => local.includes(id),
    limits,
    keyName: id => `${id.toUpperCase()}_KEY`,
  });
  const caller = new AbortController();
  const question: ModelQuestion = {
    reqId: 'r1',
    tool: 'chat',
    candidates: Object.keys(vendors).map(provider => candidate({ provider, id: `${provider}-1` })),
    messages: [say('user', 'hello')],
    maxOutputTokens: 1000,
    signal: caller.signal,
  };
  /** Asks, and moves the clock until the answer is there. */
  const run = async (more: Partial<ModelQuestion> = {}, stepMs = 1000) => {
    const asked = ask({ ...question, ...more }).then(
      answer => ({ answer, error: undefined }),
      error => ({ answer: undefined, error }),
    );
    let settled = false;
    void asked.then(() => (settled = true));
    for (let step = 0; step < 5000 && !settled; step++) await clock.advance(stepMs);
    return { ...(await asked), events, elapsed: clock.monotonic() };
  };
  return { run, ask, question, caller, clock, events };
}

const whole = [text('Hello '), text('there'), finish()];

describe('askModel', () => {
  it('asks nobody before its question is ready, and rejects with what keeps it from that', async () => {
    const [alpha, beta] = [scriptedConnection([whole]), scriptedConnection([whole])];
    const { ask, question } = setUp({ alpha, beta });
    const { promise, resolve } = Promise.withResolvers<void>();
    const asked = ask({ ...question, ready: promise });
    await new Promise(resolve => setTimeout(resolve, 20));
    expect(alpha.calls).toEqual([]);
    resolve();
    expect((await asked).text).toBe('Hello there');
    await expect(ask({ ...question, ready: Promise.reject(new Error('full')) })).rejects.toThrow('full');
    expect([alpha.calls.length, beta.calls.length]).toEqual([1, 0]);
  });

  it('sends as many images as the vendor takes, and says how many it left out', async () => {
    const one = { max: 1, bytes: 1_000, allBytes: 1_000 };
    const vendor = scriptedConnection([whole], { imageLimits: () => one });
    const image = { type: 'image', mediaType: 'image/png', data: new Uint8Array(6) } as const;
    const seeing = candidate({ provider: 'alpha', input: ['text', 'image'] });
    const messages = [say('user', 'hello'), { role: 'user', section: 'turn', parts: [image, image] } as const].map(
      message => ({ ...message, parts: [...message.parts] }),
    );
    const { answer } = await setUp({ alpha: vendor }).run({ candidates: [seeing], messages });
    const sent = vendor.calls[0]?.prompt.flatMap(({ content }) => Array.from<{ type?: string } | string>(content));
    const kinds = sent?.map(part => (typeof part === 'string' ? part : part.type));
    expect(kinds).toEqual(['text', 'text', 'file']);
    expect(answer?.warnings).toEqual([expect.stringMatching(/^Older images left out: 1\. alpha:.* takes 1 in/)]);
  });

  it('gives text, usage, finish, citations and cost of the first answer', async () => {
    const vendor = scriptedConnection([
      [
        { type: 'stream-start', warnings: [{ type: 'unsupported', feature: 'seed' }] },
        { type: 'reasoning-delta', id: '1', delta: 'hm' },
        { type: 'source', sourceType: 'url', id: 's', url: 'https://a.test', title: 'A' },
        { type: 'source', sourceType: 'url', id: 't', url: 'https://a.test' },
        ...whole,
      ],
    ]);
    const { answer, events } = await setUp({ alpha: vendor }).run({
      candidates: [candidate({ price: { in: 10, out: 100, cacheRead: 1 } })],
    });
    expect(answer).toMatchObject({
      text: 'Hello there',
      usage: { input: 100, output: 20, reasoning: 5, cacheRead: 30, cacheWrite: 10 },
      finish: { kind: 'stop', raw: 'stop' },
      partial: false,
      citations: [{ title: 'A', url: 'https://a.test', provider: 'alpha' }],
      warnings: ['alpha: seed is not supported'],
      attempts: [{ provider: 'alpha', model: 'alpha-1', outcome: 'ok' }],
    });
    expect(answer?.costUsd).toBeCloseTo((60 * 10 + 30 * 1 + 10 * 10 + 20 * 100) / 1e6);
    expect(events).toEqual([
      expect.objectContaining({ type: 'model.attempt', reqId: 'r1', attempt: 1, outcome: 'ok', usage: answer?.usage }),
    ]);
  });

  it('passes parameters on, with at most the output that the model has', async () => {
    const vendor = scriptedConnection([whole], {
      providerOptions: params => ({ alpha: { effort: params.effort ?? '', key: params.cacheKey ?? '' } }),
    });
    await setUp({ alpha: vendor }).run({
      candidates: [candidate({}, { effort: 'high' })],
      maxOutputTokens: 1e9,
      temperature: 0.3,
      cacheKey: 'thread',
    });
    expect(vendor.calls[0]).toMatchObject({
      maxOutputTokens: 8000,
      temperature: 0.3,
      providerOptions: { alpha: { effort: 'high', key: 'thread' } },
    });
  });

  it('leaves out a temperature that the model refuses, and says so', async () => {
    const vendor = scriptedConnection([whole]);
    const { answer } = await setUp({ alpha: vendor }).run({
      candidates: [candidate({ temperature: 'none' })],
      temperature: 0.3,
    });
    expect(vendor.calls[0]!.temperature).toBeUndefined();
    expect(answer?.warnings).toEqual([expect.stringContaining('temperature')]);
  });

  it('tries three times with pauses, then gives the error of the vendor', async () => {
    const vendor = scriptedConnection([{ refuse: apiError(503, 'down') }]);
    const { error, events } = await setUp({ alpha: vendor }).run();
    expect(error).toMatchObject({
      kind: 'model',
      details: { class: 'bad_upstream', status: 503, attempt: 3, retryable: true },
    });
    expect(events.map(event => event.type === 'model.attempt' && event.outcome)).toEqual(['retry', 'retry', 'failed']);
    expect(events[0]).toMatchObject({ class: 'bad_upstream', status: 503, nextInMs: expect.any(Number) });
    expect(vendor.calls).toHaveLength(3);
  });

  it('does not try again what will fail again', async () => {
    const vendor = scriptedConnection([{ refuse: apiError(401) }]);
    const { error } = await setUp({ alpha: vendor }).run();
    expect(error.details).toMatchObject({ class: 'auth', next: expect.stringContaining('ALPHA_KEY') });
    expect(vendor.calls).toHaveLength(1);
  });

  it('waits as long as the vendor asks', async () => {
    const vendor = scriptedConnection([{ refuse: apiError(429, '', { 'retry-after': '30' }) }, whole]);
    const { answer, elapsed } = await setUp({ alpha: vendor }).run();
    expect(answer?.text).toBe('Hello there');
    expect(elapsed).toBeGreaterThanOrEqual(30_000);
  });

  it('fails at once when the vendor asks for more than is left', async () => {
    const vendor = scriptedConnection([{ refuse: apiError(429, '', { 'retry-after': '301' }) }]);
    const { error, elapsed } = await setUp({ alpha: vendor }).run();
    expect(error.details).toMatchObject({ class: 'rate_limit', retryAfterSeconds: 301 });
    expect(elapsed).toBeLessThan(2000);
  });

  it.each([
    ['an empty answer', [finish()]],
    ['white space', [text(' \n'), finish()]],
    ['an end without a finish', [text('Hel')]],
    ['an interrupted finish', [text('Hel'), finish('interrupted')]],
    ['an error part', [text('Hel'), { type: 'error', error: { type: 'overloaded_error', message: 'x' } }]],
    ['a broken stream', [text('Hel'), { fail: Object.assign(new Error('x'), { code: 'ECONNRESET' }) }]],
    ['a stream without anything', []],
  ] as const)('asks again after %s', async (_name, script) => {
    const { answer } = await setUp({ alpha: scriptedConnection([[...script], whole]) }).run();
    expect(answer).toMatchObject({ text: 'Hello there', partial: false });
    expect(answer?.attempts.map(({ outcome }) => outcome)).toEqual(['retry', 'ok']);
  });

  it('closes the connection of an attempt that broke, and leaves that of a whole answer for the next call', async () => {
    const vendor = scriptedConnection([
      [{ type: 'error', error: { type: 'overloaded_error', message: 'x' } }, { wait: never }],
      whole,
    ]);
    await setUp({ alpha: vendor }).run();
    expect(vendor.calls.map(({ abortSignal }) => abortSignal?.aborted)).toEqual([true, false]);
  });

  it('leaves nothing behind on the signal of its caller', async () => {
    const caller = new AbortController();
    await setUp({ alpha: scriptedConnection([[], whole]) }).run({ signal: caller.signal });
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
  });

  it('answers with the longest broken text when nothing better came', async () => {
    const vendor = scriptedConnection([[text('Hel')], [text('Hello')], []]);
    const { answer } = await setUp({ alpha: vendor }).run();
    expect(answer).toMatchObject({ text: 'Hello', partial: true, finish: { kind: 'other', raw: 'interrupted' } });
    expect(answer?.warnings.join()).toMatch(/broke off/);
    expect(answer?.usage.input).toBeGreaterThan(0);
  });

  it('never tries again once text was passed on: what came is the answer', async () => {
    const passed: string[] = [];
    const alpha = scriptedConnection([[text('Hel'), text('lo')], whole]);
    const beta = scriptedConnection([whole]);
    const { answer } = await setUp({ alpha, beta }).run({ onText: delta => passed.push(delta) });
    expect(passed.join('')).toBe('Hello');
    expect(answer).toMatchObject({ text: 'Hello', partial: true });
    expect(alpha.calls.length + beta.calls.length).toBe(1);
  });

  it('holds leading white space back, so that a blank answer can be asked for again', async () => {
    const passed: string[] = [];
    const vendor = scriptedConnection([
      [text(' '), finish()],
      [text('\n'), text('Hi'), finish()],
    ]);
    const { answer } = await setUp({ alpha: vendor }).run({ onText: delta => passed.push(delta) });
    expect(passed).toEqual(['\nHi']);
    expect(answer?.text).toBe('\nHi');
  });

  it('names CALL_TIMEOUT_SECONDS only where that was the limit', async () => {
    const vendors = [scriptedConnection([[{ wait: never }]]), scriptedConnection([[{ wait: never }]])];
    const clock = manualClock();
    const wide = { firstByteMs: 40_000, idleMs: 40_000, totalMs: 60_000 };
    const ask = createAskModel({
      connection: async id => vendors[id === 'alpha' ? 0 : 1]!.connection,
      ...{ clock, random: seededRandom(), emit: () => undefined, isLocal: () => false },
      limits: { ...limits, totalMs: 10_000, exact: true },
      limitsOf: ({ provider }) => (provider === 'alpha' ? wide : undefined),
    });
    const { question } = setUp({ alpha: vendors[0]!, beta: vendors[1]! });
    const [both, alone] = [question.candidates, question.candidates.slice(1)].map(candidates =>
      ask({ ...question, candidates }).catch((error: Error) => error.message),
    );
    for (let second = 0; second < 70; second++) await clock.advance(1_000);
    expect(await alone).toContain('10 s in all (CALL_TIMEOUT_SECONDS)');
    expect(await both).toContain('60 s in all (total limit)');
  });

  it('passes a long answer on in time that grows with its length', async () => {
    const pieces = 40_000;
    const vendor = scriptedConnection([[...Array.from({ length: pieces }, () => text('some words ')), finish()]]);
    const before = ownTime();
    const { answer } = await setUp({ alpha: vendor }).run({ onText: () => undefined });
    expect(answer?.text.length).toBe(pieces * 11);
    expect(ownTime() - before).toBeLessThan(2_000);
  });

  it('does not ask again for an answer that was all thinking, or was filtered', async () => {
    const length = scriptedConnection([[{ type: 'reasoning-delta', id: '1', delta: 'hm' }, finish('length')]]);
    expect((await setUp({ alpha: length }).run()).error.details).toMatchObject({
      class: 'bad_upstream',
      retryable: false,
    });
    const filtered = scriptedConnection([[finish('content-filter')]]);
    expect((await setUp({ alpha: filtered }).run()).error.details).toMatchObject({
      class: 'content_filter',
      retryable: false,
    });
    expect(length.calls.length + filtered.calls.length).toBe(2);
  });

  it('stops an answer without an end, and keeps what came', async () => {
    const endless = scriptedConnection([Array.from({ length: 200 }, () => text('x'.repeat(10_000)))]);
    const { answer } = await setUp({ alpha: endless }).run();
    expect(answer?.partial).toBe(true);
    expect(answer?.text.length).toBeLessThan(1_100_000);
    expect(answer?.warnings.join()).toContain('did not end');
    expect(endless.calls).toHaveLength(1);
  });

  it('keeps no more of one huge piece than an answer may have', async () => {
    const huge = scriptedConnection([[text('x'.repeat(3_000_000))]]);
    const { answer } = await setUp({ alpha: huge }).run();
    expect(answer?.partial).toBe(true);
    expect(answer?.text.length).toBeLessThan(1_100_000);
  });

  it('keeps a filtered or cut answer that has text', async () => {
    const { answer } = await setUp({ alpha: scriptedConnection([[text('Hel'), finish('length')]]) }).run();
    expect(answer).toMatchObject({ text: 'Hel', partial: false, finish: { kind: 'length' } });
  });
});

describe('the candidates', () => {
  it('are asked in order; a later one only when an earlier one failed for good', async () => {
    const alpha = scriptedConnection([{ refuse: apiError(500) }]);
    const beta = scriptedConnection([whole]);
    const { answer } = await setUp({ alpha, beta }).run();
    expect(answer?.candidate.model.provider).toBe('beta');
    expect(answer?.attempts.map(({ provider, outcome }) => `${provider} ${outcome}`)).toEqual([
      'alpha retry',
      'alpha failed',
      'beta ok',
    ]);
  });

  it.each([
    ['auth', apiError(401), true],
    ['a model that the vendor does not have', apiError(404), true],
    ['a request that it calls malformed', apiError(400), false],
    ['refused content', apiError(400, { error: { message: 'x', code: 'content_filter' } }), false],
  ])('after %s', async (_name, refuse, next) => {
    const beta = scriptedConnection([whole]);
    const { answer } = await setUp({ alpha: scriptedConnection([{ refuse }]), beta }).run();
    expect(answer !== undefined).toBe(next);
    expect(beta.calls).toHaveLength(next ? 1 : 0);
  });

  it('get a prompt that was too long only with a wider window', async () => {
    const refuse = apiError(400, { error: { message: 'x', code: 'context_length_exceeded' } });
    const beta = scriptedConnection([whole]);
    const gamma = scriptedConnection([whole]);
    const { answer } = await setUp({ alpha: scriptedConnection([{ refuse }]), beta, gamma }).run({
      candidates: [candidate(), candidate({ provider: 'beta' }), candidate({ provider: 'gamma', window: 200_000 })],
    });
    expect(answer?.candidate.model.provider).toBe('gamma');
    expect(beta.calls).toHaveLength(0);
  });

  it('include those whose provider is not set up: they fail and the next is asked', async () => {
    const { answer } = await setUp({ alpha: new Error('not set up'), beta: scriptedConnection([whole]) }).run();
    expect(answer?.candidate.model.provider).toBe('beta');
  });

  it('are all named when all failed', async () => {
    const failing = () => scriptedConnection([{ refuse: apiError(429, 'slow down', { 'retry-after': '20' }) }]);
    const { error } = await setUp({ alpha: failing(), beta: failing() }).run();
    expect(error.details).toMatchObject({ class: 'exhausted_fallback_chain', retryable: true, retryAfterSeconds: 20 });
    expect(error.message).toMatch(/alpha:alpha-1 \(rate_limit\).*beta:beta-1 \(rate_limit\)/);
    expect(error.details.data.attempts.length).toBeGreaterThanOrEqual(2);
  });

  it('leave out other models of a provider that refused the key', async () => {
    const refusing = scriptedConnection([{ refuse: apiError(401, 'bad key') }]);
    const { run } = setUp({ alpha: refusing, beta: scriptedConnection([whole]) });
    const candidates = [candidate(), candidate({ id: 'alpha-2' }), candidate({ provider: 'beta', id: 'beta-1' })];
    const { answer } = await run({ candidates });
    expect(answer?.model.provider).toBe('beta');
    expect(refusing.calls).toHaveLength(1);
  });

  it('do not wait for a long pause of one vendor while another is left', async () => {
    const alpha = scriptedConnection([{ refuse: apiError(429, '', { 'retry-after': '60' }) }]);
    const { answer, elapsed } = await setUp({ alpha, beta: scriptedConnection([whole]) }).run();
    expect(answer?.candidate.model.provider).toBe('beta');
    expect(elapsed).toBeLessThan(5000);
  });

  it('are left at once for the next when one hangs', async () => {
    const alpha = scriptedConnection([[{ wait: never }]]);
    const { answer, elapsed } = await setUp({ alpha, beta: scriptedConnection([whole]) }).run();
    expect(answer?.candidate.model.provider).toBe('beta');
    expect(elapsed).toBeLessThan(125_000);
    expect(alpha.calls[0]!.abortSignal?.aborted).toBe(true);
  });
});

describe('the clocks of a call', () => {
  it('end it at the total, however often it is tried', async () => {
    const { error, elapsed } = await setUp({ alpha: scriptedConnection([[{ wait: never }]]) }).run();
    expect(error.details).toMatchObject({ class: 'timeout', data: { clock: 'total' } });
    expect(elapsed).toBeLessThanOrEqual(302_000);
  });

  it('are wider for reasoning models and local endpoints, unless no thinking is asked for', async () => {
    const hang = () => ({ alpha: scriptedConnection([[{ wait: never }]]) });
    const first = async (vendors: Record<string, Scripted>, more: Partial<ModelQuestion>, local: string[] = []) => {
      const { events } = await setUp(vendors, local).run(more, 5000);
      const event = events[0];
      return event?.type === 'model.attempt' ? Math.round(event.elapsedMs / 1000) : 0;
    };
    expect(await first(hang(), { candidates: [candidate({ reasoning: true })] })).toBe(480);
    expect(await first(hang(), { candidates: [candidate({ reasoning: true }, { effort: 'none' })] })).toBe(120);
    expect(await first(hang(), {}, ['alpha'])).toBe(1200);
    expect(await first(hang(), { limits: { firstByteMs: 7000 } })).toBe(7);
  });

  it('keep what came before the answer stalled', async () => {
    const { answer } = await setUp({ alpha: scriptedConnection([[text('Half of it'), { wait: never }]]) }).run();
    expect(answer).toMatchObject({ text: 'Half of it', partial: true });
  });

  it('do not spoil a finished answer whose stream stays open', async () => {
    const { answer, elapsed } = await setUp({ alpha: scriptedConnection([[...whole, { wait: never }]]) }).run();
    expect(answer).toMatchObject({ text: 'Hello there', partial: false });
    expect(elapsed).toBeLessThan(5000);
  });
});

describe('a caller that gives up', () => {
  it('gets a cancelled error at once, and the vendor learns of it', async () => {
    const vendor = scriptedConnection([[text('Half of it'), { wait: never }]]);
    const { ask, question, caller, events, clock } = setUp({ alpha: vendor, beta: scriptedConnection([whole]) });
    const asked = ask(question);
    await clock.advance(10);
    caller.abort();
    await expect(asked).rejects.toMatchObject({ kind: 'cancelled', details: { code: 'CANCELLED' } });
    expect(vendor.calls[0]!.abortSignal?.aborted).toBe(true);
    expect(events.at(-1)).toMatchObject({ outcome: 'cancelled' });
    expect(clock.pending()).toBe(0);
  });

  it('is heard during a pause between attempts', async () => {
    const { ask, question, caller, clock } = setUp({
      alpha: scriptedConnection([{ refuse: apiError(429, '', { 'retry-after': '40' }) }]),
    });
    const asked = ask(question);
    await clock.advance(10);
    caller.abort();
    await expect(asked).rejects.toMatchObject({ kind: 'cancelled' });
    expect(clock.pending()).toBe(0);
  });

  it('is heard before anything is asked', async () => {
    const vendor = scriptedConnection([whole]);
    const { ask, question, caller } = setUp({ alpha: vendor });
    caller.abort();
    await expect(ask(question)).rejects.toMatchObject({ kind: 'cancelled' });
    expect(vendor.calls).toHaveLength(0);
  });

  it('does not wait for an adapter that is deaf', async () => {
    const deaf = scriptedConnection([whole], {
      languageModel: () => ({
        ...deaf.connection,
        specificationVersion: 'v4',
        provider: 'x',
        modelId: 'x',
        supportedUrls: {},
        doGenerate: () => never,
        doStream: () => never,
      }),
    });
    const { ask, question, caller, clock } = setUp({ alpha: deaf });
    const asked = ask(question);
    await clock.advance(10);
    caller.abort();
    await expect(asked).rejects.toMatchObject({ kind: 'cancelled' });
  });
});
