import { textOf } from '../../core/message.ts';
import type { Citation } from '../../core/thread.ts';
import { estimateTokens, tokenFactor } from '../../core/tokens.ts';
import { costOf, type Usage } from '../../core/usage.ts';
import type { ModelAnswer, ModelQuestion } from '../ask-model.ts';
import type { Run, Try } from '../call/call-run.ts';

/** What the caller gets of the attempt that counts. */
export function answerOf(run: Run, last: Try): ModelAnswer {
  const { candidate, text, said, citations, error } = last;
  const { model } = candidate;
  const usage = last.usage ?? estimatedUsage(run, last);
  const warnings = new Set(last.warnings);
  if (!last.usage) warnings.add(`${model.provider} told no token counts; they are estimated.`);
  if (error) warnings.add(`The answer broke off: ${error.message}`);
  for (const { details } of run.failures) {
    if (details.provider === model.provider && details.model === model.id) continue;
    warnings.add(
      `${details.provider}:${details.model} gave no answer (${details.class}); ${model.provider}:${model.id} did.`,
    );
  }
  return {
    text,
    ...(said && !error && { said }),
    model,
    candidate,
    usage,
    // What the vendor says it charged is right, whatever the catalogue says.
    costUsd: last.costUsd ?? costOf(usage, model.price),
    finish: error ? { kind: 'other', raw: 'interrupted' } : (last.finish ?? { kind: 'other' }),
    partial: error !== undefined,
    citations: shownCitations(citations, run.question),
    ...(run.question.webSearch && { couldSearch: run.parts.searches?.(model) ?? false }),
    attempts: run.attempts,
    latencyMs: run.parts.clock.monotonic() - run.started,
    queuedMs: run.queuedMs,
    warnings: [...warnings],
    ...(last.told && { told: last.told }),
  };
}

/** What the model quoted comes first; of the rest as much as a search was to bring. */
function shownCitations(citations: readonly Citation[], { webSearch }: ModelQuestion): Citation[] {
  const quoted = citations.filter(({ snippet }) => snippet !== undefined);
  const others = citations.filter(({ snippet }) => snippet === undefined);
  return [...quoted, ...others].slice(0, webSearch?.maxResults ?? citations.length);
}

/** Better than nothing for caps and sums when a stream broke or a server does not count. */
function estimatedUsage(run: Run, last: Try): Usage {
  const factor = tokenFactor(last.candidate.model.id);
  const input = run.question.messages.reduce((sum, message) => sum + estimateTokens(textOf(message), factor), 0);
  const reasoning = Math.ceil(last.reasoningChars / 4);
  const called = Math.ceil(last.callChars / 4);
  return {
    input,
    output: estimateTokens(last.text, factor) + reasoning + called,
    reasoning,
    cacheRead: 0,
    cacheWrite: 0,
    ...(last.fees && { fees: last.fees }),
  };
}
