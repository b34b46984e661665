import { type Exchange, questionBase } from '../../../calls/ask/ask.ts';
import { prepareContext, promptForCandidate, turnOf } from '../../../calls/ask/prepare-context.ts';
import { askedSearch } from '../../../calls/ask/route-call.ts';
import type { PreparedCall, ThreadedCall } from '../../../calls/call-record.ts';
import type { PanelMode } from '../../../calls/tool.ts';
import { isAppError, limitError } from '../../../core/errors.ts';
import type { FileRecord } from '../../../core/file.ts';
import { tailHeading, textOf } from '../../../core/message.ts';
import type { Candidate, Candidates } from '../../../core/model.ts';
import { estimateTokens, tokenFactor, tokensPerMessage } from '../../../core/tokens.ts';
import type { ModelQuestion } from '../../../models/ask-model.ts';
import { windowClass } from '../../../threads/compaction.ts';
import { asMessage, covers, promptFiles, selectTurns, turnTokens } from '../../../threads/transcript.ts';
import { askEach, askOneTarget, type ManyRun, type ReadyQuestion, type TargetOutcome } from './ask-many.ts';
import type { Panelist, PanelistRequest, PanelProgress } from './panelists.ts';
import type { Labelled, PanelistResponse } from './verdicts.ts';
import { anonymousVerdicts, sideBySide, verdictOf, whyNoVerdict } from './verdicts.ts';

/** One panel: its questions belong to a thread. */
export interface PanelRun extends ManyRun {
  mode: PanelMode;
  call: ThreadedCall;
  exchange: Exchange;
}

export type PanelQuestion = { candidates: Candidates } & Pick<
  ModelQuestion,
  'messages' | 'promptFor' | 'sharers' | 'wholeOnly' | 'maxOutputTokens'
>;

/** Reserves what a question may cost, so that each of several gets a part. What it is refused for is its outcome. */
export async function readyQuestion(run: PanelRun, question: PanelQuestion): Promise<ReadyQuestion> {
  const { services, call } = run;
  const { clock, panel, webSearch } = services;
  const [{ model: first }] = question.candidates;
  const reserving = services.reserve({
    ...questionBase(call),
    ...question,
    webSearch: askedSearch(webSearch, call.common),
    // Another provider's model takes the place at once.
    once: question.candidates.some(({ model }) => model.provider !== first.provider),
  });
  await reserving.catch(() => undefined);
  const release = () => void reserving.then(reserved => reserved.release()).catch(() => undefined);
  return {
    release,
    async ask() {
      const left = call.startedAt + panel.totalMs - clock.monotonic();
      if (left < 1_000) {
        release();
        const message = `The ${panel.totalMs / 1_000} s of the call as a whole were used up.`;
        const next = 'Name fewer models, or raise CONSENSUS_TIMEOUT_SECONDS.';
        return { status: 'skipped', because: 'deadline', error: limitError('over_capacity', message, { next }) };
      }
      const limits = { totalMs: Math.min(panel.modelMs, left) };
      return refusedAsSkipped(await askOneTarget(run, async () => (await reserving).ask({ limits })));
    },
  };
}

/** Who is too dear for a limit was not asked. */
function refusedAsSkipped(outcome: TargetOutcome): TargetOutcome {
  if (outcome.status !== 'error') return outcome;
  const { error } = outcome;
  const { class: kind, data } = error.details;
  if (error.kind !== 'limit' || (kind !== 'cost' && data?.limit === undefined)) return outcome;
  return { status: 'skipped', because: 'cost', error };
}

/** The same for a panelist, whose prompt may not have been made. */
export async function readyPanelist(run: PanelRun, panelist: Panelist, sharers: number): Promise<ReadyQuestion> {
  const { who, prompt, tooLong } = panelist;
  const failure = 'failure' in who ? who.failure : tooLong;
  if (failure) return { ask: async () => ({ status: 'error', error: failure, latencyMs: 0 }) };
  if (!prompt) throw new TypeError('a panelist without a prompt');
  const { candidates, messages, budget, promptFor } = prompt;
  return readyQuestion(run, { candidates, messages, promptFor, maxOutputTokens: budget.answer, sharers });
}

function panelTail({ mode }: PanelRun, { stance, stancePrompt }: PanelistRequest): string {
  const own = stancePrompt && `The caller adds for your side, within the limits above:\n${stancePrompt}`;
  return [mode.role, mode.stances[stance], own].filter(Boolean).join('\n\n');
}

/**
 * A panelist with its prompt: the proposal, the files and its side; no history, no findings, no other answers. Files that nobody can
 * read and the like end the call; a window that is too small is that model's own failure.
 */
