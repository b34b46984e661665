import type { ThreadedCall } from '../../../calls/call-record.ts';
import { continuationOffer, type Reply, readControlStatus, successReply } from '../../../calls/reply.ts';
import type { PanelMode } from '../../../calls/tool.ts';
import { throwIfAborted } from '../../../core/errors.ts';
import type { JsonObject } from '../../../core/json.ts';
import type { ModeServices } from '../mode.ts';
import { askPanelist, type Outcome, openSession, type PanelRun, purseFor } from './consult.ts';
import type { StepCall } from './panel-arguments.ts';
import { agendaState, type HeardPanelist, type PanelProgress, readPanelProgress } from './panel-arguments.ts';
import { prepare } from './panel-prompts.ts';
import { abandon, begin, end, type Pending } from './panel-reply.ts';
import { labelOf, type Panelist, resolvePanelists, seatName } from './seats.ts';
import { factsOf, tallyOf } from './verdicts.ts';
import {
  complaintOf,
  nameOf,
  type PanelistResponse,
  panelMetadata,
  reportFiles,
  responseOf,
  voiceRecord,
} from './voice.ts';

interface StepRun {
  session: PanelRun;
  wanted: StepCall;
  agenda: PanelProgress;
  voice: PanelistResponse;
  pending: Pending;
}

/** One step: the next model of the agenda is asked. That it fails is its answer; the caller goes on with the next one. */
export async function panelStep(
  services: ModeServices,
  shape: PanelMode,
  call: ThreadedCall,
  wanted: StepCall,
): Promise<Reply> {
  const agenda = readPanelProgress(
    wanted,
    call.thread.workflows[call.tool.name],
    call.common.continuationId !== undefined,
  );
  const session = openSession(services, call, purseFor(services, wanted.maxCostUsd));
  const seat = await seatOf(services, shape, call, agenda);
  const prompt = await prepare(services, call, shape, seat, agenda);
  const prompts = 'failure' in prompt ? [] : [prompt];
  reportFiles(session, prompts);
  const pending = await begin(services, call, contributionOf(wanted, agenda), prompts);
  try {
    call.progress.stage(`asking ${seat.model} (${wanted.stepNumber} of ${agenda.models.length})`);
    const outcome = await ask(session, prompt);
    const voice: PanelistResponse = { seat, prompt: prompts[0], outcome, round: 1 };
    return await reply({ session, wanted, agenda, voice, pending });
  } catch (error) {
    await abandon(session, pending);
    throw error;
  }
}

/** At the first step all names are looked up, so that two for one model are refused before the first is asked. */
async function seatOf(
  services: ModeServices,
  shape: PanelMode,
  call: ThreadedCall,
  agenda: PanelProgress,
): Promise<Panelist> {
  const { models, heard, images } = agenda;
  const at = heard.length;
  const request = {
    category: shape.category,
    needs: { vision: images.length > 0 },
    effort: call.common.effort ?? shape.effort,
  };
  const seats = await resolvePanelists(services.route, at === 0 ? models : models.slice(at, at + 1), request);
  const [seat] = seats;
  if (!seat) throw new TypeError('a step without a model');
  return { ...seat, label: labelOf(at) };
}

async function ask(session: PanelRun, prompt: Awaited<ReturnType<typeof prepare>>): Promise<Outcome> {
  throwIfAborted(session.call.signal);
  if ('failure' in prompt) return { status: 'error', error: prompt.failure, latencyMs: 0 };
  const { candidates, messages, budget } = prompt;
  return askPanelist(session, { candidates, messages, maxOutputTokens: budget.answer, sharers: 1 })();
}

function contributionOf({ stepNumber, step, findings }: StepCall, { models }: PanelProgress): string {
  const own = findings && `The caller’s own view: ${findings}`;
  const panel = `Models to judge it: ${models.map(seatName).join(', ')}`;
  const head =
    stepNumber === 1 ? `Proposal for a consensus: ${step}` : `Step ${stepNumber} of ${models.length}, notes: ${step}`;
  return [head, own, stepNumber === 1 && panel].filter(Boolean).join('\n\n');
}

