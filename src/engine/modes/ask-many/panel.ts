import { inExchange } from '../../../calls/ask/ask.ts';
import { fileTokens } from '../../../calls/ask/route-call.ts';
import { onThread } from '../../../calls/ask/with-thread.ts';
import { continuationOffer, type Reply, requestedInputs, successReply } from '../../../calls/reply.ts';
import type { PanelMode } from '../../../calls/tool.ts';
import { type AppError, limitError, throwIfAborted } from '../../../core/errors.ts';
import { type JsonObject, jsonOf } from '../../../core/json.ts';
import { type Candidates, modelName } from '../../../core/model.ts';
import type { Thread } from '../../../core/thread.ts';
import { estimateTokens } from '../../../core/tokens.ts';
import { noUsage } from '../../../core/usage.ts';
import type { Mode } from '../mode.ts';
import { askEach, errorOfAll, nameOf } from './ask-many.ts';
import { type PanelRun, readyPanelist, reviseVerdicts, withPrompt } from './panel-prompts.ts';
import type { PanelResult } from './panel-reply.ts';
import { panelMetadata, panelReply, storePanelAnswer, storePanelQuestion, synthesize } from './panel-reply.ts';
import {
  choosePanel,
  chooseSynthesizer,
  type HeardPanelist,
  labelOf,
  type Panelist,
  type PanelistRequest,
  type PanelProgress,
  panelCallOf,
  panelistName,
  readPanelProgress,
  resolvePanelists,
  type SingleCallPanel,
  type StepCall,
  validatePanelists,
} from './panelists.ts';
import type { PanelistResponse } from './verdicts.ts';
import { askedInstead, panelistRecord, responseOf, tallyOf, verdictOf, verdictsIn, whyNoVerdict } from './verdicts.ts';

/** One step: the next model of the agenda is asked. That it fails is its answer; the caller goes on with the next one. */
async function panelStep(run: PanelRun, sent: StepCall): Promise<Reply> {
  const { call } = run;
  const state = call.thread.workflows[call.tool.name];
  const { progress, at, warnings } = readPanelProgress(sent, state, call.common.continuationId !== undefined);
  call.warnings.push(...warnings);
  const wanted = { ...sent, stepNumber: at + 1 };
  const heard = progress.heard[at];
  if (heard?.status === 'success') return sameAgain(run, wanted, progress, heard);
  const panelist = await withPrompt(run, await nextPanelist(run, progress, at), progress);
  await storePanelQuestion(run, stepContribution(wanted, progress), [panelist]);
  call.progress.stage(`asking ${panelist.model} (${wanted.stepNumber} of ${progress.models.length})`);
  const outcome = await (await readyPanelist(run, panelist, 1)).ask();
  throwIfAborted(call.signal);
  return storedReply(run, wanted, progress, { target: panelist, outcome, round: 1 });
}

/** At the first step all names are looked up, so that two for one model are refused before the first is asked. */
async function nextPanelist({ services, call, mode }: PanelRun, { models, images }: PanelProgress, at: number) {
  const asked = { effort: call.common.effort, toolEffort: mode.effort };
  const request = { category: mode.category, needs: { vision: images.length > 0 }, ...asked };
  const [panelist] = await resolvePanelists(services, at === 0 ? models : models.slice(at, at + 1), request);
  if (!panelist) throw new TypeError('a step without a model');
  return { ...panelist, label: labelOf(at) };
}

/** A proposal as the caller's turn. */
function contributionOf(proposal: string, findings: string, models: readonly PanelistRequest[]): string {
  const panel = `Models to judge it: ${models.map(panelistName).join(', ')}`;
  return [`Proposal for a consensus: ${proposal}`, ownView(findings), panel].filter(Boolean).join('\n\n');
}

function stepContribution({ stepNumber, step, findings }: StepCall, { models }: PanelProgress): string {
  if (stepNumber === 1) return contributionOf(step, findings, models);
  return [`Step ${stepNumber} of ${models.length}, notes: ${step}`, ownView(findings)].filter(Boolean).join('\n\n');
}

const ownView = (findings: string): string => findings && `The caller’s own view: ${findings}`;

