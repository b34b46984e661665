import type { Stance } from '../../../calls/tool.ts';
import { type AppError, inputError, isAppError, limitError } from '../../../core/errors.ts';
import type { Candidate, ModelInfo } from '../../../core/model.ts';
import { sameModel, vendorOf } from '../../../models/routing/names.ts';
import type { Resolution } from '../../../models/routing/resolve.ts';
import type { ModelRequest } from '../../../models/routing/roster.ts';

/** A model as the caller named it, with the side that it is to take. */
export interface PanelistRequest {
  model: string;
  stance: Stance;
  stancePrompt?: string;
}

export type Candidates = readonly [Candidate, ...Candidate[]];

/** One place on a panel: who is asked, and for which side. */
export interface Panelist extends PanelistRequest {
  /** What the others know it by: A, B, C … */
  label: string;
  /** The model and, where others serve it too, those; or why it can't be asked. */
  who: { candidates: Candidates; corrected?: Resolution['corrected'] } | { failure: AppError };
  warnings: string[];
}

export type Route = (request: ModelRequest) => Promise<Resolution>;

const maxPanelists = 12;

export function panelistName({ model, stance }: Pick<PanelistRequest, 'model' | 'stance'>): string {
  return `${model}:${stance}`;
}

export function modelName({ model }: Candidate): string {
  return `${model.provider}:${model.id}`;
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
  route: Route,
  requests: readonly PanelistRequest[],
  request: Omit<ModelRequest, 'name'>,
): Promise<Panelist[]> {
  const panelists: Panelist[] = [];
  for (const [index, wanted] of requests.entries()) {
    panelists.push({
      ...wanted,
      label: labelOf(index),
      ...(await resolvePanelist(route, { ...request, name: wanted.model })),
    });
  }
  refuseTwins(
    panelists.filter(panelist => 'candidates' in panelist.who),
    panelist => identityOf(panelist),
  );
  return panelists;
}

/** Who a name stands for, with those who serve the same model elsewhere; or why nobody can be asked. */
export async function resolvePanelist(
  route: Route,
  request: ModelRequest,
): Promise<Pick<Panelist, 'who' | 'warnings'>> {
  try {
    const { candidates, corrected, warnings } = await route(request);
    const [first, ...others] = candidates;
    if (!first) throw inputError(`No model can be asked for "${request.name}".`);
    if (request.needs.vision && !first.model.input.includes('image')) throw cannotSee(first);
    return { who: { candidates: [first, ...others], corrected }, warnings };
  } catch (error) {
    // The others can still be asked: what is wrong with this one is told in its place.
    if (!isAppError(error) || error.kind === 'bug') throw error;
    return { who: { failure: error }, warnings: [] };
  }
}

function cannotSee(candidate: Candidate): AppError {
  return inputError(`${modelName(candidate)} takes no images.`, {
    next: 'Name a model that sees images ("listmodels" says which) in its place, or leave the images out.',
  });
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
export async function choosePanel(route: Route, request: Request): Promise<Panelist[]> {
  const chosen: Candidate[] = [];
  const sharing = { ...request, sharers: defaultPanelists + 1 };
  for (const byVendor of [true, false]) {
    while (chosen.length < defaultPanelists) {
      const taken = (model: ModelInfo) =>
        chosen.some(other => isSame(other.model, model) || (byVendor && vendorOf(other.model) === vendorOf(model)));
      const [next] = (await chosenWithout(route, sharing, taken, chosen.length > 0)) ?? [];
      if (!next) break;
      chosen.push(next);
    }
  }
  const taken = [...chosen];
  const panelists: Panelist[] = [];
  for (const [index, candidate] of chosen.entries()) {
    const standIn = await standInFor(route, sharing, candidate, taken);
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
  route: Route,
  request: Request,
  { model: first }: Candidate,
  taken: readonly Candidate[],
): Promise<Candidate[]> {
  const avoid = (model: ModelInfo) =>
    model.provider === first.provider || taken.some(other => isSame(other.model, model));
  return [...((await chosenWithout(route, request, avoid, true)) ?? [])].slice(0, 1);
}

/** Who brings the verdicts together: the named model, else one that is not on the panel, else the best of the panel. */
export async function chooseSynthesizer(
  route: Route,
  name: string | undefined,
  panelists: readonly Pick<Panelist, 'who'>[],
  request: Request,
): Promise<Candidates | undefined> {
  if (name !== undefined) return asCandidates((await route({ ...request, name })).candidates);
  const panel = panelists.flatMap(({ who }) => ('candidates' in who ? [who.candidates[0]] : []));
  const onPanel = (model: ModelInfo) => panel.some(other => isSame(other.model, model));
  const outsider = await chosenWithout(route, request, onPanel, panel.length > 0);
  const best = panel.toSorted((a, b) => b.model.score - a.model.score)[0];
  return outsider ?? (best && [best]);
}

function isSame(a: ModelInfo, b: ModelInfo): boolean {
  return (a.provider === b.provider && a.id === b.id) || sameModel(a, b);
}

/** Undefined when nobody is left; with nobody chosen before, that is an error for the caller. */
async function chosenWithout(
  route: Route,
  request: Request,
  avoid: (model: ModelInfo) => boolean,
  optional: boolean,
): Promise<Candidates | undefined> {
  try {
    return asCandidates((await route({ ...request, name: 'auto', avoid })).candidates);
  } catch (error) {
    // Routing says in its own words that no model is left; enough are there already.
    if (optional && isAppError(error) && error.kind !== 'bug') return undefined;
    throw error;
  }
}

function asCandidates([first, ...others]: readonly Candidate[]): Candidates | undefined {
  return first && [first, ...others];
}
