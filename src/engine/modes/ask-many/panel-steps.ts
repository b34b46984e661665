import {
  continuationOffer,
  jsonOf,
  type Reply,
  readControlStatus,
  successReply,
  wishIn,
} from '../../../calls/reply.ts';
import type { PanelMode } from '../../../calls/tool.ts';
import { throwIfAborted } from '../../../core/errors.ts';
import type { JsonObject } from '../../../core/json.ts';
import { nameOf } from './ask-many.ts';
import { type HeardPanelist, type PanelProgress, readPanelProgress, type StepCall } from './panel-arguments.ts';
import { type PanelRun, readyPanelist, withPrompt } from './panel-prompts.ts';
import { panelMetadata, storePanelAnswer, storePanelQuestion } from './panel-reply.ts';
import { labelOf, type Panelist, panelistName, resolvePanelists } from './panelists.ts';
import { complaintOf, factsOf, type PanelistResponse, panelistRecord, responseOf, tallyOf } from './verdicts.ts';

interface StepRun {
  run: PanelRun;
  wanted: StepCall;
  progress: PanelProgress;
  response: PanelistResponse;
}

/** One step: the next model of the agenda is asked. That it fails is its answer; the caller goes on with the next one. */
export async function panelStep(run: PanelRun, mode: PanelMode, sent: StepCall): Promise<Reply> {
  const { call } = run;
  const state = call.thread.workflows[call.tool.name];
  const { progress, at, warnings } = readPanelProgress(sent, state, call.common.continuationId !== undefined);
  call.warnings.push(...warnings);
  const wanted = { ...sent, stepNumber: at + 1 };
  const heard = progress.heard[at];
  if (heard?.status === 'success') return sameAgain(run, wanted, progress, heard);
  const panelist = await withPrompt(run, mode, await nextPanelist(run, mode, progress, at), progress);
  await storePanelQuestion(run, contributionOf(wanted, progress), [panelist]);
  call.progress.stage(`asking ${panelist.model} (${wanted.stepNumber} of ${progress.models.length})`);
  const outcome = await (await readyPanelist(run, panelist, 1)).ask();
  throwIfAborted(call.signal);
  return reply({ run, wanted, progress, response: { target: panelist, outcome, round: 1 } });
}

/** At the first step all names are looked up, so that two for one model are refused before the first is asked. */
async function nextPanelist(
  { services, call }: PanelRun,
  mode: PanelMode,
  { models, images }: PanelProgress,
  at: number,
): Promise<Panelist> {
  const request = {
    category: mode.category,
    needs: { vision: images.length > 0 },
    effort: call.common.effort ?? mode.effort,
  };
  const panelists = await resolvePanelists(services, at === 0 ? models : models.slice(at, at + 1), request);
  const [panelist] = panelists;
  if (!panelist) throw new TypeError('a step without a model');
  return { ...panelist, label: labelOf(at) };
}

function contributionOf({ stepNumber, step, findings }: StepCall, { models }: PanelProgress): string {
  const own = findings && `The caller’s own view: ${findings}`;
  const panel = `Models to judge it: ${models.map(panelistName).join(', ')}`;
  const head =
    stepNumber === 1 ? `Proposal for a consensus: ${step}` : `Step ${stepNumber} of ${models.length}, notes: ${step}`;
  return [head, own, stepNumber === 1 && panel].filter(Boolean).join('\n\n');
}

async function reply({ run, wanted, progress, response }: StepRun): Promise<Reply> {
  const { call, services } = run;
  const { outcome, target } = response;
  const { prompt, who } = target;
  const heard = progress.heard.toSpliced(wanted.stepNumber - 1, 1, heardOf(response, call.thread.seq + 2));
  const next: PanelProgress = { ...progress, heard };
  const last = next.heard.length >= progress.models.length;
  const answer = outcome.status === 'success' ? outcome.answer : undefined;
  const planned = 'candidates' in who ? who.candidates[0].model : undefined;
  const asked = answer?.model ?? (outcome.status === 'error' ? planned : undefined);
  const content = answer?.text ?? `[${nameOf(response)} gave no verdict: ${complaintOf(response)}]`;
  const ended = await storePanelAnswer(run, {
    content,
    modelProvider: asked?.provider,
    modelName: asked?.id,
    modelMetadata: {
      requested: target.model,
      effort: answer?.candidate.effort,
      thinkingBudget: answer?.candidate.thinkingBudget,
      finishReason: answer && (answer.finish.raw ?? answer.finish.kind),
      latencyMs: answer && Math.round(answer.latencyMs),
      voices: [panelistRecord(response, 0, content.length)],
    },
    workflow: { tool: call.tool.name, state: jsonOf(next) },
  });
  const warnings = [...target.warnings, ...(answer?.warnings ?? []), ...ended.warnings];
  return successReply({
    ...stepDocument(wanted, next, modelResponse(response), last),
    continuation_offer: continuationOffer(ended.thread, services.maxTurns, ended.thread.turns.length),
    metadata: {
      ...panelMetadata(run, prompt ? [prompt] : [], warnings),
      ...stepMetadata(next, last),
      model_used: asked?.id,
      provider_used: asked?.provider,
    },
  });
}