export async function withPrompt(
  run: PanelRun,
  panelist: Panelist,
  { proposal, files, images }: Pick<PanelProgress, 'proposal' | 'files' | 'images'>,
): Promise<Panelist> {
  const { who, model: requestedModel } = panelist;
  if ('failure' in who) return panelist;
  const { services, call } = run;
  const { category, effort } = run.mode;
  const plan = { contribution: proposal, tail: panelTail(run, panelist), files, images, category, effort };
  const blinded = { ...call, common: { ...call.common, context: 'none' as const } };
  const make = (candidates: Candidates) => prepareContext(services, { ...blinded, plan, candidates, requestedModel });
  try {
    const prepared = await make(who.candidates);
    const promptFor = promptForCandidate(prepared, candidate => make([candidate]));
    return { ...panelist, prompt: { ...prepared, promptFor } };
  } catch (error) {
    if (!isAppError(error) || error.kind !== 'limit' || error.details.class !== 'tokens') throw error;
    return { ...panelist, tooLong: error };
  }
}

/** The caller's turn: its words, and the files of the prompt that held most. Text that the thread has is only noted. */
export function storedTurn({ services, call }: PanelRun, content: string, prompts: readonly PreparedCall[]) {
  const fullest = prompts.toSorted((a, b) => b.budget.filesUsed - a.budget.filesUsed)[0];
  const turn = turnOf(services, call, {
    seq: call.thread.seq + 1,
    role: 'user',
    content,
    exchange: services.threads.newExchange(),
    files: fullest ? recordsFor(call, fullest.turn.files, fullest.candidates) : [],
    images: fullest?.turn.images ?? [],
  });
  const blobs = fullest?.blobs ?? [];
  const previous = call.thread.turns.findLast(({ status }) => status === 'done');
  const texts = new Map(blobs.map(({ sha256, text }) => [sha256, text]));
  return { turn: { ...turn, tokens: turnTokens(turn, previous, texts) }, blobs };
}

function recordsFor({ thread }: ThreadedCall, files: readonly FileRecord[], [{ model }]: Candidates): FileRecord[] {
  const inPrompt = promptFiles(selectTurns(thread, windowClass(model.window)));
  return files.map(file => {
    const before = inPrompt.get(file.path);
    if (before?.sha256 !== file.sha256 || !covers(before, file.range)) return file;
    const { path, size, mtimeMs, lines, sha256 } = file;
    return { path, form: 'unchanged', size, mtimeMs, lines, sha256 };
  });
}

/**
 * The second round: each model that gave a verdict sees those of the others, by letters instead of names, and gives its own
 * anew. The prompt goes on from the first one, so that vendors' caches take the files. A model that fails keeps its verdict.
 */
export async function reviseVerdicts(run: PanelRun, proposal: string, responses: readonly PanelistResponse[]) {
  const texts = anonymousVerdicts(responses, proposal);
  if (texts.length < 2) return [...responses];
  let sharers = texts.length;
  const voters = responses.flatMap(({ target }) => (texts.some(({ label }) => label === target.label) ? [target] : []));
  const ready = (panelist: Panelist) =>
    readyQuestion(run, { ...secondQuestion(run, panelist, texts), sharers: sharers-- });
  const revised = await askEach(run, voters, ready, 'round 2: ');
  return responses.map((response): PanelistResponse => {
    const again = revised.find(({ target }) => target === response.target);
    if (!again) return response;
    const next = { ...response, outcome: again.outcome, round: response.round + 1 };
    return verdictOf(next) ? next : { ...response, notRevised: whyNoVerdict(next) };
  });
}

/** Its own verdict too goes without names: what it calls itself must not tell it who else sits there. */
function secondQuestion(run: PanelRun, panelist: Panelist, verdicts: readonly Labelled[]): PanelQuestion {
  const { prompt, label } = panelist;
  if (!prompt) throw new TypeError('a verdict without a prompt');
  const { candidates, messages, budget, promptFor } = prompt;
  const ownTurn = asMessage('assistant', 'turn', verdicts.find(verdict => verdict.label === label)?.text ?? '');
  const others = verdicts.filter(verdict => verdict.label !== label);
  const tail = asMessage('user', 'tail', `${tailHeading}\n${run.mode.review}\n\n${panelTail(run, panelist)}`);
  const revise = ({ model }: Candidate, shown: Pick<PanelQuestion, 'messages' | 'maxOutputTokens'>) => {
    const first = shown.messages.filter(({ section }) => section !== 'tail');
    const fixed = [...first, ownTurn, tail];
    const tokens = fixed.reduce((sum, message) => sum + estimateTokens(textOf(message), tokenFactor(model.id)), 0);
    const used = tokens + (fixed.length + 1) * tokensPerMessage + shown.maxOutputTokens;
    const seen = asMessage('user', 'turn', sideBySide(others, (model.window - used) / 1.5));
    return { ...shown, messages: [...first, ownTurn, seen, tail] };
  };
  const shown = { messages, maxOutputTokens: budget.answer };
  return {
    candidates,
    ...revise(candidates[0], shown),
    promptFor: async candidate => revise(candidate, { ...shown, ...(await promptFor?.(candidate)) }),
  };
}
