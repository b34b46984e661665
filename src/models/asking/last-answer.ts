import type { ModelInfo } from '../../core/model.ts';
import { noUsage } from '../../core/usage.ts';
import type { ModelAnswer } from '../ask-model.ts';
import type { Run } from '../call/call-run.ts';

/** Stands where an answer names its provider: nobody was reached. */
export const nobody: ModelInfo = {
  provider: 'nobody',
  id: 'no-model',
  name: 'No model answered',
  aliases: [],
  window: 1_000_000,
  maxOutput: 1_000,
  input: ['text'],
  efforts: [],
  reasoning: false,
  temperature: 'none',
  tools: false,
  price: { in: 0, out: 0 },
  score: 1,
  allowCodeGeneration: false,
  status: 'active',
};

/** What the caller has to mend himself is told as the error that it is. */
const callersOwn = new Set(['content_filter', 'context_length', 'bad_request', 'config', 'over_capacity']);

/** The last link of the chain: only for `chat`, only where the operator wants it, and only when vendors are at fault. */
export function givesLastAnswer({ parts, question, failures }: Run): boolean {
  const vendors = failures.every(({ details }) => !callersOwn.has(details.class));
  return parts.lastAnswer === true && question.tool === 'chat' && failures.length > 0 && vendors;
}

/** A text of our own that says what happened and what can be done. It claims to be nothing else. */
export function lastAnswer(run: Run): ModelAnswer {
  const { parts, question, failures, attempts, started } = run;
  const waits = failures.flatMap(({ details }) => details.retryAfterSeconds ?? []);
  const when = waits.length > 0 ? `in ${Math.ceil(Math.min(...waits))} s` : 'in a while';
  const asked = failures.map(({ details }) => `- ${details.provider}:${details.model}: ${details.class}`);
  const text = [
    '[This is no answer of a model: none could be reached. Polylogue wrote it itself, without any knowledge of the matter.]',
    `Asked without success:\n${asked.join('\n')}`,
    `The question is kept in this thread. Send it again ${when} with the same continuation_id, or name another model.`,
  ].join('\n\n');
  question.onText?.(text);
  return {
    text,
    model: nobody,
    candidate: { model: nobody, reason: 'the last link: no model could be reached' },
    usage: noUsage,
    costUsd: 0,
    finish: { kind: 'other', raw: 'no_model' },
    partial: true,
    citations: [],
    attempts,
    latencyMs: parts.clock.monotonic() - started,
    warnings: failures.map(({ message }) => message),
  };
}