async function storedReply(run: PanelRun, wanted: StepCall, progress: PanelProgress, response: PanelistResponse) {
  const { call } = run;
  const { outcome, target } = response;
  const { prompt, who } = target;
  const heard = progress.heard.toSpliced(wanted.stepNumber - 1, 1, heardOf(response, call.thread.seq + 2));
  const next: PanelProgress = { ...progress, heard };
  const answer = outcome.status === 'success' ? outcome.answer : undefined;
  const planned = 'candidates' in who ? who.candidates[0].model : undefined;
  const asked = answer?.model ?? (outcome.status === 'error' ? planned : undefined);
  const content = answer?.text ?? `[${nameOf(response)} gave no verdict: ${whyNoVerdict(response)}]`;
  const ended = await storePanelAnswer(run, answer, {
    content,
    modelProvider: asked?.provider,
    modelName: asked?.id,
    modelMetadata: {
      requested: target.model,
      finishReason: answer && (answer.finish.raw ?? answer.finish.kind),
      latencyMs: answer && Math.round(answer.latencyMs),
      voices: [panelistRecord(response, 0, content.length)],
    },
    workflow: { tool: call.tool.name, state: jsonOf(next) },
  });
  const warnings = [...target.warnings, ...(answer?.warnings ?? []), ...ended.warnings];
  const metadata = { ...panelMetadata(run, prompt ? [prompt] : [], warnings, asked), ...stepMetadata(next) };
  return stepReply(run, stepDocument(wanted, next, modelResponse(response)), ended.thread, metadata);
}

function stepReply({ services }: PanelRun, document: JsonObject, thread: Thread, metadata: JsonObject): Reply {
  const continuation_offer = continuationOffer(thread, services.maxTurns, thread.turns.length);
  return successReply({ ...document, continuation_offer, metadata });
}

/** What a model said at this very step. */
function sameAgain(run: PanelRun, wanted: StepCall, progress: PanelProgress, heard: HeardPanelist): Reply {
  const { model, stance, status, text, turn } = heard;
  const { thread } = run.call;
  const { content = text, modelName: id, modelProvider: provider } = thread.turns.find(({ seq }) => seq === turn) ?? {};
  const metadata = { provider, model_name: id };
  const document = stepDocument(wanted, progress, { model, stance, status, verdict: content, metadata });
  const facts = panelMetadata(run, [], [], { provider, id });
  return stepReply(run, document, thread, { ...facts, ...stepMetadata(progress) });
}

function modelResponse(response: PanelistResponse): JsonObject {
  const { outcome } = response;
  const asked = askedInstead(response);
  return {
    ...responseOf(response),
    ...(asked && { asks_for: asked.status, ...requestedInputs(asked.object) }),
    // Callers of the stepwise form know two words.
    ...(outcome.status === 'skipped' && { status: 'error' }),
  };
}

function heardOf(response: PanelistResponse, turn: number): HeardPanelist {
  const { target, outcome } = response;
  const { model, stance } = target;
  const { short: text = whyNoVerdict(response), confidence, position } = verdictOf(response)?.facts ?? {};
  return { model, stance, status: outcome.status, text, turn, confidence, position };
}

const isOver = ({ heard, models }: PanelProgress): boolean => heard.length >= models.length;

function stepDocument({ step, stepNumber, findings }: StepCall, progress: PanelProgress, response: JsonObject) {
  const { heard, models } = progress;
  const last = isOver(progress);
  const [status, consensus_workflow_status] = last
    ? ['consensus_workflow_complete', 'ready_for_synthesis']
    : stepNumber === 1
      ? ['analysis_and_first_model_consulted', 'initial_analysis_complete']
      : ['model_consulted', 'consulting_models'];
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
    consensus_workflow_status,
    next_steps: nextSteps(progress),
  };
}

/** Whole verdicts came with their own steps and stay in the thread: sent anew each time, they would grow with the square. */
const shortResponse = ({ model, stance, status, text, turn, confidence, position }: HeardPanelist): JsonObject =>
  status === 'success'
    ? { model, stance, status, verdict: text, confidence, position, turn }
    : { model, stance, status: 'error', error: text, turn };

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

function stepMetadata(progress: PanelProgress): JsonObject {
  const { heard, models } = progress;
  const names = models.map(panelistName);
  return isOver(progress)
    ? { models_consulted: names, consensus_complete: true, total_models: names.length }
    : { models_to_consult: names, consultation_step: heard.length, total_consultation_steps: names.length };
}

function nextSteps({ models, heard }: PanelProgress): string {
  const next = models[heard.length];
  const failed = heard.flatMap((each, at) =>
    each.status === 'success' ? [] : [`${panelistName(each)} (step ${at + 1})`],
  );
  const absent = `All models were asked, but not all answered: ${failed.join(', ')}. To ask one of them again, resend its step with the continuation_id.`;
  if (!next)
    return `${failed.length > 0 ? absent : 'All models were heard.'} Bring their verdicts together for the user: 1. where they agree, 2. where they differ and why, minority views included, 3. your recommendation, 4. what to do first, 5. the risks. The thread has each verdict whole ("threads" reads it).`;
  const heardNow =
    heard.at(-1)?.status === 'success'
      ? 'Note in your own words what this verdict adds.'
      : 'This model did not answer.';
  return `${heardNow} Then call consensus again with step_number ${heard.length + 1}, the continuation_id and your notes: it asks ${panelistName(next)}, who sees the proposal and the files alone.`;
}

