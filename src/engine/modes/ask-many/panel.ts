import type { ThreadedCall } from '../../../calls/call-record.ts';
import { errorReply, type Reply } from '../../../calls/reply.ts';
import type { PanelMode } from '../../../calls/tool.ts';
import { inParallel } from '../../../core/concurrency.ts';
import { AppError, isAppError, throwIfAborted } from '../../../core/errors.ts';
import type { Mode, ModeServices } from '../mode.ts';
import { askPanelist, type Outcome, openSession, type PanelRun, purseFor } from './consult.ts';
import { type AtOnceCall, panelCallOf } from './panel-arguments.ts';
import { atOnce, prepare, revise } from './panel-prompts.ts';
import { abandon, begin, panelReply, type Result } from './panel-reply.ts';
import { panelStep } from './panel-steps.ts';
import {
  type Candidates,
  choosePanel,
  chooseSynthesizer,
  modelName,
  type Panelist,
  resolvePanelists,
  seatName,
  validatePanelists,
} from './seats.ts';
import { synthesize } from './synthesis.ts';
import { tallyOf } from './verdicts.ts';
import { complaintOf, nameOf, type PanelistResponse, reportFiles, responseOf, verdictOf } from './voice.ts';

/** All models in one call, each by itself; then a second round if it is wanted, and one model that brings it all together. */
export async function panelAtOnce(
  services: ModeServices,
  shape: PanelMode,
  call: ThreadedCall,
  wanted: AtOnceCall,
): Promise<Reply> {
  const { proposal, files = [], images = [] } = wanted;
  const session = openSession(services, call, purseFor(services, wanted.maxCostUsd));
  const { seats, synthesizer } = await invite(services, shape, call, wanted);
  call.progress.stage('reading files');
  const prompts: Prepared[] = [];
  for (const seat of seats) prompts.push(await prepare(services, call, shape, seat, { proposal, files, images }));
  const made = prompts.filter(prompt => 'messages' in prompt);
  reportFiles(session, made);
  const pending = await begin(services, call, contributionOf(wanted, seats), made);
  try {
    const voices = await hear(session, shape, { seats, prompts, rounds: wanted.rounds });
    if (voices.every(({ outcome }) => outcome.status !== 'success')) {
      await abandon(session, pending);
      return errorReply(nobodyAnswered(voices), {
        toolName: call.tool.name,
        reqId: call.reqId,
        local: { continuation_id: pending.thread.id, responses: voices.map(voice => responseOf(voice, '')) },
      });
    }
    const result = await conclude(session, shape, { voices, synthesizer, proposal });
    return await panelReply(session, pending, result);
  } catch (error) {
    await abandon(session, pending);
    throw error;
  }
}

type Prepared = Awaited<ReturnType<typeof prepare>>;

async function invite(
  { route }: ModeServices,
  shape: PanelMode,
  { common }: ThreadedCall,
  { models, images = [], synthesizer: name }: AtOnceCall,
): Promise<{ seats: Panelist[]; synthesizer?: Candidates }> {
  const { category } = shape;
  const effort = common.effort ?? shape.effort;
  const request = { category, needs: { vision: images.length > 0 }, effort };
  if (models) validatePanelists(models);
  const seats = models?.length ? await resolvePanelists(route, models, request) : await choosePanel(route, request);
  const synthesizer = await chooseSynthesizer(route, name, seats, { category, needs: {}, effort });
  return { seats, ...(synthesizer && { synthesizer }) };
}

function contributionOf({ proposal, findings }: AtOnceCall, seats: readonly Panelist[]): string {
  const own = findings && `The caller’s own view: ${findings}`;
  return [`Proposal for a consensus: ${proposal}`, own, `Models to judge it: ${seats.map(seatName).join(', ')}`]
    .filter(Boolean)
    .join('\n\n');
}

async function hear(
  session: PanelRun,
  shape: PanelMode,
  { seats, prompts, rounds }: { seats: readonly Panelist[]; prompts: readonly Prepared[]; rounds: number },
): Promise<PanelistResponse[]> {
  const { progress, signal } = session.call;
  throwIfAborted(signal);
  let sharers = prompts.filter(prompt => 'messages' in prompt).length;
  const questions = prompts.map(prompt => questionOf(session, prompt, () => sharers--));
  progress.stage(`asking ${seats.length} models`);
  let ready = 0;
  const tell = (voice: PanelistResponse) => progress.stage(`${told(voice)} (${++ready} of ${seats.length})`);
  const voices = await inParallel([...seats.entries()], atOnce, async ([index, seat]) => {
    const prompt = prompts[index];
    const outcome = (await questions[index]?.()) ?? missed(seat);
    const voice: PanelistResponse = { seat, outcome, round: 1, ...(prompt && 'messages' in prompt && { prompt }) };
    tell(voice);
    return voice;
  });
  if (rounds < 2) return voices;
  ready = 0;
  return revise(session, shape, voices, voice => progress.stage(`round 2: ${told(voice)} (${++ready})`));
}