async function reply({ session, wanted, agenda, voice, pending }: StepRun): Promise<Reply> {
  const { call, services } = session;
  const { outcome, seat, prompt } = voice;
  const next: PanelProgress = { ...agenda, heard: [...agenda.heard, heardOf(voice, pending.turn.seq + 1)] };
  const last = next.heard.length >= agenda.models.length;
  const answer = outcome.status === 'success' ? outcome.answer : undefined;
  const planned = 'candidates' in seat.who ? seat.who.candidates[0].model : undefined;
  const asked = answer?.model ?? (outcome.status === 'error' ? planned : undefined);
  const content = answer?.text ?? `[${nameOf(voice)} gave no verdict: ${complaintOf(voice)}]`;
  const ended = await end(session, pending, {
    content,
    modelProvider: asked?.provider,
    modelName: asked?.id,
    metadata: {
      requested: seat.model,
      effort: answer?.candidate.effort,
      thinkingBudget: answer?.candidate.thinkingBudget,
      finishReason: answer && (answer.finish.raw ?? answer.finish.kind),
      latencyMs: answer && Math.round(answer.latencyMs),
      voices: [voiceRecord(voice, 0, content.length)],
    },
    workflow: { tool: call.tool.name, state: last ? null : agendaState(next) },
  });
  const warnings = [...seat.warnings, ...(answer?.warnings ?? []), ...ended.warnings];
  return successReply({
    ...stepDocument(wanted, next, voice, last),
    continuation_offer: continuationOffer(ended.thread, services.maxTurns, ended.thread.turns.length),
    metadata: {
      ...panelMetadata(session, prompt ? [prompt] : [], warnings),
      ...stepMetadata(next, last),
      model_used: asked?.id,
      provider_used: asked?.provider,
    },
  });
}

function heardOf(voice: PanelistResponse, turn: number): HeardPanelist {
  const { seat, outcome } = voice;
  const { model, stance } = seat;
  if (outcome.status !== 'success') return { model, stance, status: outcome.status, text: complaintOf(voice), turn };
  const { short, confidence, position } = factsOf(outcome.answer.text);
  const plea = readControlStatus(outcome.answer.text);
  const shared = { model, stance, status: 'success', turn };
  return plea ? { ...shared, text: complaintOf(voice) } : { ...shared, text: short, confidence, position };
}

function stepDocument(
  { step, stepNumber, findings }: StepCall,
  agenda: PanelProgress,
  voice: PanelistResponse,
  last: boolean,
): JsonObject {
  const { seat, outcome } = voice;
  const { heard, models } = agenda;
  const plea = outcome.status === 'success' ? readControlStatus(outcome.answer.text) : undefined;
  const status = last
    ? 'consensus_workflow_complete'
    : stepNumber === 1
      ? 'analysis_and_first_model_consulted'
      : 'model_consulted';
  return {
    status,
    step_number: stepNumber,
    total_steps: models.length,
    model_consulted: seat.model,
    model_stance: seat.stance,
    model_response: {
      ...responseOf(voice, outcome.status === 'success' ? outcome.answer.text : ''),
      ...(plea && { asks_for: plea.status }),
      // Callers of the stepwise form know two words.
      ...(outcome.status === 'skipped' && { status: 'error' }),
    },
    current_model_index: heard.length,
    next_step_required: !last,
    agent_analysis: stepNumber === 1 ? { initial_analysis: step, findings } : undefined,
    ...(last && completion(agenda)),
    accumulated_responses: heard.map(shortResponse),
    consensus_workflow_status: last
      ? 'ready_for_synthesis'
      : stepNumber === 1
        ? 'initial_analysis_complete'
        : 'consulting_models',
    next_steps: nextSteps(agenda, last),
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
      models_consulted: models.map(seatName),
      total_responses: heard.length,
      responses_with_verdict: given.length,
      consensus_confidence: tallyOf(votes).level,
    },
  };
}

function stepMetadata({ models, heard }: PanelProgress, last: boolean): JsonObject {
  const names = models.map(seatName);
  return last
    ? { models_consulted: names, consensus_complete: true, total_models: names.length }
    : { models_to_consult: names, consultation_step: heard.length, total_consultation_steps: names.length };
}

function nextSteps({ models, heard }: PanelProgress, last: boolean): string {
  const next = models[heard.length];
  if (last || !next) {
    return 'All models were heard. Bring their verdicts together for the user: 1. where they agree, 2. where they differ and why, minority views included, 3. your recommendation, 4. what to do first, 5. the risks. The thread has each verdict whole ("threads" reads it).';
  }
  return `Note in your own words what this verdict adds. Then call consensus again with step_number ${heard.length + 1}, the continuation_id and your notes: it asks ${seatName(next)}, who sees the proposal and the files alone.`;
}
