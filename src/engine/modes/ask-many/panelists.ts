import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { CallServices } from '../../../calls/ask/services.ts';
import type { PreparedCall } from '../../../calls/call-record.ts';
import { panelFields, quietPanelFields, stance } from '../../../calls/fields.ts';
import { type AppError, inputError, isAppError, limitError, missingError } from '../../../core/errors.ts';
import { type Candidate, type Candidates, type ModelInfo, modelName } from '../../../core/model.ts';
import { editDistance, safeCut } from '../../../core/text.ts';
import type { WorkflowState } from '../../../core/thread.ts';
import type { ModelQuestion } from '../../../models/ask-model.ts';
import { sameModel, vendorOf } from '../../../models/routing/names.ts';
import type { ModelRequest } from '../../../models/routing/roster.ts';
import { resolveTarget, type Target } from './ask-many.ts';

/** A model as the caller named it, with the side that it is to take. */
const panelistRequest = z.object({ model: z.string(), stance, stancePrompt: z.string().optional() });

export type PanelistRequest = z.infer<typeof panelistRequest>;

/** One place on a panel: who is asked, and for which side. */
export interface Panelist extends PanelistRequest, Target {
  /** What the others know it by: A, B, C … */
  label: string;
  /** What it is asked; absent: nothing yet, or it can't be. */
  prompt?: PreparedCall & Pick<ModelQuestion, 'promptFor'>;
  /** Its window does not hold the prompt. */
  tooLong?: AppError;
}

type Router = Pick<CallServices, 'route'>;

const maxPanelists = 12;

export const panelistName = ({ model, stance }: Pick<PanelistRequest, 'model' | 'stance'>): string =>
  `${model}:${stance}`;

export const labelOf = (index: number): string => String.fromCharCode(65 + index);

/** Refuses what would ask one model for one side twice; names are compared as they were typed. */
export function validatePanelists(requests: readonly PanelistRequest[]): void {
  if (requests.length > maxPanelists)
    throw limitError('size', `${requests.length} models were named; a consensus asks at most ${maxPanelists}.`, {
      next: `Name at most ${maxPanelists} models.`,
    });
  refuseTwins(requests, request => `${request.model.toLowerCase()}:${request.stance}`);
}

/** Finds out who the names stand for. A name that leads nowhere leaves its panelist without a model; two that lead to one are refused. */
export async function resolvePanelists(services: Router, requests: readonly PanelistRequest[], request: Request) {
  const panelists: Panelist[] = [];
  for (const [index, wanted] of requests.entries()) {
    const target = await resolveTarget(services, { ...request, name: wanted.model });
    panelists.push({ ...wanted, ...target, label: labelOf(index) });
  }
  const known = panelists.filter(panelist => 'candidates' in panelist.who);
  refuseTwins(known, identityOf);
  return panelists;
}

/** The same model that is to think harder is another panelist. */
function identityOf({ who, stance }: Panelist): string {
  if (!('candidates' in who)) return '';
  const [first] = who.candidates;
  return [modelName(first), first.effort, first.thinkingBudget, stance].join(' ');
}

function refuseTwins<Item extends PanelistRequest>(items: readonly Item[], key: (item: Item) => string): void {
  const seen = new Map<string, Item>();
  for (const item of items) {
    const twin = seen.get(key(item));
    if (twin) {
      const same =
        twin.model === item.model
          ? `"${item.model}" is`
          : `"${twin.model}" and "${item.model}" are one model, which is`;
      throw inputError(`${same} listed twice with the stance "${item.stance}".`, {
        next: 'Give each entry a different stance (for, against, neutral), or choose another model.',
        validationErrors: [{ field: 'models', error: `duplicate: ${panelistName(item)}` }],
      });
    }
    seen.set(key(item), item);
  }
}

const defaultPanelists = 3;

type Request = Omit<ModelRequest, 'name' | 'avoid'>;
type Avoid = (model: ModelInfo) => boolean;

