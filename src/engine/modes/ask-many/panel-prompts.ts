import { gather } from '../../../calls/ask/gather.ts';
import type { ComposeOptions } from '../../../calls/ask/options.ts';
import type { AskPlan, Gathered, Resumed } from '../../../calls/call-record.ts';
import type { PanelShape } from '../../../calls/tool.ts';
import { type AppError, isAppError } from '../../../core/errors.ts';
import type { FileRecord } from '../../../core/file.ts';
import type { Turn } from '../../../core/thread.ts';
import { windowClass } from '../../../memory/budget.ts';
import { covers, standingFiles } from '../../../memory/seen-files.ts';
import { selectTurns, turnTokens } from '../../../threads/transcript.ts';
import type { SeatRequest } from './panel-arguments.ts';
import type { Candidates, Seat } from './seats.ts';

/** What every model of a panel is shown: this and nothing else. */
export interface Evidence {
  proposal: string;
  files: readonly string[];
  images: readonly string[];
}

export function tailFor(shape: PanelShape, { stance, stancePrompt }: SeatRequest): string {
  const own = stancePrompt && `The caller adds for your side, within the limits above:\n${stancePrompt}`;
  return [shape.role, shape.stances[stance], own].filter(Boolean).join('\n\n');
}

/**
 * One model's prompt: the proposal, the files and its side; no history, no findings, no other answers. Files that nobody can
 * read and the like end the call; a window that is too small is that model's own failure.
 */
export async function prepare(
  options: ComposeOptions,
  call: Resumed,
  shape: PanelShape,
  seat: Seat,
  { proposal, files, images }: Evidence,
): Promise<Gathered | { failure: AppError }> {
  if (!('candidates' in seat.who)) return seat.who;
  const { candidates } = seat.who;
  const plan: AskPlan = {
    kind: 'ask',
    contribution: proposal,
    tail: tailFor(shape, seat),
    files,
    images,
    category: shape.category,
    effort: shape.effort,
    local: {},
    conclude: () => ({}),
  };
  const blinded = { ...call, common: { ...call.common, context: 'none' as const } };
  try {
    return await gather(options, { ...blinded, plan, candidates, requestedModel: seat.model });
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
  call: Resumed,
  content: string,
  prompts: readonly Gathered[],
  blank: Pick<Turn, 'exchange' | 'timestamp'>,
): { turn: Turn; blobs: Gathered['blobs'] } {
  const fullest = prompts.toSorted((a, b) => b.budget.filesUsed - a.budget.filesUsed)[0];
  const turn: Turn = {
    ...blank,
    seq: call.thread.seq + 1,
    role: 'user',
    content,
    toolName: call.tool.name,
    files: fullest ? recordsFor(call, fullest.turn.files, fullest.candidates) : [],
    images: fullest?.turn.images ?? [],
    citations: [],
    tokens: 0,
  };
  const blobs = fullest?.blobs ?? [];
  const previous = call.thread.turns.findLast(({ status }) => status === 'done');
  const texts = new Map(blobs.map(({ sha256, text }) => [sha256, text]));
  return { turn: { ...turn, tokens: turnTokens(turn, previous, texts) }, blobs };
}

function recordsFor({ thread }: Resumed, files: readonly FileRecord[], [{ model }]: Candidates): FileRecord[] {
  const standing = standingFiles(selectTurns(thread, windowClass(model.window)));
  return files.map(file => {
    const before = standing.get(file.path);
    if (before?.sha256 !== file.sha256 || !covers(before, file.range)) return file;
    const { path, size, mtimeMs, lines, sha256 } = file;
    return { path, form: 'unchanged', size, mtimeMs, lines, sha256 };
  });
}
