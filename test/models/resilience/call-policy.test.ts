import { describe, expect, it } from 'vitest';
import type { AppEvent } from '../../../src/core/events.ts';
import type { ModelQuestion } from '../../../src/models/ask-model.ts';
import { createAskModel } from '../../../src/models/call/call.ts';
import type { LimiterRules } from '../../../src/models/resilience/limiter.ts';
import { createResilience } from '../../../src/models/resilience/policy.ts';
import { manualClock } from '../../support/clock.ts';
import { seededRandom } from '../../support/random.ts';
import { apiError, candidate, finish, never, say, scriptedConnection, text } from '../scripted-model.ts';

const whole = [text('Hello'), finish()];
type Scripted = ReturnType<typeof scriptedConnection>;

function setUp(
  vendors: Record<string, Scripted>,
  { lastAnswer, ...rules }: Partial<LimiterRules> & { lastAnswer?: boolean } = {},
) {
  const clock = manualClock();
  const events: AppEvent[] = [];
  const emit = (event: AppEvent) => void events.push(event);
  const random = seededRandom();
  const limits = { total: 100, perProvider: () => 100, queue: 100, ...rules };
  const ask = createAskModel({
    connection: async id => vendors[id]!.connection,
    clock,
    random,
    emit,
    isLocal: () => false,
    limits: { firstByteMs: 120_000, idleMs: 60_000, totalMs: 300_000 },
    resilience: createResilience({ clock, random, emit, upstreams: [], limits }),
    lastAnswer,
  });
  const question: ModelQuestion = {
    reqId: 'r1',
    tool: 'chat',
    candidates: Object.keys(vendors).map(provider => candidate({ provider, id: `${provider}-1` })),
    messages: [say('user', 'hello')],
    maxOutputTokens: 1_000,
    signal: new AbortController().signal,
  };
  let calls = 0;
  const run = async (more: Partial<ModelQuestion> = {}) => {
    const asked = ask({ ...question, reqId: `r${++calls}`, ...more }).then(
      answer => ({ answer, error: undefined }),
      error => ({ answer: undefined, error }),
    );
    let settled = false;
    void asked.then(() => (settled = true));
    for (let step = 0; step < 1_000 && !settled; step++) await clock.advance(500);
    return asked;
  };
  const crumbs = () =>
    events.flatMap(event =>
      event.type === 'model.attempt' ? [`${event.model} ${event.outcome} → ${event.next}`] : [],
    );
  return { clock, events, ask, question, run, crumbs };
}

const down = () => scriptedConnection([{ refuse: apiError(503, 'down') }]);