function questionOf(session: PanelRun, prompt: Prepared, sharers: () => number): () => Promise<Outcome> {
  if ('failure' in prompt) return async () => ({ status: 'error', error: prompt.failure, latencyMs: 0 });
  const { candidates, messages, budget } = prompt;
  return askPanelist(session, { candidates, messages, maxOutputTokens: budget.answer, sharers: sharers() });
}

function missed({ model }: Panelist): Outcome {
  return { status: 'skipped', because: 'deadline', message: `${model} was not asked.` };
}

function told(voice: PanelistResponse): string {
  const name = nameOf(voice);
  switch (voice.outcome.status) {
    case 'success':
      return `${name} answered in ${(voice.outcome.answer.latencyMs / 1_000).toFixed(1)} s`;
    case 'error':
      return `${name} failed`;
    case 'skipped':
      return `${name} was not asked (${voice.outcome.because})`;
  }
}

function nobodyAnswered(voices: readonly PanelistResponse[]): AppError {
  const told = voices.map(voice => `${voice.seat.model}: ${complaintOf(voice)}`).join(' · ');
  const errors = voices.flatMap(({ outcome }) => (outcome.status === 'error' ? [outcome.error] : []));
  const [first] = errors;
  const message = `None of the ${voices.length} models gave a verdict. ${told}`;
  if (!first) {
    const [dear] = voices.flatMap(({ outcome }) =>
      outcome.status === 'skipped' && outcome.because === 'cost' ? [outcome] : [],
    );
    return new AppError('limit', message, {
      code: 'LIMIT',
      class: dear ? 'cost' : 'over_capacity',
      next: dear ? (dear.next ?? 'Name cheaper models.') : 'Name fewer models, or raise CONSENSUS_TIMEOUT_SECONDS.',
    });
  }
  const { code, class: kind, next } = first.details;
  return new AppError(first.kind, message, {
    code,
    class:
      errors.length === 1 || errors.every(error => error.details.class === kind) ? kind : 'exhausted_fallback_chain',
    next: `Name other models, or send the call again. About the first: ${next ?? first.message}`,
    retryable: errors.some(error => error.details.retryable === true),
  });
}

async function conclude(
  session: PanelRun,
  shape: PanelMode,
  {
    voices,
    synthesizer,
    proposal,
  }: { voices: readonly PanelistResponse[]; synthesizer?: Candidates; proposal: string },
): Promise<Result> {
  const votes = voices.flatMap(voice => {
    const verdict = verdictOf(voice);
    return verdict ? [{ label: voice.seat.label, ...verdict.facts }] : [];
  });
  const result: Result = { voices, tally: tallyOf(votes) };
  // One verdict has nothing to be brought together with.
  if (!synthesizer || votes.length < 2) return result;
  const { progress } = session.call;
  progress.stage(`bringing ${votes.length} verdicts together (${modelName(synthesizer[0])})`);
  const { outcome, synthesis } = await synthesize(session, shape, {
    candidates: synthesizer,
    voices,
    proposal,
    tally: result.tally,
  });
  return { ...result, synthesizer: { name: modelName(synthesizer[0]), outcome }, ...(synthesis && { synthesis }) };
}

/** Several models judge one proposal, none of them seeing the others: all in one call, or one model a call. */
export const panel: Mode<PanelMode> = { thread: 'one', execute: executePanel };

async function executePanel(shape: PanelMode, call: ThreadedCall, services: ModeServices): Promise<Reply> {
  const { warnings, ...wanted } = panelCallOf(call.args);
  const noted = { ...call, warnings: [...call.warnings, ...warnings] };
  try {
    return await (wanted.kind === 'step'
      ? panelStep(services, shape, noted, wanted)
      : panelAtOnce(services, shape, noted, wanted));
  } catch (error) {
    if (!isAppError(error)) throw error;
    return errorReply(error, { toolName: call.tool.name, reqId: call.reqId });
  }
}
