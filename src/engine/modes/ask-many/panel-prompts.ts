import { prepareContext, promptForCandidate, turnOf } from '../../../calls/ask/prepare-context.ts';
import type { CallServices } from '../../../calls/ask/services.ts';
import type { ModelTurn, PreparedCall, ThreadedCall } from '../../../calls/call-record.ts';
import type { PanelMode } from '../../../calls/tool.ts';
import { inParallel } from '../../../core/concurrency.ts';
import { isAppError } from '../../../core/errors.ts';
import type { FileRecord } from '../../../core/file.ts';
import { tailHeading } from '../../../core/message.ts';
import type { Candidate } from '../../../core/model.ts';
import { tokensPerMessage } from '../../../core/tokens.ts';
import type { ModelQuestion } from '../../../models/ask-model.ts';
import { windowClass } from '../../../threads/compaction.ts';
import { covers, promptFiles, said, selectTurns, turnTokens } from '../../../threads/transcript.ts';
import {
  type PanelOutcome,
  type PanelPrompt,
  type PanelRun,
  type ReadyQuestion,
  readyQuestion,
  tokensOf,
} from './ask-panelist.ts';
import { anonymousVerdicts, complaintOf, type PanelistResponse, verdictOf } from './panelist-response.ts';
import type { Candidates, Panelist, PanelistRequest } from './panelists.ts';
import { type Labelled, sideBySide } from './verdicts.ts';

/** What every model of a panel is shown: this and nothing else. */
export interface Evidence {
  proposal: string;
  files: readonly string[];
  images: readonly string[];
}

export function panelTail(mode: PanelMode, { stance, stancePrompt }: PanelistRequest): string {
  const own = stancePrompt && `The caller adds for your side, within the limits above:\n${stancePrompt}`;
  return [mode.role, mode.stances[stance], own].filter(Boolean).join('\n\n');
}

/**
 * One model's prompt: the proposal, the files and its side; no history, no findings, no other answers. Files that nobody can
 * read and the like end the call; a window that is too small is that model's own failure.
 */
export async function preparePanelPrompt(
  services: CallServices,
  call: ThreadedCall,
  mode: PanelMode,
  panelist: Panelist,
  { proposal, files, images }: Evidence,
): Promise<PanelPrompt> {
  if (!('candidates' in panelist.who)) return panelist.who;
  const { candidates } = panelist.who;
  const plan: ModelTurn = {
    contribution: proposal,
    tail: panelTail(mode, panelist),
    files,
    images,
    category: mode.category,
    effort: mode.effort,
  };
  const blinded = { ...call, common: { ...call.common, context: 'none' as const } };
  const make = (those: Candidates) =>
    prepareContext(services, { ...blinded, plan, candidates: those, requestedModel: panelist.model });
  try {
    const prepared = await make(candidates);
    return { ...prepared, promptFor: promptForCandidate(prepared, candidate => make([candidate])) };
  } catch (error) {
    if (!isAppError(error) || error.kind !== 'limit' || error.details.class !== 'tokens') throw error;
    return { failure: error };
  }
}

/**
 * The caller's turn, as the thread keeps it: its own words, and the files of the prompt that held the most of them. Text
 * that the thread has already is only noted.
 */
export function storedTurn(
  services: CallServices,
  call: ThreadedCall,
  content: string,
  prompts: readonly PreparedCall[],
): Pick<PreparedCall, 'turn' | 'blobs'> {
  const fullest = prompts.toSorted((a, b) => b.budget.filesUsed - a.budget.filesUsed)[0];
  const turn = turnOf(services, call, {
    seq: call.thread.seq + 1,
    role: 'user',
    content,
    exchange: services.newExchange(),
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

/** How many models are asked at the same time. */
export const maxConcurrentModels = 5;

/**
 * The second round: each model that gave a verdict sees those of the others, by letters instead of names, and gives its own
 * anew. The prompt goes on from the first one, so that vendors' caches take the files. A model that fails keeps its verdict.
 */
export async function reviseVerdicts(
  run: PanelRun,
  mode: PanelMode,
  responses: readonly PanelistResponse[],
  report: (response: PanelistResponse) => void,
): Promise<PanelistResponse[]> {
  const proposal = responses.find(({ prompt }) => prompt)?.prompt?.plan.contribution ?? '';
  const texts = anonymousVerdicts(responses, proposal);
  if (texts.length < 2) return [...responses];
  let sharers = texts.length;
  const questions: (ReadyQuestion | undefined)[] = [];
  for (const response of responses) {
    // Its own verdict too goes without names: what it calls itself must not tell it who else sits there.
    const own = texts.find(({ label }) => label === response.panelist.label);
    if (!response.prompt || !own) {
      questions.push(undefined);
      continue;
    }
    const others = texts.filter(({ label }) => label !== response.panelist.label);
    const { candidates, messages, budget, promptFor } = response.prompt;
    const shown = { messages, maxOutputTokens: budget.answer };
    const revise = secondPrompt(mode, response, { own: own.text, others });
    questions.push(
      await readyQuestion(run, {
        ...{ candidates, ...revise(candidates[0], shown), sharers: sharers-- },
        promptFor: async candidate => revise(candidate, { ...shown, ...(await promptFor?.(candidate)) }),
      }),
    );
  }
  return inParallel([...responses.entries()], maxConcurrentModels, async ([index, response]) => {
    const question = questions[index];
    if (!question) return response;
    const revised = withRevision(response, await question.ask());
    report(revised);
    return revised;
  });
}

function withRevision(response: PanelistResponse, outcome: PanelOutcome): PanelistResponse {
  const next = { ...response, outcome, round: response.round + 1 };
  return verdictOf(next) ? next : { ...response, notRevised: complaintOf(next) };
}

function secondPrompt(
  mode: PanelMode,
  { panelist }: PanelistResponse,
  { own, others }: { own: string; others: readonly Labelled[] },
) {
  const tail = said('user', 'tail', `${tailHeading}\n${mode.review}\n\n${panelTail(mode, panelist)}`);
  const ownTurn = said('assistant', 'turn', own);
  return (candidate: Candidate, shown: Pick<ModelQuestion, 'messages' | 'maxOutputTokens'>) => {
    const first = shown.messages.filter(({ section }) => section !== 'tail');
    const fixed = [...first, ownTurn, tail];
    const used = tokensOf(fixed, candidate) + (fixed.length + 1) * tokensPerMessage + shown.maxOutputTokens;
    const seen = said('user', 'turn', sideBySide(others, (candidate.model.window - used) / 1.5));
    return { ...shown, messages: [...first, ownTurn, seen, tail] };
  };
}
