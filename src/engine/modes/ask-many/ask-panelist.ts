import { type Exchange, questionBase } from '../../../calls/ask/ask.ts';
import { askedSearch } from '../../../calls/ask/route-call.ts';
import type { ThreadedCall } from '../../../calls/call-record.ts';
import { type AppError, limitError } from '../../../core/errors.ts';
import type { Message } from '../../../core/message.ts';
import type { ModelQuestion } from '../../../models/ask-model.ts';
import { type Candidates, type ManyRun, outcomeOf, type ReadyQuestion, type TargetOutcome } from './ask-many.ts';
import type { Panelist } from './panelists.ts';

/** One panel: its questions belong to a thread. */
export interface PanelRun extends ManyRun {
  call: ThreadedCall;
  exchange: Exchange;
}

export interface PanelQuestion extends Pick<ModelQuestion, 'promptFor' | 'sharers' | 'wholeOnly'> {
  candidates: Candidates;
  messages: readonly Message[];
  /** Room for the answer in the model's window. */
  maxOutputTokens: number;
}

/** Reserves what a question may cost, so that each of several gets a part. What it is refused for is its outcome. */
export async function readyQuestion(run: PanelRun, question: PanelQuestion): Promise<ReadyQuestion> {
  const { services, call } = run;
  const { clock, panel, webSearch } = services;
  const [{ model: first }] = question.candidates;
  const reserving = services.reserve({
    ...questionBase(call),
    ...question,
    payer: { owner: call.request.principal.owner, thread: call.thread.id },
    webSearch: askedSearch(webSearch, call.common),
    // Another provider's model takes the place at once.
    once: question.candidates.some(({ model }) => model.provider !== first.provider),
    cacheKey: call.thread.id,
  });
  await reserving.catch(() => undefined);
  const release = () => void reserving.then(reserved => reserved.release()).catch(() => undefined);
  return {
    release,
    async ask() {
      const left = call.startedAt + panel.totalMs - clock.monotonic();
      if (left < 1_000) {
        release();
        return { status: 'skipped', because: 'deadline', error: tooLate(panel.totalMs) };
      }
      const limits = { totalMs: Math.min(panel.modelMs, left) };
      return refusedAsSkipped(await outcomeOf(run, async () => (await reserving).ask({ limits })));
    },
  };
}

/** Who is too dear for a limit was not asked. */
function refusedAsSkipped(outcome: TargetOutcome): TargetOutcome {
  if (outcome.status !== 'error') return outcome;
  const { error } = outcome;
  if (error.kind !== 'limit' || error.details.class !== 'cost') return outcome;
  return { status: 'skipped', because: 'cost', error };
}

function tooLate(totalMs: number): AppError {
  return limitError('over_capacity', `The ${totalMs / 1_000} s of the call as a whole were used up.`, {
    next: 'Name fewer models, or raise CONSENSUS_TIMEOUT_SECONDS.',
  });
}

/** The same for a panelist, whose prompt may not have been made. */
export async function readyPanelist(
  run: PanelRun,
  { who, prompt, tooLong }: Panelist,
  sharers: number,
): Promise<ReadyQuestion> {
  const failure = 'failure' in who ? who.failure : tooLong;
  if (failure) return { ask: async () => ({ status: 'error', error: failure, latencyMs: 0 }) };
  if (!prompt) throw new TypeError('a panelist without a prompt');
  const { candidates, messages, budget, promptFor } = prompt;
  return readyQuestion(run, { candidates, messages, promptFor, maxOutputTokens: budget.answer, sharers });
}
