import { isAppError } from '../../core/errors.ts';
import type { Candidate, ModelInfo } from '../../core/model.ts';
import { sameModel, vendorOf } from '../../models/routing/names.ts';
import type { ModelRequest } from '../../models/routing/roster.ts';
import { type Candidates, labelOf, modelName, type Route, type Seat } from '../modes/ask-many/seats.ts';

const usualSeats = 3;

type Request = Omit<ModelRequest, 'name' | 'avoid'>;

/** Three models of different vendors, or, where there are fewer vendors, as many different models as there are. */
export async function choosePanel(route: Route, request: Request): Promise<Seat[]> {
  const chosen: Candidate[] = [];
  for (const byVendor of [true, false]) {
    while (chosen.length < usualSeats) {
      const taken = (model: ModelInfo) =>
        chosen.some(other => isSame(other.model, model) || (byVendor && vendorOf(other.model) === vendorOf(model)));
      const [next] = (await chosenWithout(route, request, taken, chosen.length > 0)) ?? [];
      if (!next) break;
      chosen.push(next);
    }
  }
  return chosen.map((candidate, index) => ({
    model: modelName(candidate),
    stance: 'neutral',
    label: labelOf(index),
    who: { candidates: [candidate] },
    warnings: [],
  }));
}

/** Who brings the verdicts together: the named model, else one that is not on the panel, else the best of the panel. */
export async function chooseSynthesizer(
  route: Route,
  name: string | undefined,
  seats: readonly Pick<Seat, 'who'>[],
  request: Request,
): Promise<Candidates | undefined> {
  if (name !== undefined) return asCandidates((await route({ ...request, name })).candidates);
  const panel = seats.flatMap(({ who }) => ('candidates' in who ? [who.candidates[0]] : []));
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
  return first && [first, ...others.filter(({ model }) => model.window >= first.model.window)];
}