/** What a model said at this very step. */
function sameAgain(
  run: PanelRun,
  wanted: StepCall,
  progress: PanelProgress,
  { model, stance, status, text, turn }: HeardPanelist,
): Reply {
  const { call, services } = run;
  const { content = text, modelName, modelProvider } = call.thread.turns.find(({ seq }) => seq === turn) ?? {};
  const last = progress.heard.length >= progress.models.length;
  const metadata = { provider: modelProvider, model_name: modelName };
  return successReply({
    ...stepDocument(wanted, progress, { model, stance, status, verdict: content, metadata }, last),
    continuation_offer: continuationOffer(call.thread, services.maxTurns, call.thread.turns.length),
    metadata: {
      ...panelMetadata(run, [], []),
      ...stepMetadata(progress, last),
      model_used: modelName,
      provider_used: modelProvider,
    },
  });
}

function modelResponse(response: PanelistResponse): JsonObject {
  const { outcome } = response;
  const plea = outcome.status === 'success' ? readControlStatus(outcome.answer.text) : undefined;
  return {
    ...responseOf(response, outcome.status === 'success' ? outcome.answer.text : ''),
    ...(plea && { asks_for: plea.status, ...wishIn(plea.object) }),
    // Callers of the stepwise form know two words.
    ...(outcome.status === 'skipped' && { status: 'error' }),
  };
}

function heardOf(response: PanelistResponse, turn: number): HeardPanelist {
  const { target, outcome } = response;
  const { model, stance } = target;
  if (outcome.status !== 'success') return { model, stance, status: outcome.status, text: complaintOf(response), turn };
  const { short, confidence, position } = factsOf(outcome.answer.text);
  const plea = readControlStatus(outcome.answer.text);
  const shared = { model, stance, status: 'success', turn };
  return plea ? { ...shared, text: complaintOf(response) } : { ...shared, text: short, confidence, position };
}

function stepDocument(
  { step, stepNumber, findings }: StepCall,
  progress: PanelProgress,
  response: JsonObject,
  last: boolean,
): JsonObject {
  const { heard, models } = progress;
  const status = last
    ? 'consensus_workflow_complete'
    : stepNumber === 1
      ? 'analysis_and_first_model_consulted'
      : 'model_consulted';
  return {
    status,
    step_number: stepNumber,
    total_steps: models.length,
    model_consulted: response.model,
    model_stance: response.stance,
    model_response: response,
    current_model_index: heard.length,
    next_step_required: !last,
    agent_analysis: stepNumber === 1 ? { initial_analysis: step, findings } : undefined,
    ...(last && completion(progress)),
    accumulated_responses: heard.map(shortResponse),
    consensus_workflow_status: last
      ? 'ready_for_synthesis'
      : stepNumber === 1
        ? 'initial_analysis_complete'
        : 'consulting_models',
    next_steps: nextSteps(progress, last),
  };
}

/** Whole verdicts came with their own steps and stay in the thread: sent anew each time, they would grow with the square. */
function shortResponse({ model, stance, status, text, turn, confidence, position }: HeardPanelist): JsonObject {
  return status === 'success'
    ? { model, stance, status, verdict: text, confidence, position, turn }
    : { model, stance, status: 'error', error: text, turn };
}

function completion({ proposal, models, heard }: PanelProgress): JsonObject {
  const given = heard.filter(({ status }) => status === 'success');
  const votes = heard.map(({ confidence, position }, index) => ({ label: labelOf(index), confidence, position }));
  return {
    consensus_complete: true,
    complete_consensus: {
      initial_prompt: proposal,
      models_consulted: models.map(panelistName),
      total_responses: heard.length,
      responses_with_verdict: given.length,
      consensus_confidence: tallyOf(votes).level,
    },
  };
}

function stepMetadata({ models, heard }: PanelProgress, last: boolean): JsonObject {
  const names = models.map(panelistName);
  return last
    ? { models_consulted: names, consensus_complete: true, total_models: names.length }
    : { models_to_consult: names, consultation_step: heard.length, total_consultation_steps: names.length };
}

function nextSteps({ models, heard }: PanelProgress, last: boolean): string {
  const next = models[heard.length];
  if (last || !next) {
    return 'All models were heard. Bring their verdicts together for the user: 1. where they agree, 2. where they differ and why, minority views included, 3. your recommendation, 4. what to do first, 5. the risks. The thread has each verdict whole ("threads" reads it).';
  }
  return `Note in your own words what this verdict adds. Then call consensus again with step_number ${heard.length + 1}, the continuation_id and your notes: it asks ${panelistName(next)}, who sees the proposal and the files alone.`;
}
