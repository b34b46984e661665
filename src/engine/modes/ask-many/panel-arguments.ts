import { z } from 'zod';
import { panelFields, quietPanelFields } from '../../../calls/fields.ts';
import type { Stance } from '../../../calls/tool.ts';
import { inputError } from '../../../core/errors.ts';

const fields = z.object({ ...panelFields, ...quietPanelFields });

/** A model as the caller named it, with the side that it is to take. */
export interface SeatRequest {
  model: string;
  stance: Stance;
  stancePrompt?: string;
}

interface Shared {
  /** Absent: the caller named none. */
  models?: SeatRequest[];
  files?: string[];
  images?: string[];
  findings: string;
  /** US dollars for all models of the call together. */
  maxCostUsd?: number;
}

/** All models in one call. */
export interface AtOnceCall extends Shared {
  kind: 'at once';
  proposal: string;
  rounds: number;
  synthesizer?: string;
}

/** One model a call. */
export interface StepCall extends Shared {
  kind: 'step';
  step: string;
  stepNumber: number;
}

/** What the caller wants of a panel; a step number decides between the two forms. */
export function panelCallOf(args: Record<string, unknown>): (AtOnceCall | StepCall) & { warnings: string[] } {
  const given = fields.parse(args);
  const shared: Shared = {
    models: given.models?.map(({ model, stance = 'neutral', stance_prompt: stancePrompt }) => ({
      model: model.trim(),
      stance,
      ...(stancePrompt !== undefined && { stancePrompt }),
    })),
    files: given.relevant_files,
    images: given.images,
    findings: given.findings ?? '',
    maxCostUsd: given.max_cost_usd,
  };
  if (given.step_number !== undefined) {
    const step = given.step ?? given.prompt;
    if (step === undefined) throw missing(['step'], 'Send "step": in step 1 the proposal, later your notes.');
    const ignored = given.step !== undefined && given.prompt !== undefined;
    const warnings = ignored ? ['"prompt" is for calls without step_number; it was ignored.'] : [];
    return { ...shared, kind: 'step', step, stepNumber: given.step_number, warnings };
  }
  if (given.prompt === undefined) {
    throw missing(
      ['prompt'],
      'Send "prompt" with the proposal to ask all models at once, or "step" with step_number 1 and "models" to ask one model a call.',
    );
  }
  const { prompt, rounds = 1, synthesizer } = given;
  return { ...shared, kind: 'at once', proposal: prompt, rounds, synthesizer, warnings: [] };
}

export function missing(names: readonly string[], next: string): Error {
  return inputError(`consensus needs ${names.map(name => `"${name}"`).join(', ')}.`, {
    code: 'MISSING_PARAMETER',
    next,
    validationErrors: names.map(field => ({ field, error: 'missing' })),
  });
}
