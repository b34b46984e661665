import { z } from 'zod';
import { panelFields, quietPanelFields } from '../../../calls/fields.ts';
import { inputError } from '../../../core/errors.ts';
import { isRecord, numberIn, textIn, textsIn } from '../../../core/json.ts';
import type { WorkflowState } from '../../../core/thread.ts';
import { type PanelistRequest, validatePanelists } from './panelists.ts';
import type { Vote } from './verdicts.ts';

const fields = z.object({ ...panelFields, ...quietPanelFields });

interface Shared {
  /** Absent: the caller named none. */
  models?: PanelistRequest[];
  files?: string[];
  images?: string[];
  findings: string;
  /** US dollars for all models of the call together. */
  maxCostUsd?: number;
}

/** All models in one call. */
export interface SingleCallPanel extends Shared {
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
export function panelCallOf(args: Record<string, unknown>): (SingleCallPanel | StepCall) & { warnings: string[] } {
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

/** What came of an earlier step, in short: the thread has the whole. */
export interface HeardPanelist extends Omit<Vote, 'label'> {
  model: string;
  stance: PanelistRequest['stance'];
  status: string;
  /** The verdict in a sentence, or what went wrong. */
  text: string;
  /** The thread's turn with the whole verdict. */
  turn: number;
}

/** A panel that is asked one model a call: what the thread remembers between the calls. */
export interface PanelProgress {
  proposal: string;
  models: PanelistRequest[];
  files: string[];
  images: string[];
  /** In the order of the models; its length is the number of the last step. */
  heard: HeardPanelist[];
}

/** The agenda as it is before this step. Step 1 begins a new one; any other must be the next of the one there is. */
export function readPanelProgress(
  call: StepCall,
  state: WorkflowState | undefined,
  threadGiven: boolean,
): PanelProgress {
  const { stepNumber, files = [], images = [] } = call;
  if (stepNumber === 1) {
    const { models } = call;
    if (!models || models.length === 0) {
      throw missing(
        ['models'],
        'Send step 1 again with models: [{model, stance}]; or "prompt" instead of the steps to have three chosen and asked at once.',
      );
    }
    validatePanelists(models);
    return { proposal: call.step, models, files, images, heard: [] };
  }
  const progress = readAgenda(state);
  if (!progress || progress.heard.length >= progress.models.length) throw withoutAgenda(stepNumber, threadGiven);
  const expected = progress.heard.length + 1;
  if (stepNumber !== expected) {
    throw inputError(`consensus expected step ${expected} (or 1, to begin again), not ${stepNumber}.`, {
      next: `Send step_number ${expected}: it asks ${progress.models[expected - 1]?.model}.`,
      validationErrors: [
        { field: 'step_number', error: `out of order: ${stepNumber}`, allowed: [String(expected), '1'] },
      ],
    });
  }
  return { ...progress, ...(files.length > 0 && { files }), ...(images.length > 0 && { images }) };
}

function withoutAgenda(stepNumber: number, threadGiven: boolean): Error {
  if (threadGiven) {
    return inputError(`consensus has no open step in this thread, so step ${stepNumber} asks nobody.`, {
      next: 'If the last reply said consensus_workflow_complete, all models were heard: bring their verdicts together yourself. Else begin with step_number 1.',
      validationErrors: [{ field: 'step_number', error: 'nothing to go on with', allowed: ['1'] }],
    });
  }
  return inputError(
    `consensus was sent step ${stepNumber} without continuation_id, so the steps before it are unknown.`,
    {
      next: 'Send the continuation_id that the reply to step 1 gave, "last" for the newest thread of this project, or begin again with step_number 1.',
      validationErrors: [{ field: 'continuation_id', error: 'missing', allowed: ['the id of step 1', 'last'] }],
    },
  );
}

function readAgenda(state: WorkflowState | undefined): PanelProgress | undefined {
  if (!state || typeof state.proposal !== 'string' || !Array.isArray(state.models)) return undefined;
  return {
    proposal: state.proposal,
    models: records(state.models).map(({ model, stance, stancePrompt }) => ({
      model: textIn(model),
      stance: stanceOf(stance),
      ...(typeof stancePrompt === 'string' && { stancePrompt }),
    })),
    files: textsIn(state.files),
    images: textsIn(state.images),
    heard: records(state.heard).map(({ model, stance, status, text, turn, confidence, position }) => ({
      model: textIn(model),
      stance: stanceOf(stance),
      status: textIn(status),
      text: textIn(text),
      turn: numberIn(turn),
      ...(typeof confidence === 'number' && { confidence }),
      ...(typeof position === 'string' && { position }),
    })),
  };
}

function stanceOf(value: unknown): PanelistRequest['stance'] {
  return value === 'for' || value === 'against' ? value : 'neutral';
}

function records(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