/** Three models of different vendors, or, where there are fewer vendors, as many different models as there are. */
export async function choosePanel(services: Router, request: Request): Promise<Panelist[]> {
  const chosen: Candidate[] = [];
  const sharing = { ...request, sharers: defaultPanelists + 1 };
  for (const byVendor of [true, false]) {
    while (chosen.length < defaultPanelists) {
      const taken: Avoid = model =>
        chosen.some(other => isSame(other.model, model) || (byVendor && vendorOf(other.model) === vendorOf(model)));
      const [next] = (await chosenWithout(services, sharing, taken, chosen.length > 0)) ?? [];
      if (!next) break;
      chosen.push(next);
    }
  }
  const taken = [...chosen];
  const panelists: Panelist[] = [];
  for (const [index, candidate] of chosen.entries()) {
    // Takes its place where it fails: a model of another provider that nobody else on the panel is.
    const avoid: Avoid = model =>
      model.provider === candidate.model.provider || taken.some(other => isSame(other.model, model));
    const standIn = (await chosenWithout(services, sharing, avoid, true))?.slice(0, 1) ?? [];
    taken.push(...standIn);
    const who: Target['who'] = { candidates: [candidate, ...standIn] };
    panelists.push({ model: modelName(candidate), stance: 'neutral', label: labelOf(index), who, warnings: [] });
  }
  return panelists;
}

/** The named model, else one outside the panel, else its best. `panelNamed`: no model besides is shown the text. */
export async function chooseSynthesizer(
  services: Router,
  { name, panelNamed }: { name?: string | undefined; panelNamed: boolean },
  panelists: readonly Target[],
  request: Request,
): Promise<Candidates | undefined> {
  if (name !== undefined) return (await services.route({ ...request, name })).candidates;
  const panel = panelists.flatMap(({ who }) => ('candidates' in who ? [who.candidates[0]] : []));
  const onPanel: Avoid = model => panel.some(other => isSame(other.model, model));
  const outsider = panelNamed ? undefined : await chosenWithout(services, request, onPanel, panel.length > 0);
  const [best, ...others] = panel.toSorted((a, b) => b.model.score - a.model.score);
  return outsider ?? (best && [best, ...others]);
}

const isSame = (a: ModelInfo, b: ModelInfo): boolean => (a.provider === b.provider && a.id === b.id) || sameModel(a, b);

/** Undefined when nobody is left; with nobody chosen before, that is an error for the caller. */
async function chosenWithout(services: Router, request: Request, avoid: Avoid, optional: boolean) {
  try {
    return (await services.route({ ...request, name: 'auto', avoid })).candidates;
  } catch (error) {
    // Routing says in its own words that no model is left; enough are there already.
    if (optional && isAppError(error) && error.kind !== 'bug') return undefined;
    throw error;
  }
}

const fields = z.object({ ...panelFields, ...quietPanelFields });

type PanelCall = ReturnType<typeof panelCallOf>;

/** All models in one call. */
export type SingleCallPanel = Omit<Extract<PanelCall, { kind: 'at once' }>, 'warnings'>;

/** One model a call. */
export type StepCall = Omit<Extract<PanelCall, { kind: 'step' }>, 'warnings'>;

/** What the caller wants of a panel; a step number decides between the two forms. `models` is undefined where it named none. */
export function panelCallOf(args: Record<string, unknown>) {
  const given = fields.parse(args);
  const named = given.models?.flatMap((each): PanelistRequest[] => {
    if (typeof each === 'string') return each.split(',').map(panelistOf);
    const { model, stance, stance_prompt: stancePrompt } = each;
    const request = stance ? { model: model.trim(), stance } : panelistOf(model);
    return [{ ...request, ...(stancePrompt !== undefined && { stancePrompt }) }];
  });
  const { relevant_files: files, images, findings = '' } = given;
  const shared = { models: named?.length ? named : undefined, files, images, findings };
  // Hosts that fill in every field number a step that is none.
  const { step_number: number = 1, total_steps: total = 1, next_step_required: more = false } = given;
  const isFilledIn = given.step === undefined && given.prompt !== undefined && number === 1 && total === 1 && !more;
  if (given.step_number !== undefined && !isFilledIn) {
    const step = given.step ?? given.prompt;
    if (step === undefined) throw missing('step', 'Send "step": in step 1 the proposal, later your notes.');
    const ignored = given.step !== undefined && given.prompt !== undefined;
    const warnings = ignored ? ['"prompt" is for calls without step_number; it was ignored.'] : [];
    return { ...shared, kind: 'step' as const, step, stepNumber: given.step_number, warnings };
  }
  if (given.prompt === undefined) {
    const next =
      'Send "prompt" with the proposal to ask all models at once, or "step" with step_number 1 and "models" to ask one model a call.';
    throw missing('prompt', next);
  }
  const { prompt, rounds = 1, synthesizer } = given;
  return { ...shared, kind: 'at once' as const, proposal: prompt, rounds, synthesizer, warnings: [] };
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
  const why = near ? `"${word.trim()}" is no stance` : 'it names no model';
  const error = near ? `unknown stance: ${word.trim()}` : 'no model';
  throw inputError(`consensus cannot ask "${safeCut(text.trim(), 80)}": ${why}.`, {
    next: 'Write each of "models" as "id", "id:for", "id:against", "id:neutral", or {"model": "id", "stance": "against"}.',
    validationErrors: [{ field: 'models', error, allowed: stance.options }],
  });
}