describe('a call under the policy', () => {
  it('leaves a crumb for each attempt, with what comes next', async () => {
    const { run, crumbs, events } = setUp({ alpha: down(), beta: down(), gamma: scriptedConnection([whole]) });
    const { answer } = await run();
    expect(crumbs()).toEqual([
      'alpha-1 retry → retry',
      'alpha-1 failed → beta:beta-1',
      'beta-1 retry → retry',
      'beta-1 failed → gamma:gamma-1',
      'gamma-1 ok → none',
    ]);
    expect(events[0]).toMatchObject({
      reqId: 'r1',
      attempt: 1,
      tool: 'chat',
      provider: 'alpha',
      elapsedMs: expect.any(Number),
      class: 'bad_upstream',
      status: 503,
    });
    expect(answer?.warnings).toEqual([
      'alpha:alpha-1 gave no answer (bad_upstream); gamma:gamma-1 did.',
      'beta:beta-1 gave no answer (bad_upstream); gamma:gamma-1 did.',
    ]);
  });

  it('passes an open breaker by at once, and says so', async () => {
    const alpha = down();
    const { run, crumbs, clock } = setUp({ alpha, beta: scriptedConnection([whole]) });
    for (let call = 0; call < 3; call++) await run();
    const began = clock.monotonic();
    const { answer } = await run();
    expect(alpha.calls).toHaveLength(5);
    expect(clock.monotonic() - began).toBeLessThanOrEqual(500);
    expect(crumbs().slice(-2)).toEqual(['alpha-1 skipped → beta:beta-1', 'beta-1 ok → none']);
    expect(answer?.attempts.map(({ outcome }) => outcome)).toEqual(['skipped', 'ok']);
  });

  it('lets others through while the one that tries still gets its answer', async () => {
    const { promise: rest, resolve: end } = Promise.withResolvers<void>();
    const refused = Array.from({ length: 5 }, () => ({ refuse: apiError(503, 'down') }));
    const alpha = scriptedConnection([...refused, [text('Hel'), { wait: rest }, text('lo'), finish()], whole]);
    const { run, clock, ask, question } = setUp({ alpha });
    await run();
    await run();
    await clock.advance(60_000);
    const trial = ask({ ...question, reqId: 'trial' });
    await clock.advance(1_000);
    expect(alpha.calls).toHaveLength(6);
    expect((await run()).answer?.text).toBe('Hello');
    end();
    expect((await trial).text).toBe('Hello');
  });

  it('lets nobody through for an empty piece of the one that tries', async () => {
    const refused = Array.from({ length: 5 }, () => ({ refuse: apiError(503, 'down') }));
    const alpha = scriptedConnection([...refused, [text(''), { wait: never }], whole]);
    const { run, clock, ask, question } = setUp({ alpha });
    await run();
    await run();
    await clock.advance(60_000);
    const trial = ask({ ...question, reqId: 'trial' }).catch(() => undefined);
    await clock.advance(1_000);
    expect(alpha.calls).toHaveLength(6);
    void ask({ ...question, reqId: 'other' }).catch(() => undefined);
    await clock.advance(1_000);
    expect(alpha.calls).toHaveLength(6);
    await clock.advance(400_000);
    await trial;
  });

  it('stops trying again when the breaker opens meanwhile', async () => {
    const alpha = down();
    const { run } = setUp({ alpha });
    expect((await run()).error.details.attempt).toBe(3);
    expect((await run()).error.details).toMatchObject({ class: 'bad_upstream', status: 503 });
    const { error } = await run();
    expect(error).toMatchObject({
      kind: 'model',
      details: { class: 'bad_upstream', retryable: true, data: { breaker: 'open' } },
    });
    expect(error.details.retryAfterSeconds).toBeGreaterThan(25);
    expect(alpha.calls).toHaveLength(5);
  });

  it('stops trying again when the budget is used up, and goes to the next', async () => {
    const flaky = scriptedConnection(
      Array.from({ length: 12 }, (_, n) => (n % 2 === 0 ? { refuse: apiError(500) } : whole)),
    );
    const { run } = setUp({ alpha: flaky, beta: scriptedConnection([whole]) });
    const providers: string[] = [];
    for (let call = 0; call < 5; call++) providers.push((await run()).answer!.model.provider);
    expect(providers).toEqual(['alpha', 'alpha', 'alpha', 'beta', 'alpha']);
  });

  it('asks siblings of a model that the key may not use, and no other model with a key that is refused', async () => {
    const forbidden = () =>
      scriptedConnection([{ refuse: apiError(403, { error: { message: 'No access to this model.' } }) }, whole]);
    const alpha = forbidden();
    const candidates = [candidate(), candidate({ id: 'alpha-2' })];
    const { run } = setUp({ alpha });
    expect((await run({ candidates })).answer?.model.id).toBe('alpha-2');
    expect((await run({ candidates: [candidate()] })).error.details).toMatchObject({
      class: 'auth',
      retryable: false,
      data: { breaker: 'quarantined' },
    });
  });

  it('waits for a place within its total, and is told when there are too many', async () => {
    const hanging = scriptedConnection([[{ wait: never }]]);
    const { ask, question, clock } = setUp({ alpha: hanging }, { total: 1, queue: 1 });
    const ended = (asked: Promise<unknown>) => asked.catch(error => ({ error, at: clock.monotonic() }));
    const first = ended(ask(question));
    const second = ended(ask({ ...question, limits: { totalMs: 5_000 } }));
    await clock.advance(0);
    await expect(ask(question)).rejects.toMatchObject({
      kind: 'limit',
      details: { class: 'over_capacity', retryAfterSeconds: 1 },
    });
    await clock.advance(6_000);
    expect(await second).toMatchObject({
      at: 5_000,
      error: { details: { class: 'timeout', data: { clock: 'total' } } },
    });
    expect(hanging.calls).toHaveLength(1);
    await clock.advance(400_000);
    expect(await first).toHaveProperty('error');
    expect(clock.pending()).toBe(0);
  });

  it('starts the other clocks only when it runs', async () => {
    let release = () => {};
    const slow = scriptedConnection([[{ wait: new Promise<void>(resolve => (release = resolve)) }, ...whole], whole]);
    const { ask, question, clock } = setUp({ alpha: slow }, { total: 1 });
    const sent: string[] = [];
    const first = ask({ ...question, onSent: () => sent.push('first') });
    await clock.advance(0);
    const second = ask({ ...question, limits: { firstByteMs: 10_000 }, onSent: () => sent.push('second') });
    await clock.advance(100_000);
    expect(sent).toEqual(['first']);
    release();
    expect([(await first).text, (await second).text]).toEqual(['Hello', 'Hello']);
  });

  it('is heard while it waits, and leaves its place to others', async () => {
    const { ask, question, clock } = setUp({ alpha: scriptedConnection([[{ wait: never }]]) }, { total: 1 });
    const caller = new AbortController();
    void ask(question).catch(() => {});
    await clock.advance(0);
    let sent = 0;
    const waiting = ask({ ...question, signal: caller.signal, onSent: () => void sent++ });
    await clock.advance(0);
    caller.abort();
    await expect(waiting).rejects.toMatchObject({ kind: 'cancelled' });
    expect(sent).toBe(0);
  });
});

describe('the last link', () => {
  it('is a text of our own that says so, for a chat that no model answers', async () => {
    const passed: string[] = [];
    const { run } = setUp({ alpha: down() }, { lastAnswer: true });
    const { answer } = await run({ onText: delta => passed.push(delta) });
    expect(answer).toMatchObject({ partial: true, costUsd: 0, model: { provider: 'nobody' } });
    expect(answer?.text).toMatch(/^\[This is no answer of a model/);
    expect(answer?.text).toContain('alpha:alpha-1: bad_upstream');
    expect(passed).toEqual([answer?.text]);
  });

  it('is not there for other tools, for what the caller has to mend, and unless it was asked for', async () => {
    const tooLong = scriptedConnection([
      { refuse: apiError(400, { error: { message: 'x', code: 'context_length_exceeded' } }) },
    ]);
    expect((await setUp({ alpha: down() }, { lastAnswer: true }).run({ tool: 'debug' })).error).toBeDefined();
    expect((await setUp({ alpha: tooLong }, { lastAnswer: true }).run()).error.details.class).toBe('context_length');
    expect((await setUp({ alpha: down() }).run()).error).toBeDefined();
  });
});
