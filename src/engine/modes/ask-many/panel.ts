import { inExchange } from '../../../calls/ask/ask.ts';
import { fileTokens } from '../../../calls/ask/route-call.ts';
import type { ThreadedCall } from '../../../calls/call-record.ts';
import type { Reply } from '../../../calls/reply.ts';
import type { PanelMode } from '../../../calls/tool.ts';
import { inParallel } from '../../../core/concurrency.ts';
import { AppError, throwIfAborted } from '../../../core/errors.ts';
import { estimateTokens } from '../../../core/tokens.ts';
import { noUsage } from '../../../core/usage.ts';
import type { Mode, ModeServices } from '../mode.ts';
import { errorOfAll, type PanelOutcome, type PanelRun, type ReadyQuestion, readyPrompt } from './ask-panelist.ts';
import { panelCallOf, type SingleCallPanel } from './panel-arguments.ts';
import { maxConcurrentModels, preparePanelPrompt, reviseVerdicts } from './panel-prompts.ts';
import { type PanelResult, panelReply, storePanelQuestion } from './panel-reply.ts';
import { panelStep } from './panel-steps.ts';
import { complaintOf, nameOf, type PanelistResponse, reportFiles, responseOf, verdictOf } from './panelist-response.ts';
import {
  type Candidates,
  choosePanel,
  chooseSynthesizer,
  modelName,
  type Panelist,
  panelistName,
  resolvePanelists,
  validatePanelists,
} from './panelists.ts';
import { synthesize } from './synthesis.ts';
import { tallyOf } from './verdicts.ts';

/** All models in one call, each by itself; then a second round if it is wanted, and one model that brings it all together. */
async function panelInOneCall(run: PanelRun, mode: PanelMode, wanted: SingleCallPanel): Promise<Reply> {
  const { services, call } = run;
  const { proposal, files = [], images = [] } = wanted;
  const { panelists, synthesizer } = await choosePanelists(services, mode, call, wanted);
  call.progress.stage('reading files');
  const prompts: Prepared[] = [];
  for (const panelist of panelists)
    prompts.push(await preparePanelPrompt(services, call, mode, panelist, { proposal, files, images }));
  const made = prompts.filter(prompt => 'messages' in prompt);
  reportFiles(run, made);
  await storePanelQuestion(run, contributionOf(wanted, panelists), made);
  const responses = await askPanelists(run, mode, { panelists, prompts, rounds: wanted.rounds });
  if (responses.every(({ outcome }) => outcome.status !== 'success')) {
    run.exchange.local = { responses: responses.map(response => responseOf(response, '')) };
    throw nobodyAnswered(responses);
  }
  return panelReply(run, await conclude(run, mode, { responses, synthesizer, proposal }));
}

type Prepared = Awaited<ReturnType<typeof preparePanelPrompt>>;

async function choosePanelists(
  services: ModeServices,
  mode: PanelMode,
  { common, reqId, thread, request: { principal }, signal }: ThreadedCall,
  { proposal, models, files = [], images = [], synthesizer: name }: SingleCallPanel,
): Promise<{ panelists: Panelist[]; synthesizer?: Candidates }> {
  const { category } = mode;
  const effort = common.effort ?? mode.effort;
  const { route } = services;
  const left = await services.leftToSpend(reqId, { owner: principal.owner, thread: thread.id });
  const read = await fileTokens(services, files, { root: principal.root, signal });
  const promptTokens = estimateTokens(services.preamble) + estimateTokens(proposal) + read;
  const request = { category, needs: { vision: images.length > 0 }, effort, left, promptTokens };
  if (models) validatePanelists(models);
  const panelists = models?.length ? await resolvePanelists(route, models, request) : await choosePanel(route, request);
  const synthesizer = await chooseSynthesizer(route, name, panelists, { category, needs: {}, effort, left });
  return { panelists, ...(synthesizer && { synthesizer }) };
}

function contributionOf({ proposal, findings }: SingleCallPanel, panelists: readonly Panelist[]): string {
  const own = findings && `The caller’s own view: ${findings}`;
  return [`Proposal for a consensus: ${proposal}`, own, `Models to judge it: ${panelists.map(panelistName).join(', ')}`]
    .filter(Boolean)
    .join('\n\n');
}

