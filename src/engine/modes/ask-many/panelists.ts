import type { CallServices } from '../../../calls/ask/services.ts';
import type { PreparedCall } from '../../../calls/call-record.ts';
import type { Stance } from '../../../calls/tool.ts';
import { type AppError, inputError, isAppError, limitError } from '../../../core/errors.ts';
import type { Candidate, Candidates, ModelInfo } from '../../../core/model.ts';
import type { ModelQuestion } from '../../../models/ask-model.ts';
import { sameModel, vendorOf } from '../../../models/routing/names.ts';
import type { ModelRequest } from '../../../models/routing/roster.ts';
import { modelName, resolveTarget, type Target } from './ask-many.ts';

/** A model as the caller named it, with the side that it is to take. */
export interface PanelistRequest {
  model: string;
  stance: Stance;
  stancePrompt?: string;
}

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

export function panelistName({ model, stance }: Pick<PanelistRequest, 'model' | 'stance'>): string {
  return `${model}:${stance}`;
}

export function labelOf(index: number): string {
  return String.fromCharCode(65 + index);
}

/** Refuses what would ask one model for one side twice; names are compared as they were typed. */
export function validatePanelists(requests: readonly PanelistRequest[]): void {
  if (requests.length > maxPanelists) {
    throw limitError('size', `${requests.length} models were named; a consensus asks at most ${maxPanelists}.`, {
      next: `Name at most ${maxPanelists} models.`,
    });
  }
  refuseTwins(requests, request => `${request.model.toLowerCase()}:${request.stance}`);
}

/** Finds out who the names stand for. A name that leads nowhere leaves its panelist without a model; two that lead to one are refused. */
export async function resolvePanelists(
  services: Router,
  requests: readonly PanelistRequest[],
  request: Omit<ModelRequest, 'name'>,
): Promise<Panelist[]> {
  const panelists: Panelist[] = [];
  for (const [index, wanted] of requests.entries()) {
    const target = await resolveTarget(services, { ...request, name: wanted.model });
    panelists.push({ ...wanted, ...target, label: labelOf(index) });
  }
  refuseTwins(
    panelists.filter(panelist => 'candidates' in panelist.who),
    panelist => identityOf(panelist),
  );
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
        twin.model === item.model ? `"${item.model}"` : `"${twin.model}" and "${item.model}" are one model and`;
      throw inputError(`${same} would be asked twice with the stance "${item.stance}".`, {
        next: 'Give each mention of a model a stance of its own (for, against, neutral), or name another model.',
        validationErrors: [{ field: 'models', error: `duplicate: ${panelistName(item)}` }],
      });
    }
    seen.set(key(item), item);
  }
}

const defaultPanelists = 3;

type Request = Omit<ModelRequest, 'name' | 'avoid'>;

/** Three models of different vendors, or, where there are fewer vendors, as many different models as there are. */
export async function choosePanel(services: Router, request: Request): Promise<Panelist[]> {
  const chosen: Candidate[] = [];
  const sharing = { ...request, sharers: defaultPanelists + 1 };
  for (const byVendor of [true, false]) {
    while (chosen.length < defaultPanelists) {
      const taken = (model: ModelInfo) =>
        chosen.some(other => isSame(other.model, model) || (byVendor && vendorOf(other.model) === vendorOf(model)));
      const [next] = (await chosenWithout(services, sharing, taken, chosen.length > 0)) ?? [];
      if (!next) break;
      chosen.push(next);
    }
  }
  const taken = [...chosen];
  const panelists: Panelist[] = [];
  for (const [index, candidate] of chosen.entries()) {
    const standIn = await standInFor(services, sharing, candidate, taken);
    taken.push(...standIn);
    panelists.push({
      model: modelName(candidate),
      stance: 'neutral',
      label: labelOf(index),
      who: { candidates: [candidate, ...standIn] },
      warnings: [],
    });
  }
  return panelists;
}

/** Who takes the place of a chosen panelist that fails: a model of another provider that nobody else on the panel is. */
async function standInFor(
  services: Router,
  request: Request,
  { model: first }: Candidate,
  taken: readonly Candidate[],
): Promise<Candidate[]> {
  const avoid = (model: ModelInfo) =>
    model.provider === first.provider || taken.some(other => isSame(other.model, model));
  return [...((await chosenWithout(services, request, avoid, true)) ?? [])].slice(0, 1);
}

/** Who brings the verdicts together: the named model, else one that is not on the panel, else the best of the panel. */
export async function chooseSynthesizer(
  services: Router,
  name: string | undefined,
  panelists: readonly Target[],
  request: Request,
): Promise<Candidates | undefined> {
  if (name !== undefined) return (await services.route({ ...request, name })).candidates;
  const panel = panelists.flatMap(({ who }) => ('candidates' in who ? [who.candidates[0]] : []));
  const onPanel = (model: ModelInfo) => panel.some(other => isSame(other.model, model));
  const outsider = await chosenWithout(services, request, onPanel, panel.length > 0);
  const best = panel.toSorted((a, b) => b.model.score - a.model.score)[0];
  return outsider ?? (best && [best]);
}

function isSame(a: ModelInfo, b: ModelInfo): boolean {
  return (a.provider === b.provider && a.id === b.id) || sameModel(a, b);
}

/** Undefined when nobody is left; with nobody chosen before, that is an error for the caller. */
async function chosenWithout(
  services: Router,
  request: Request,
  avoid: (model: ModelInfo) => boolean,
  optional: boolean,
): Promise<Candidates | undefined> {
  try {
    return (await services.route({ ...request, name: 'auto', avoid })).candidates;
  } catch (error) {
    // Routing says in its own words that no model is left; enough are there already.
    if (optional && isAppError(error) && error.kind !== 'bug') return undefined;
    throw error;
  }
}