/** All models in one call, each by itself; then a second round if it is wanted, and one model that brings it all together. */
async function panelInOneCall(run: PanelRun, wanted: SingleCallPanel): Promise<Reply> {
  const { progress, signal } = run.call;
  const { proposal, files = [], images = [] } = wanted;
  const { panelists: chosen, synthesizer } = await choosePanelists(run, wanted);
  progress.stage('reading files');
  const panelists: Panelist[] = [];
  for (const panelist of chosen) panelists.push(await withPrompt(run, panelist, { proposal, files, images }));
  await storePanelQuestion(run, contributionOf(proposal, wanted.findings, panelists), panelists);
  throwIfAborted(signal);
  progress.stage(`asking ${panelists.length} models`);
  let sharers = panelists.filter(({ prompt }) => prompt).length;
  const asked = await askEach(run, panelists, panelist =>
    readyPanelist(run, panelist, panelist.prompt ? sharers-- : sharers),
  );
  const first = asked.map(response => ({ ...response, round: 1 }));
  const responses = wanted.rounds < 2 ? first : await reviseVerdicts(run, proposal, first);
  if (responses.every(({ outcome }) => outcome.status !== 'success')) {
    run.exchange.local = { responses: responses.map(response => responseOf(response)) };
    throw nobodyAnswered(responses);
  }
  return panelReply(run, await conclude(run, proposal, responses, synthesizer));
}

async function choosePanelists({ services, call, mode }: PanelRun, asked: SingleCallPanel) {
  const { proposal, models, files = [], images = [], synthesizer: name } = asked;
  const { common, reqId, thread, signal } = call;
  const { owner, root } = call.request.principal;
  const { category } = mode;
  const wish = { effort: common.effort, toolEffort: mode.effort };
  const left = await services.leftToSpend(reqId, { owner, thread: thread.id });
  const read = await fileTokens(services, files, { root, signal });
  const promptTokens = estimateTokens(services.preamble) + estimateTokens(proposal) + read;
  const request = { category, needs: { vision: images.length > 0 }, ...wish, left, promptTokens };
  if (models) validatePanelists(models);
  const panelists = await (models ? resolvePanelists(services, models, request) : choosePanel(services, request));
  const wanted = { name, panelNamed: models !== undefined };
  const synthesizer = await chooseSynthesizer(services, wanted, panelists, { category, needs: {}, ...wish, left });
  return { panelists, synthesizer };
}

function nobodyAnswered(responses: readonly PanelistResponse[]): AppError {
  const reasons = responses.map(response => `${response.target.model}: ${whyNoVerdict(response)}`).join(' · ');
  const message = `None of the ${responses.length} models gave a verdict. ${reasons}`;
  const outcomes = responses.map(({ outcome }) => outcome);
  const [first, ...others] = outcomes.flatMap(outcome => (outcome.status === 'error' ? [outcome.error] : []));
  if (first)
    return errorOfAll([first, ...others], message, {
      next: `Choose other models, or resend the call. For the first failure: ${first.details.next ?? first.message}`,
      retryable: [first, ...others].some(error => error.details.retryable === true),
    });
  const skipped = outcomes.flatMap(outcome => (outcome.status === 'skipped' ? [outcome] : []));
  const { error } = skipped.find(({ because }) => because === 'cost') ?? skipped[0] ?? {};
  return limitError('over_capacity', message, error?.details);
}

async function conclude(run: PanelRun, proposal: string, responses: PanelistResponse[], synthesizer?: Candidates) {
  const votes = verdictsIn(responses).map(({ target: { label }, facts }) => ({ label, ...facts }));
  const result: PanelResult = { responses, tally: tallyOf(votes) };
  // One verdict has nothing to be brought together with.
  if (!synthesizer || votes.length < 2) return result;
  const name = modelName(synthesizer[0]);
  run.call.progress.stage(`bringing ${votes.length} verdicts together (${name})`);
  const { outcome, synthesis } = await synthesize(run, proposal, result, synthesizer);
  return { ...result, synthesizer: { name, outcome }, synthesis };
}

/** Several models judge one proposal, none of them seeing the others: all in one call, or one model a call. */
export const panel: Mode<PanelMode> = onThread((mode, call, services) => {
  const { warnings, ...wanted } = panelCallOf(call.args);
  const noted = { ...call, warnings: [...call.warnings, ...warnings] };
  const scope = noted.thread.id;
  const run: PanelRun = { services, mode, call: noted, scope, spent: { usage: noUsage }, exchange: { services } };
  const steps = () => (wanted.kind === 'step' ? panelStep(run, wanted) : panelInOneCall(run, wanted));
  return inExchange(run.exchange, noted, steps);
});