async function askPanelists(
  run: PanelRun,
  mode: PanelMode,
  { panelists, prompts, rounds }: { panelists: readonly Panelist[]; prompts: readonly Prepared[]; rounds: number },
): Promise<PanelistResponse[]> {
  const { progress, signal } = run.call;
  throwIfAborted(signal);
  let sharers = prompts.filter(prompt => 'messages' in prompt).length;
  const questions: ReadyQuestion[] = [];
  for (const prompt of prompts) {
    questions.push(await readyPrompt(run, prompt, sharers));
    if ('messages' in prompt) sharers--;
  }
  progress.stage(`asking ${panelists.length} models`);
  let ready = 0;
  const report = (response: PanelistResponse) =>
    progress.stage(`${outcomeText(response)} (${++ready} of ${panelists.length})`);
  const responses = await inParallel([...panelists.entries()], maxConcurrentModels, async ([index, panelist]) => {
    const prompt = prompts[index];
    const outcome = (await questions[index]?.ask()) ?? missed(panelist);
    const response: PanelistResponse = {
      panelist,
      outcome,
      round: 1,
      ...(prompt && 'messages' in prompt && { prompt }),
    };
    report(response);
    return response;
  });
  if (rounds < 2) return responses;
  ready = 0;
  return reviseVerdicts(run, mode, responses, response =>
    progress.stage(`round 2: ${outcomeText(response)} (${++ready})`),
  );
}

function missed({ model }: Panelist): PanelOutcome {
  return { status: 'skipped', because: 'deadline', message: `${model} was not asked.` };
}

function outcomeText(response: PanelistResponse): string {
  const name = nameOf(response);
  switch (response.outcome.status) {
    case 'success':
      return `${name} answered in ${(response.outcome.answer.latencyMs / 1_000).toFixed(1)} s`;
    case 'error':
      return `${name} failed`;
    case 'skipped':
      return `${name} was not asked (${response.outcome.because})`;
  }
}

function nobodyAnswered(responses: readonly PanelistResponse[]): AppError {
  const reasons = responses.map(response => `${response.panelist.model}: ${complaintOf(response)}`).join(' · ');
  const [first, ...others] = responses.flatMap(({ outcome }) => (outcome.status === 'error' ? [outcome.error] : []));
  const message = `None of the ${responses.length} models gave a verdict. ${reasons}`;
  if (!first) {
    const [dear] = responses.flatMap(({ outcome }) =>
      outcome.status === 'skipped' && outcome.because === 'cost' ? [outcome] : [],
    );
    return new AppError('limit', message, {
      code: 'LIMIT',
      class: dear ? 'cost' : 'over_capacity',
      next: dear ? (dear.next ?? 'Name cheaper models.') : 'Name fewer models, or raise CONSENSUS_TIMEOUT_SECONDS.',
    });
  }
  return errorOfAll([first, ...others], message, {
    next: `Name other models, or send the call again. About the first: ${first.details.next ?? first.message}`,
    retryable: [first, ...others].some(error => error.details.retryable === true),
  });
}

async function conclude(
  run: PanelRun,
  mode: PanelMode,
  {
    responses,
    synthesizer,
    proposal,
  }: { responses: readonly PanelistResponse[]; synthesizer?: Candidates; proposal: string },
): Promise<PanelResult> {
  const votes = responses.flatMap(response => {
    const verdict = verdictOf(response);
    return verdict ? [{ label: response.panelist.label, ...verdict.facts }] : [];
  });
  const result: PanelResult = { responses, tally: tallyOf(votes) };
  // One verdict has nothing to be brought together with.
  if (!synthesizer || votes.length < 2) return result;
  const { progress } = run.call;
  progress.stage(`bringing ${votes.length} verdicts together (${modelName(synthesizer[0])})`);
  const { outcome, synthesis } = await synthesize(run, mode, {
    candidates: synthesizer,
    responses,
    proposal,
    tally: result.tally,
  });
  return { ...result, synthesizer: { name: modelName(synthesizer[0]), outcome }, ...(synthesis && { synthesis }) };
}

/** Several models judge one proposal, none of them seeing the others: all in one call, or one model a call. */
export const panel: Mode<PanelMode> = {
  thread: 'one',
  execute(mode, call, services) {
    const { warnings, ...wanted } = panelCallOf(call.args);
    const noted = { ...call, warnings: [...call.warnings, ...warnings] };
    const run: PanelRun = { services, call: noted, spent: { usage: noUsage }, exchange: {} };
    const steps = () => (wanted.kind === 'step' ? panelStep(run, mode, wanted) : panelInOneCall(run, mode, wanted));
    return inExchange(services, noted, run.exchange, steps);
  },
};