const missing = (field: string, next: string): Error => missingError(field, `consensus needs "${field}".`, next);

/** What came of an earlier step, in short: the thread has the whole. */
const heardPanelist = z.object({
  model: z.string(),
  stance,
  status: z.string(),
  /** The verdict in a sentence, or what went wrong. */
  text: z.string(),
  /** The thread's turn with the whole verdict. */
  turn: z.number(),
  confidence: z.number().optional(),
  position: z.string().optional(),
});

export type HeardPanelist = z.infer<typeof heardPanelist>;

/** A panel that is asked one model a call: what the thread remembers between the calls. */
const panelProgress = z.object({
  proposal: z.string(),
  models: z.array(panelistRequest).min(1),
  files: z.array(z.string()),
  images: z.array(z.string()),
  /** In the order of the models; its length is the number of the last step. */
  heard: z.array(heardPanelist),
});

export type PanelProgress = z.infer<typeof panelProgress>;

/**
 * The agenda as it is before this step. Step 1 begins a new one, unless it says again what one began with that is open, or whose
 * first model failed. Any other step asks the next model, or, where its own one was asked, brings that verdict: nobody is paid
 * twice. `at` is that model's place.
 */
export function readPanelProgress(call: StepCall, state: WorkflowState | undefined, threadGiven: boolean) {
  const { stepNumber, models, files = [], images = [] } = call;
  const known = panelProgress.safeParse(state).data;
  const next = known?.heard.length ?? 0;
  const isOpen = known !== undefined && next < known.models.length;
  const isSame = isDeepStrictEqual(models ?? known?.models, known?.models);
  const mayRepeat = isOpen || known?.heard[0]?.status !== 'success';
  const isRepeated = mayRepeat && known?.proposal === call.step && isSame;
  if (known && (stepNumber > 1 || isRepeated)) {
    const at = stepNumber <= next || !isOpen ? Math.min(stepNumber, next) - 1 : next;
    const progress = { ...known, ...(files.length > 0 && { files }), ...(images.length > 0 && { images }) };
    const warnings = placeWarnings(stepNumber, at, known);
    return { progress, at, warnings: isSame ? warnings : [...warnings, otherModels] };
  }
  if (!models || models.length === 0) throw withoutModels(stepNumber, threadGiven);
  validatePanelists(models);
  const warnings =
    stepNumber === 1 ? [] : [`There is no earlier step of this consensus: step ${stepNumber} began it, as step 1.`];
  return { progress: { proposal: call.step, models, files, images, heard: [] }, at: 0, warnings };
}

const otherModels =
  '"models" was ignored: the models of this consensus were named in its first step. To ask others, start over with step 1.';

function placeWarnings(stepNumber: number, at: number, { heard }: PanelProgress): string[] {
  if (heard[at]?.status === 'success')
    return [
      `Step ${at + 1} had come before: its verdict is returned again, and no model was asked. Start over with step 1.`,
    ];
  return stepNumber === at + 1 ? [] : [`Step ${stepNumber} came where step ${at + 1} was next: it counts as that.`];
}

/** Nothing says whom to ask: neither the call nor the thread. */
function withoutModels(stepNumber: number, threadGiven: boolean): Error {
  const again =
    'Send step 1 again with models: [{model, stance}]; or "prompt" instead of the steps to have three chosen and asked at once.';
  if (stepNumber === 1) return missing('models', again);
  const why = threadGiven ? 'in a thread without a consensus' : 'without continuation_id';
  return inputError(`consensus was sent step ${stepNumber} ${why}, so the steps before it are unknown.`, {
    next: `Send the continuation_id that the reply to step 1 gave, or "last" for the newest thread of this project. ${again}`,
    validationErrors: [{ field: 'continuation_id', error: 'no step before it', allowed: ['the id of step 1', 'last'] }],
  });
}
