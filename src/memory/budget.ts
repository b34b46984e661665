import { limitError } from '../core/errors.ts';

/** From this window on a larger part goes to content: the answer no longer needs 40 %. */
const wideWindow = 300_000;

export interface BudgetRequest {
  /** The model's window in tokens. */
  window: number;
  /** The most tokens the model may answer with. */
  maxOutput: number;
  /** Tokens that can't be left out: preamble, question, tail. */
  reserved: number;
}

/** How one prompt's window is divided. All figures are tokens; `answer + reserved + rest` is never more than `window`. */
export interface Budget {
  window: number;
  answer: number;
  reserved: number;
  /** For history and files together. */
  rest: number;
  /** The most that history may take; above it the thread is compacted. */
  history: number;
  /** What files get however long the history is. What the history leaves unused is theirs too. */
  filesGuaranteed: number;
}

/** Divides a window. Throws LIMIT with the numbers when the reserved parts alone are too much. */
export function planBudget({ window, maxOutput, reserved }: BudgetRequest): Budget {
  const wide = window >= wideWindow;
  const answer = Math.min(maxOutput, Math.floor(window * (wide ? 0.2 : 0.4)));
  const rest = window - answer - reserved;
  if (rest < 0) {
    throw limitError(
      'tokens',
      `The request takes about ${reserved} tokens, the model has room for ${window - answer}.`,
      {
        next: 'Shorten the text, put it into a file and name that, or choose a model with a larger window (listmodels shows them).',
        data: { window, answer, reserved },
      },
    );
  }
  return {
    window,
    answer,
    reserved,
    rest,
    history: Math.floor(rest * (wide ? 0.4 : 0.5)),
    filesGuaranteed: Math.floor(rest * (wide ? 0.4 : 0.3)),
  };
}

/** The largest power of two that is not above the window: models of one class share a thread's compactions. */
export function windowClass(window: number): number {
  return 2 ** Math.floor(Math.log2(Math.max(1, window)));
}
