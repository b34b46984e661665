import { errorOf, localMetadata } from '../../calls/reply.ts';
import type { JsonObject } from '../../core/json.ts';
import { nameOf } from '../modes/ask-many/ask-each.ts';
import { costOf } from '../modes/ask-many/voice.ts';
import { usageDocument } from '../spend/usage-document.ts';
import type { Fan, Response } from './fan.ts';

/** A slot as replies show it, without the answer's text. */
export function factsOf({ slot, outcome }: Response): JsonObject {
  const corrected = 'candidates' in slot.who && slot.who.corrected ? { ...slot.who.corrected } : undefined;
  const facts = { model: nameOf(slot, outcome), requested: slot.requested, model_corrected: corrected };
  if ('error' in outcome) return { ...facts, ...listed(slot.warnings), error: errorOf(outcome.error) };
  const { answer } = outcome;
  const { usage } = answer;
  return {
    ...facts,
    partial: answer.partial || answer.finish.kind === 'length' ? true : undefined,
    ...listed([...slot.warnings, ...answer.warnings]),
    citations: answer.citations.length > 0 ? answer.citations.map(citation => ({ ...citation })) : undefined,
    latency_ms: Math.round(answer.latencyMs),
    tokens: { input: usage.input, output: usage.output },
    cost_usd: costOf(answer.costUsd),
  };
}

function listed(warnings: readonly string[]): JsonObject {
  return { warnings: warnings.length > 0 ? [...warnings] : undefined };
}

/** The call as a whole: what it took, all models together. */
export function metadataOf({ options, call, spent }: Fan, warnings: readonly string[] = []): JsonObject {
  const { usage, costUsd } = spent;
  const elapsedMs = options.compose.clock.monotonic() - call.startedAt;
  return {
    ...localMetadata({ ...call, warnings: [...call.warnings, ...warnings] }, elapsedMs),
    usage: usageDocument(usage),
    cost_usd: costOf(costUsd),
  };
}
