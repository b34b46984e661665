import { inExchange } from '../../../calls/ask/ask.ts';
import { fileTokens } from '../../../calls/ask/route-call.ts';
import type { Reply } from '../../../calls/reply.ts';
import type { PanelMode } from '../../../calls/tool.ts';
import { type AppError, limitError, throwIfAborted } from '../../../core/errors.ts';
import { estimateTokens } from '../../../core/tokens.ts';
import { noUsage } from '../../../core/usage.ts';
import type { Mode } from '../mode.ts';
import { askEach, type Candidates, errorOfAll, modelName } from './ask-many.ts';
import { panelCallOf, type SingleCallPanel } from './panel-arguments.ts';
import { type PanelRun, readyPanelist, reviseVerdicts, withPrompt } from './panel-prompts.ts';
import { type PanelResult, panelReply, storePanelQuestion } from './panel-reply.ts';
import { panelStep } from './panel-steps.ts';
import {
  choosePanel,
  chooseSynthesizer,
  type Panelist,
  panelistName,
  resolvePanelists,
  validatePanelists,
} from './panelists.ts';
import { synthesize } from './synthesis.ts';
import { complaintOf, type PanelistResponse, responseOf, tallyOf, verdictOf } from './verdicts.ts';

/** All models in one call, each by itself; then a second round if it is wanted, and one model that brings it all together. */
async function panelInOneCall(run: PanelRun, mode: PanelMode, wanted: SingleCallPanel): Promise<Reply> {
  const { progress, signal } = run.call;
  const { proposal, files = [], images = [] } = wanted;
  const { panelists: chosen, synthesizer } = await choosePanelists(run, mode, wanted);
  progress.stage('reading files');
  const panelists: Panelist[] = [];
  for (const panelist of chosen) panelists.push(await withPrompt(run, mode, panelist, { proposal, files, images }));
  await storePanelQuestion(run, contributionOf(wanted, panelists), panelists);
  throwIfAborted(signal);
  progress.stage(`asking ${panelists.length} models`);
  let sharers = panelists.filter(({ prompt }) => prompt).length;
  const asked = await askEach(run, panelists, panelist =>
    readyPanelist(run, panelist, panelist.prompt ? sharers-- : sharers),
  );
  const first = asked.map(response => ({ ...response, round: 1 }));
  const responses = wanted.rounds < 2 ? first : await reviseVerdicts(run, mode, proposal, first);
  if (responses.every(({ outcome }) => outcome.status !== 'success')) {
    run.exchange.local = { responses: responses.map(response => responseOf(response, '')) };
    throw nobodyAnswered(responses);
  }
  return panelReply(run, await conclude(run, mode, { responses, synthesizer, proposal }));
}

async function choosePanelists(
  { services, call }: PanelRun,
  mode: PanelMode,
  { proposal, models, files = [], images = [], synthesizer: name }: SingleCallPanel,
): Promise<{ panelists: Panelist[]; synthesizer?: Candidates | undefined }> {
  const { common, reqId, thread, signal } = call;
  const { owner, root } = call.request.principal;
  const { category } = mode;
  const effort = common.effort ?? mode.effort;
  const left = await services.leftToSpend(reqId, { owner, thread: thread.id });
  const read = await fileTokens(services, files, { root, signal });
  const promptTokens = estimateTokens(services.preamble) + estimateTokens(proposal) + read;
  const request = { category, needs: { vision: images.length > 0 }, effort, left, promptTokens };
  if (models) validatePanelists(models);
  const panelists = await (models?.length
    ? resolvePanelists(services, models, request)
    : choosePanel(services, request));
  const synthesizer = await chooseSynthesizer(services, name, panelists, { category, needs: {}, effort, left });
  return { panelists, synthesizer };
}

function contributionOf({ proposal, findings }: SingleCallPanel, panelists: readonly Panelist[]): string {
  const own = findings && `The caller’s own view: ${findings}`;
  return [`Proposal for a consensus: ${proposal}`, own, `Models to judge it: ${panelists.map(panelistName).join(', ')}`]
    .filter(Boolean)
    .join('\n\n');
}

function nobodyAnswered(responses: readonly PanelistResponse[]): AppError {
  const reasons = responses.map(response => `${response.target.model}: ${complaintOf(response)}`).join(' · ');
  const message = `None of the ${responses.length} models gave a verdict. ${reasons}`;
  const outcomes = responses.map(({ outcome }) => outcome);
  const [first, ...others] = outcomes.flatMap(outcome => (outcome.status === 'error' ? [outcome.error] : []));
  if (first) {
    return errorOfAll([first, ...others], message, {
      next: `Name other models, or send the call again. About the first: ${first.details.next ?? first.message}`,
      retryable: [first, ...others].some(error => error.details.retryable === true),
    });
  }
  const skipped = outcomes.flatMap(outcome => (outcome.status === 'skipped' ? [outcome] : []));
  const { error } = skipped.find(({ because }) => because === 'cost') ?? skipped[0] ?? {};
  return limitError('over_capacity', message, error?.details);
}

async function conclude(
  run: PanelRun,
  mode: PanelMode,
  {
    responses,
    synthesizer,
    proposal,
  }: { responses: readonly PanelistResponse[]; synthesizer?: Candidates | undefined; proposal: string },
): Promise<PanelResult> {
  const votes = responses.flatMap(response => {
    const verdict = verdictOf(response);
    return verdict ? [{ label: response.target.label, ...verdict.facts }] : [];
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
    const run: PanelRun = {
      ...{ services, call: noted, scope: noted.thread.id },
      ...{ spent: { usage: noUsage }, exchange: {} },
    };
    const steps = () => (wanted.kind === 'step' ? panelStep(run, mode, wanted) : panelInOneCall(run, mode, wanted));
    return inExchange(services, noted, run.exchange, steps);
  },
};
