import { describe, expect, it } from 'vitest';
import { AppError, cancelledError } from '../../../src/core/errors.ts';
import { textOf } from '../../../src/core/message.ts';
import type { ModelAnswer, ModelQuestion } from '../../../src/models/ask-model.ts';
import { createClassifier } from '../../../src/models/routing/classifier.ts';
import type { ModelRequest, RoutingPolicy } from '../../../src/models/routing/roster.ts';
import { realClock } from '../../support/clock.ts';
import { createLocalState } from '../../support/local-state.ts';
import { resolve } from '../routing-fixtures.ts';

const flash = expect.stringMatching(/^zhipu:glm-.*flash$/);

interface Surroundings {
  configured?: string[];
  policy?: Partial<RoutingPolicy>;
  mode?: 'rules' | 'model';
}

type Say = (question: ModelQuestion) => string | Error;

function setUp(say: Say, { configured = ['zhipu', 'openai'], policy = {}, mode }: Surroundings = {}) {
  const questions: ModelQuestion[] = [];
  const ask = async (question: ModelQuestion): Promise<ModelAnswer> => {
    questions.push(question);
    const said = say(question);
    if (said instanceof Error) throw said;
    const [candidate] = question.candidates;
    const usage = { input: 1, output: 1, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
    return {
      text: said,
      model: candidate!.model,
      candidate: candidate!,
      usage,
      finish: { kind: 'stop' },
      partial: false,
      citations: [],
      attempts: [],
      latencyMs: 1,
      warnings: [],
    };
  };
  const route = async ({ name, ...request }: ModelRequest) => resolve(name, { ...request, configured, policy });
  const classify = createClassifier({ ask, route, state: createLocalState(realClock()), ...(mode && { mode }) });
  const about = { reqId: 'r1', tool: 'chat', payer: { owner: 'ann' }, signal: new AbortController().signal };
  return { questions, classify: (text: string, signal = about.signal) => classify(text, { ...about, signal }) };
}

describe('a model that is asked what kind of question it is', () => {
  it('is GLM’s flash model, told the text as data, in three seconds, at the caller’s expense', async () => {
    const { classify, questions } = setUp(() => '{"class": "search"}');
    expect(await classify('What of the current plans?')).toEqual({ asked: flash, told: 'search' });
    expect(questions[0]).toMatchObject({
      payer: { owner: 'ann' },
      limits: { firstByteMs: 3_000, idleMs: 3_000, totalMs: 3_000 },
    });
    expect(JSON.parse(textOf(questions[0]!.messages[1]!))).toEqual({ text: 'What of the current plans?' });
  });

  it('is asked once for the same text', async () => {
    const { classify, questions } = setUp(() => 'Sure:\n```json\n{"class": "code"}\n```');
    expect((await classify('Same?'))?.told).toBe('code');
    expect(await classify('Same?')).toEqual({ told: 'code' });
    await classify('Another?');
    expect(questions).toHaveLength(2);
  });

  it.each([
    ['what is no class', '{"class": "explicit"}'],
    ['what is no JSON', 'search'],
    ['a plan of its own', '{"plan": {"prefers": ["openai"]}}'],
    ['two objects, the first unknown', '{"class": "root"} {"class": "search"}'],
    ['nothing', ''],
  ])('changes nothing by answering %s', async (_, said) => {
    const { classify } = setUp(() => said);
    expect(await classify('Well?')).toMatchObject({ failed: expect.any(String) });
    expect((await classify('Well?'))?.told).toBeUndefined();
  });

  it('passes on a class alone, whatever else stands beside it', async () => {
    const { classify } = setUp(() => '{"class": "chat", "prefers": ["anthropic"], "localOnly": false}');
    expect(await classify('Well?')).toEqual({ asked: flash, told: 'chat' });
  });

  it('is done without when it is down or late', async () => {
    const late = new AppError('model', 'The first byte took longer than 3 s.', { code: 'API_ERROR', class: 'timeout' });
    const { classify } = setUp(() => late);
    expect(await classify('Well?')).toEqual({ asked: flash, failed: late.message });
  });

  it('ends with the call that it was asked for', async () => {
    const { classify } = setUp(() => new Error('closed'));
    const gone = new AbortController();
    gone.abort(cancelledError('gone'));
    await expect(classify('Well?', gone.signal)).rejects.toMatchObject({ kind: 'cancelled' });
  });

  it('is nobody with AI_MANAGER=rules, and where nothing quick is configured', async () => {
    const byRules = setUp(() => '{"class": "code"}', { mode: 'rules' });
    expect(await byRules.classify('Well?')).toBeUndefined();
    const slow = setUp(() => '{"class": "code"}', { configured: ['xai'], policy: { allowed: { xai: ['grok-4.7'] } } });
    expect(await slow.classify('Well?')).toBeUndefined();
    expect([...byRules.questions, ...slow.questions]).toEqual([]);
  });

  it('sees the beginning of a long text alone', async () => {
    const { classify, questions } = setUp(() => '{"class": "chat"}');
    await classify('long '.repeat(10_000));
    expect(textOf(questions[0]!.messages[1]!).length).toBeLessThan(2_100);
  });
});
