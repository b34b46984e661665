import type { Gathered } from '../../calls/call-record.ts';
import { fileFacts, localMetadata } from '../../calls/reply.ts';
import type { JsonObject } from '../../core/json.ts';
import type { Session } from '../modes/ask-many/consult.ts';
import { costOf } from '../modes/ask-many/voice.ts';
import { usageDocument } from '../spend/usage-document.ts';

/** What every reply of a panel says of itself, beside the shape's own facts. */
export function panelMetadata(session: Session, prompts: readonly Gathered[], warnings: readonly string[]): JsonObject {
  const { call, options, spent } = session;
  const { usage, costUsd } = spent;
  const elapsed = options.compose.clock.monotonic() - call.startedAt;
  const files = prompts.toSorted((a, b) => b.files.embedded.length - a.files.embedded.length)[0]?.files;
  const all = [...new Set([...call.warnings, ...prompts.flatMap(prompt => prompt.warnings), ...warnings])];
  return {
    ...localMetadata(call, elapsed),
    workflow_type: 'multi_model_consensus',
    usage: usageDocument(usage),
    cost_usd: costOf(costUsd),
    files: files && fileFacts(files),
    warnings: all.length > 0 ? all : undefined,
  };
}

/** Told once for the call, though each model's prompt was made by itself. */
export function reportFiles({ options, call }: Session, prompts: readonly Gathered[]): void {
  const [first] = prompts;
  if (!first) return;
  options.compose.emit({
    type: 'files.read',
    reqId: call.reqId,
    tool: call.tool.name,
    embedded: first.files.embedded,
    skipped: first.files.skipped.map(({ path, code }) => ({ path, code })),
  });
}
