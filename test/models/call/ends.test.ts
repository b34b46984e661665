import { describe, expect, it } from 'vitest';
import { isTruncated } from '../../../src/calls/reply.ts';
import type { ModelQuestion } from '../../../src/models/ask-model.ts';
import { createAskModel } from '../../../src/models/call/call.ts';
import { manualClock } from '../../support/clock.ts';
import { seededRandom } from '../../support/random.ts';
import { apiError, candidate, finish, type Scripted, say, scriptedConnection, text } from '../scripted-model.ts';

const limits = { firstByteMs: 120_000, idleMs: 60_000, totalMs: 300_000 };

/** An end in a vendor's own word, as its package passes it on. */
const ending = (raw: string | undefined, unified: 'other' | 'stop' | 'length' = 'other'): Scripted => ({
  ...finish(),
  type: 'finish',
  finishReason: { unified, raw },
  usage: {
    inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  },
});

function asked(scripts: Parameters<typeof scriptedConnection>[0], more: Partial<ModelQuestion> = {}) {
  const { connection, calls } = scriptedConnection(scripts);
  const ask = createAskModel({
    connection: async () => connection,
    clock: { ...manualClock(), sleep: async () => {} },
    random: seededRandom(),
    emit: () => {},
    isLocal: () => false,
    limits,
  });
  const answer = ask({
    reqId: 'r',
    tool: 'chat',
    candidates: [candidate()],
    messages: [say('user', 'Why?')],
    maxOutputTokens: 100,
    signal: new AbortController().signal,
    ...more,
  });
  return { answer, calls };
}

describe('the end of an answer', () => {
  it.each([
    ['pause_turn', 'stop', 'other', true, /paused its search/],
    ['model_context_window_exceeded', 'length', 'length', true, /window of alpha-1 is full/],
    ['refusal', 'other', 'content_filter', true, /stopped the answer \(refusal\)/],
    ['sensitive', 'other', 'content_filter', true, /stopped the answer \(sensitive\)/],
    ['MODEL_ARMOR', 'other', 'content_filter', true, /stopped the answer \(MODEL_ARMOR\)/],
    ['end_turn', 'stop', 'stop', false, undefined],
    ['eos', 'other', 'stop', false, undefined],
    ['OTHER', 'other', 'other', false, /ended the answer \(OTHER\); it may not be whole/],
    ['max_tool_calls', 'other', 'other', false, /ended the answer \(max_tool_calls\)/],
    ['model_length', 'other', 'length', true, undefined],
    ['max_tokens', 'other', 'length', true, undefined],
  ] as const)('%s is told as what it is, with the text that came', async (raw, unified, kind, cut, remark) => {
    const { answer, calls } = asked([[text('As far as it went'), ending(raw, unified)]]);
    const given = await answer;
    expect(given).toMatchObject({ text: 'As far as it went', partial: false, finish: { kind, raw } });
    expect(given.warnings).toEqual(remark ? [expect.stringMatching(remark)] : []);
    expect(isTruncated(given)).toBe(cut);
    expect(calls).toHaveLength(1);
  });

  it.each([['error'], ['network_error'], ['insufficient_system_resource'], ['abort'], [''], [undefined]])(
    'is none where the vendor broke off: %s',
    async raw => {
      const { answer } = asked([
        [text('Half'), ending(raw)],
        [text('Whole.'), finish()],
      ]);
      expect(await answer).toMatchObject({ text: 'Whole.', partial: false });
    },
  );
});

describe('an answer without a text', () => {
  it.each([
    ['for a reason of its own', 'OTHER', 'bad_upstream'],
    ['because of a filter', 'LANGUAGE', 'content_filter'],
    ['because the window is full', 'model_context_window_exceeded', 'context_length'],
  ])('is not bought again where it ended %s', async (_name, raw, kind) => {
    const { answer, calls } = asked([[ending(raw)]]);
    await expect(answer).rejects.toMatchObject({
      message: expect.stringContaining(raw),
      details: { class: kind, retryable: false, next: expect.any(String) },
    });
    expect(calls).toHaveLength(1);
  });

  it('is an answer where the model has nothing to add to what its tools brought', async () => {
    const said = [{ type: 'call', id: 'c1', name: 'look', args: {} }] as const;
    const results = [{ id: 'c1', name: 'look', text: 'Nothing.' }];
    const { answer, calls } = asked([[ending('end_turn', 'stop')]], {
      messages: [say('user', 'Why?'), say('assistant', '', { said }), say('user', '', { results })],
      tools: [{ name: 'look', description: 'Looks.', inputSchema: { type: 'object' } }],
    });
    expect(await answer).toMatchObject({ text: '', finish: { kind: 'stop' } });
    expect(calls).toHaveLength(1);
  });

  it('is bought once more where nothing explains it, and at another provider where there is one', async () => {
    const twice = asked([[finish()]]);
    await expect(twice.answer).rejects.toMatchObject({ details: { class: 'bad_upstream' } });
    expect(twice.calls).toHaveLength(2);
    const other = asked([[finish()], [text('Here.'), finish()]], {
      candidates: [candidate(), candidate({ provider: 'beta', id: 'beta-1' })],
    });
    expect(await other.answer).toMatchObject({ text: 'Here.', model: { provider: 'beta' } });
    expect(other.calls).toHaveLength(2);
  });
});

describe('a prompt that is too long for the account', () => {
  const tooLarge = apiError(429, {
    error: {
      message:
        'Request too large for gpt-x in organization org-x on tokens per min (TPM): Limit 30000, Requested 37313.',
      type: 'tokens',
      code: 'rate_limit_exceeded',
    },
  });

  it('goes to another provider, whose limit is another, and to no other model of this one', async () => {
    const { answer, calls } = asked([{ refuse: tooLarge }, [text('Here.'), finish()]], {
      candidates: [
        candidate(),
        candidate({ id: 'alpha-2', window: 900_000 }),
        candidate({ provider: 'beta', id: 'beta-1' }),
      ],
    });
    expect(await answer).toMatchObject({ text: 'Here.', model: { id: 'beta-1' } });
    expect(calls).toHaveLength(2);
  });

  it('says which limit it was', async () => {
    await expect(asked([{ refuse: tooLarge }]).answer).rejects.toMatchObject({
      details: { class: 'context_length', retryable: false, next: expect.stringContaining('tokens per minute') },
    });
  });
});
