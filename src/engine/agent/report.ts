import type { JsonObject } from '../../domain/json.ts';
import { roundedUsd } from '../../domain/money.ts';
import { safeCut } from '../../domain/text.ts';
import type { Parsed } from '../call-record.ts';
import type { AgentResult, AgentToolCall } from './agent.ts';

const longestArgs = 300;

/** A call of a run, as a reply tells it. */
export function callFacts({ round, name, args, outcome, elapsedMs, result }: AgentToolCall): JsonObject {
  return {
    round,
    name,
    args: safeCut(JSON.stringify(args) ?? '', longestArgs),
    outcome,
    elapsed_ms: Math.round(elapsedMs),
    reason: outcome === 'refused' || outcome === 'invalid' ? safeCut(result, longestArgs) : undefined,
  };
}

export interface ReportFacts {
  /** Paths of files that were written. */
  changed: string[];
  warnings: readonly string[];
  parts: { clock: { monotonic(): number } };
}

/** The reply to a call whose run came to its end. */
export function documentOf(call: Parsed, result: AgentResult, { changed, warnings, parts }: ReportFacts): JsonObject {
  const { candidate, usage, costUsd, text, rounds, stopReason, toolCalls } = result;
  const all = [...new Set([...warnings, ...result.warnings])];
  return {
    status: stopReason === 'done' ? 'success' : 'partial',
    content: text,
    stop_reason: stopReason,
    rounds,
    tool_calls: toolCalls.map(callFacts),
    changed_files: changed.length > 0 ? changed : undefined,
    metadata: {
      tool_name: call.tool.name,
      req_id: call.reqId,
      model_used: candidate.model.id,
      provider_used: candidate.model.provider,
      routing_reason: candidate.reason,
      usage: {
        input: usage.input,
        output: usage.output,
        reasoning: usage.reasoning,
        cache_read: usage.cacheRead,
        cache_write: usage.cacheWrite,
      },
      cost_usd: costUsd === undefined ? undefined : roundedUsd(costUsd),
      latency_ms: Math.round(parts.clock.monotonic() - call.startedAt),
      warnings: all.length > 0 ? all : undefined,
    },
  };
}
