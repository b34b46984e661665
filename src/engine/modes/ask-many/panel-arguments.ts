import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { panelFields, quietPanelFields, stance } from '../../../calls/fields.ts';
import { inputError } from '../../../core/errors.ts';
import { numberIn, recordsIn, textIn, textsIn } from '../../../core/json.ts';
import { editDistance, safeCut } from '../../../core/text.ts';
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
    models: given.models?.flatMap(each => {
      if (typeof each === 'string') return each.split(',').map(panelistOf);
      const { model, stance, stance_prompt: stancePrompt } = each;
      const named = stance ? { model: model.trim(), stance } : panelistOf(model);
      return [{ ...named, ...(stancePrompt !== undefined && { stancePrompt }) }];
    }),
    files: given.relevant_files,
    images: given.images,
    findings: given.findings ?? '',
  };
  if (shared.models?.length === 0) delete shared.models;
  // Hosts that fill in every field number a step that is none.
  const { step_number: number = 1, total_steps: total = 1, next_step_required: more = false } = given;
  const isFilledIn = given.step === undefined && given.prompt !== undefined && number === 1 && total === 1 && !more;
  if (given.step_number !== undefined && !isFilledIn) {
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

/** A model as one text: its name, and after a last colon its side. */
function panelistOf(text: string): PanelistRequest {
  const [, name = '', word = ''] = /^(.*):([^:]*)$/s.exec(text) ?? [];
  const side = stance.safeParse(word.trim().toLowerCase()).data;
  const model = (side ? name : text).trim();
  // Names have other words behind a colon: only what is nearly a side is taken for a slip.
  const isNear = (each: string) => each.length > 3 && editDistance(each, word.trim().toLowerCase(), 2) <= 2;
  const near = side ? undefined : stance.options.find(isNear);
  if (model !== '' && near === undefined) return { model, stance: side ?? 'neutral' };
  throw inputError(
    `consensus can't ask "${safeCut(text.trim(), 80)}": ${near ? `"${word.trim()}" is no stance` : 'it names no model'}.`,
    {
      next: 'Write each of "models" as "id", "id:for", "id:against", "id:neutral", or {"model": "id", "stance": "against"}.',
      validationErrors: [
        { field: 'models', error: near ? `unknown stance: ${word.trim()}` : 'no model', allowed: stance.options },
      ],
    },
  );
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

/** The model that a step asks, as its place in the agenda, or whose verdict it brings once more. */
export interface PanelPlace {
  progress: PanelProgress;
  at: number;
  warnings: string[];
}

/**
 * The agenda as it is before this step. Step 1 begins a new one, unless it says again what the open one began with. Any other
 * step asks the next model, or, where its own one was asked, brings that verdict: nobody is paid twice.
 */
export function readPanelProgress(call: StepCall, state: WorkflowState | undefined, threadGiven: boolean): PanelPlace {
  const { stepNumber, models, files = [], images = [] } = call;
  const known = readAgenda(state);
  const next = known?.heard.length ?? 0;
  const isOpen = known !== undefined && next < known.models.length;
  const isRepeated = isOpen && known.proposal === call.step && isDeepStrictEqual(models ?? known.models, known.models);
  if (known && (stepNumber > 1 || isRepeated)) {
    const at = stepNumber <= next || !isOpen ? Math.min(stepNumber, next) - 1 : next;
    const progress = { ...known, ...(files.length > 0 && { files }), ...(images.length > 0 && { images }) };
    return { progress, at, warnings: placeWarnings(stepNumber, at, known) };
  }
  if (!models || models.length === 0) throw withoutModels(stepNumber, threadGiven);
  validatePanelists(models);
  const warnings =
    stepNumber === 1 ? [] : [`There is no earlier step of this consensus: step ${stepNumber} began it, as step 1.`];
  return { progress: { proposal: call.step, models, files, images, heard: [] }, at: 0, warnings };
}

function placeWarnings(stepNumber: number, at: number, { heard }: PanelProgress): string[] {
  if (heard[at]?.status === 'success') {
    return [
      `Step ${at + 1} had come before: its verdict is given again, and nobody was asked. Begin anew with step 1.`,
    ];
  }
  return stepNumber === at + 1 ? [] : [`Step ${stepNumber} came where step ${at + 1} was next: it counts as that.`];
}

/** Nothing says whom to ask: neither the call nor the thread. */
function withoutModels(stepNumber: number, threadGiven: boolean): Error {
  const again =
    'Send step 1 again with models: [{model, stance}]; or "prompt" instead of the steps to have three chosen and asked at once.';
  if (stepNumber === 1) return missing(['models'], again);
  const why = threadGiven ? 'in a thread without a consensus' : 'without continuation_id';
  return inputError(`consensus was sent step ${stepNumber} ${why}, so the steps before it are unknown.`, {
    next: `Send the continuation_id that the reply to step 1 gave, or "last" for the newest thread of this project. ${again}`,
    validationErrors: [{ field: 'continuation_id', error: 'no step before it', allowed: ['the id of step 1', 'last'] }],
  });
}

function readAgenda(state: WorkflowState | undefined): PanelProgress | undefined {
  if (!state || typeof state.proposal !== 'string' || recordsIn(state.models).length === 0) return undefined;
  return {
    proposal: state.proposal,
    models: recordsIn(state.models).map(({ model, stance, stancePrompt }) => ({
      model: textIn(model),
      stance: stanceOf(stance),
      ...(typeof stancePrompt === 'string' && { stancePrompt }),
    })),
    files: textsIn(state.files),
    images: textsIn(state.images),
    heard: recordsIn(state.heard).map(({ model, stance, status, text, turn, confidence, position }) => ({
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
