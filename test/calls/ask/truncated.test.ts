import { expect, it } from 'vitest';
import { continueTruncated } from '../../../src/calls/ask/ask.ts';
import type { ModelAnswer, ModelQuestion } from '../../../src/models/ask-model.ts';
import { candidate } from '../../models/scripted-model.ts';

it('an answer that was cut is gone on with by the prompt that it is of', async () => {
  const chosen = candidate({ provider: 'alpha', id: 'one', window: 100_000 });
  const asked: ModelQuestion[] = [];
  const answer = { text: 'half', finish: { kind: 'length' }, partial: false, model: chosen.model, candidate: chosen };
  const rest = { text: 's', usage: {}, citations: [], attempts: [], warnings: [], latencyMs: 1 };
  const ask = async (question: ModelQuestion) => {
    asked.push(question);
    return { ...answer, ...rest };
  };
  const messages = [{ role: 'user', section: 'turn', text: 'Why?' }];
  const promptFor = () => expect.fail('a prompt of its own would lose what was said so far');
  const question = {
    messages,
    candidates: [chosen],
    maxOutputTokens: 8_000,
    signal: AbortSignal.timeout(1_000),
    promptFor,
  };
  const whole = await continueTruncated(
    ask as never,
    question as never,
    { ...answer, ...rest, text: 'half' } as never as ModelAnswer,
    10,
  );
  expect(whole.text).toBe('halfs');
  expect(asked[0]).not.toHaveProperty('promptFor');
  expect(asked[0]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
});
