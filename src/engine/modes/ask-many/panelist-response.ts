import type { PreparedCall } from '../../../calls/call-record.ts';
import { fileFacts, readControlStatus } from '../../../calls/reply.ts';
import type { JsonObject } from '../../../core/json.ts';
import type { PanelistRecord } from '../../../core/thread.ts';
import { answerFacts, costOf, metadataOf, nameOf, type TargetResponse } from './ask-many.ts';
import type { PanelRun } from './ask-panelist.ts';
import type { Panelist } from './panelists.ts';
import { anonymize, factsOf, type Labelled, type VerdictFacts } from './verdicts.ts';

/** One panelist with what came of asking it. */
export interface PanelistResponse extends TargetResponse<Panelist> {
  /** The round that the verdict is of. */
  round: number;
  /** Why a second round brought no new verdict. */
  notRevised?: string;
}

/** What a model said when it gave a verdict; undefined when it failed, or asked for files instead. */
export function verdictOf({ outcome }: PanelistResponse): { text: string; facts: VerdictFacts } | undefined {
  if (outcome.status !== 'success' || readControlStatus(outcome.answer.text)) return undefined;
  return { text: outcome.answer.text, facts: factsOf(outcome.answer.text) };
}

/** All verdicts that were given, without the names of models. */
export function anonymousVerdicts(responses: readonly PanelistResponse[], proposal: string): Labelled[] {
  const panelists = responses.map(({ target }) => target);
  return responses.flatMap(response => {
    const verdict = verdictOf(response);
    return verdict ? [{ label: response.target.label, text: anonymize(verdict.text, panelists, proposal) }] : [];
  });
}

/** One sentence on a model without a verdict. */
export function complaintOf({ outcome }: PanelistResponse): string {
  if (outcome.status === 'success') return 'It asked for more instead of giving a verdict.';
  return outcome.status === 'skipped' ? `Not asked. ${outcome.error.message}` : outcome.error.message;
}

/** A response as replies show it; `text` is its verdict, whole or as much as there is room for. */
export function responseOf({ target, outcome }: PanelistResponse, text: string): JsonObject {
  const { model, stance, who } = target;
  const { status } = outcome;
  const shared = { model, stance, status };
  if (outcome.status === 'success') {
    const { answer } = outcome;
    const model_corrected = 'candidates' in who && who.corrected ? { ...who.corrected } : undefined;
    const metadata = { provider: answer.model.provider, model_name: answer.model.id, model_corrected };
    return { ...shared, verdict: text, ...answerFacts(answer), metadata };
  }
  const { message, details } = outcome.error;
  const planned = 'candidates' in who ? who.candidates[0].model : undefined;
  const metadata = { provider: planned?.provider, model_name: planned?.id };
  if (outcome.status === 'skipped') return { ...shared, reason: outcome.because, error: message, metadata };
  return {
    ...shared,
    error: message,
    error_code: details.code,
    error_class: details.class,
    next: details.next,
    retryable: details.retryable,
    latency_ms: Math.round(outcome.latencyMs),
    metadata,
  };
}

/** A response as the turn keeps it; its text is what stands between `from` and `to` of the content. */
export function panelistRecord(response: PanelistResponse, from: number, to: number): PanelistRecord {
  const { target, outcome } = response;
  const { position, confidence } = verdictOf(response)?.facts ?? {};
  const answer = outcome.status === 'success' ? outcome.answer : undefined;
  const costUsd = costOf(answer?.costUsd);
  return {
    expert: target.label,
    model: nameOf(response),
    stance: target.stance,
    status: outcome.status,
    ...(position !== undefined && { position }),
    ...(confidence !== undefined && { confidence }),
    ...(answer && { latencyMs: Math.round(answer.latencyMs) }),
    ...(costUsd !== undefined && { costUsd }),
    from,
    to,
  };
}

/** What every reply of a panel says of itself, beside the mode's own facts. */
export function panelMetadata(
  run: PanelRun,
  prompts: readonly PreparedCall[],
  warnings: readonly string[],
): JsonObject {
  const files = prompts.toSorted((a, b) => b.files.embedded.length - a.files.embedded.length)[0]?.files;
  return {
    ...metadataOf(run, [...prompts.flatMap(prompt => prompt.warnings), ...warnings]),
    workflow_type: 'multi_model_consensus',
    files: files && fileFacts(files),
  };
}
