import { isAppError } from '../../core/errors.ts';
import type { Message } from '../../core/message.ts';
import { estimateTokens, tokenFactor, tokensPerMessage } from '../../core/tokens.ts';
import { addUsage } from '../../core/usage.ts';
import type { AskModel, ModelAnswer, ModelQuestion } from '../../models/ask-model.ts';

/** Less room than this is not worth another call. */
const leastTokens = 256;
const goOn =
  'Your answer was cut off at its limit. Go on exactly where it stopped, in the middle of the word if need be. Repeat nothing, add no preface.';

/**
 * An answer that the vendor cut at its limit, asked on once: the model sees what it wrote and goes on. What comes back is one
 * answer with the usage of both calls; `finish` tells whether it is still cut. When going on fails, the answer is what came first.
 */
export async function completeIfCut(
  ask: AskModel,
  question: ModelQuestion,
  answer: ModelAnswer,
  usedTokens: number,
): Promise<ModelAnswer> {
  if (answer.finish.kind !== 'length' || answer.partial || answer.text.trim() === '') return answer;
  const written = Math.ceil(estimateTokens(answer.text) * tokenFactor(answer.model.id));
  const room = answer.model.window - usedTokens - written - estimateTokens(goOn) - 2 * tokensPerMessage;
  const maxOutputTokens = Math.min(question.maxOutputTokens, room);
  if (maxOutputTokens < leastTokens) return answer;
  // The tail stays the last instruction that is no part of the conversation; what follows it is one more exchange.
  const messages: Message[] = [
    ...question.messages.map(message =>
      message.section === 'tail' ? { ...message, section: 'turn' as const } : message,
    ),
    { role: 'assistant', section: 'turn', parts: [{ type: 'text', text: answer.text }] },
    { role: 'user', section: 'turn', parts: [{ type: 'text', text: goOn }] },
  ];
  let rest: ModelAnswer;
  try {
    rest = await ask({ ...question, candidates: [answer.candidate], messages, maxOutputTokens });
  } catch (error) {
    // What came was paid for and is worth more than an error; only who cancelled wants nothing.
    if (question.signal.aborted || !isAppError(error)) throw error;
    const warning = `The answer was cut at its limit, and going on failed: ${error.message}`;
    return { ...answer, warnings: [...answer.warnings, warning] };
  }
  return {
    ...rest,
    text: answer.text + rest.text,
    usage: addUsage(answer.usage, rest.usage),
    costUsd: answer.costUsd === undefined ? rest.costUsd : answer.costUsd + (rest.costUsd ?? 0),
    citations: [...answer.citations, ...rest.citations],
    attempts: [...answer.attempts, ...rest.attempts],
    latencyMs: answer.latencyMs + rest.latencyMs,
    queuedMs: (answer.queuedMs ?? 0) + (rest.queuedMs ?? 0),
    warnings: [
      ...new Set([...answer.warnings, ...rest.warnings, 'The answer was cut at its limit and continued once.']),
    ],
  };
}
