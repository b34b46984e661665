import type { PreparedCall } from '../../../calls/call-record.ts';
import { fileFacts, localMetadata, readControlStatus, usageDocument } from '../../../calls/reply.ts';
import type { Json, JsonObject } from '../../../core/json.ts';
import type { PanelistRecord } from '../../../core/thread.ts';
import { roundedUsd } from '../../../core/usage.ts';
import type { ModelQuestion } from '../../../models/ask-model.ts';
import type { PanelOutcome, PanelRun } from './ask-panelist.ts';
import { modelName, type Panelist } from './panelists.ts';
import { anonymize, factsOf, type Labelled, type VerdictFacts } from './verdicts.ts';

/** One panelist with what came of asking it. */
export interface PanelistResponse {
  panelist: Panelist;
  /** Absent: the model could not be asked at all. */
  prompt?: PreparedCall & Pick<ModelQuestion, 'promptFor'>;
  outcome: PanelOutcome;
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
  const panelists = responses.map(({ panelist }) => panelist);
  return responses.flatMap(response => {
    const verdict = verdictOf(response);
    return verdict ? [{ label: response.panelist.label, text: anonymize(verdict.text, panelists, proposal) }] : [];
  });
}

/** The model that answered, or that would have: as it is served, else as it was typed. */
export function nameOf({ panelist, outcome }: Pick<PanelistResponse, 'panelist' | 'outcome'>): string {
  if (outcome.status === 'success') return modelName(outcome.answer.candidate);
  return 'candidates' in panelist.who ? modelName(panelist.who.candidates[0]) : panelist.model;
}

/** One sentence on a model without a verdict. */
export function complaintOf({ outcome }: PanelistResponse): string {
  switch (outcome.status) {
    case 'success':
      return 'It asked for more instead of giving a verdict.';
    case 'error':
      return outcome.error.message;
    case 'skipped':
      return `Not asked. ${outcome.message}`;
  }
}

/** A response as replies show it; `text` is its verdict, whole or as much as there is room for. */
export function responseOf(response: PanelistResponse, text: string): JsonObject {
  const { panelist, outcome } = response;
  const shared = { model: panelist.model, stance: panelist.stance };
  switch (outcome.status) {
    case 'success': {
      const { answer } = outcome;
      return {
        ...shared,
        status: 'success',
        verdict: text,
        partial: answer.partial || answer.finish.kind === 'length' ? true : undefined,
        latency_ms: Math.round(answer.latencyMs),
        tokens: { input: answer.usage.input, output: answer.usage.output },
        cost_usd: costOf(answer.costUsd),
        metadata: {
          provider: answer.model.provider,
          model_name: answer.model.id,
          model_corrected: correctedOf(panelist),
        },
      };
    }
    case 'error': {
      const { code, class: kind, next, retryable } = outcome.error.details;
      return {
        ...shared,
        status: 'error',
        error: outcome.error.message,
        error_code: code,
        error_class: kind,
        next,
        retryable,
        latency_ms: Math.round(outcome.latencyMs),
        metadata: plannedOf(panelist),
      };
    }
    case 'skipped':
      return {
        ...shared,
        status: 'skipped',
        reason: outcome.because,
        error: outcome.message,
        metadata: plannedOf(panelist),
      };
  }
}

/** A response as the turn keeps it; its text is what stands between `from` and `to` of the content. */
export function panelistRecord(response: PanelistResponse, from: number, to: number): PanelistRecord {
  const { panelist, outcome } = response;
  const { position, confidence } = verdictOf(response)?.facts ?? {};
  const latencyMs = outcome.status === 'success' ? outcome.answer.latencyMs : undefined;
  const costUsd = outcome.status === 'success' ? costOf(outcome.answer.costUsd) : undefined;
  return {
    expert: panelist.label,
    model: nameOf(response),
    stance: panelist.stance,
    status: outcome.status,
    ...(position !== undefined && { position }),
    ...(confidence !== undefined && { confidence }),
    ...(latencyMs !== undefined && { latencyMs: Math.round(latencyMs) }),
    ...(costUsd !== undefined && { costUsd }),
    from,
    to,
  };
}

export function costOf(usd: number | undefined): number | undefined {
  return usd === undefined ? undefined : roundedUsd(usd);
}

function correctedOf({ who }: Panelist): Json | undefined {
  return 'candidates' in who && who.corrected ? { ...who.corrected } : undefined;
}

function plannedOf({ who }: Panelist): JsonObject {
  if (!('candidates' in who)) return {};
  const { provider, id } = who.candidates[0].model;
  return { provider, model_name: id };
}

/** What every reply of a panel says of itself, beside the mode's own facts. */
export function panelMetadata(
  run: PanelRun,
  prompts: readonly PreparedCall[],
  warnings: readonly string[],
): JsonObject {
  const { call, services, spent } = run;
  const { usage, costUsd } = spent;
  const elapsed = services.clock.monotonic() - call.startedAt;
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
export function reportFiles({ services, call }: PanelRun, prompts: readonly PreparedCall[]): void {
  const [first] = prompts;
  if (!first) return;
  services.emit({
    type: 'files.read',
    reqId: call.reqId,
    tool: call.tool.name,
    embedded: first.files.embedded,
    skipped: first.files.skipped.map(({ path, code }) => ({ path, code })),
  });
}
