import type { ModelInfo } from '../../core/model.ts';
import { correct, nearestNames } from '../routing/correction.ts';
import { names, readEntry } from '../routing/restrictions.ts';
import { mayServeMore, type Roster, type RosterProvider, type RoutingPolicy } from '../routing/roster.ts';

/** A word of the operator's lists that means no model, so that the list does not do what it was written for. */
export interface UnknownName {
  /** Whose list of allowed models it stands in; absent: in that of the denied ones. */
  provider?: string;
  name: string;
  /** The id that is nearest to it. */
  near?: string;
}

/**
 * The words of these lists that no model of the roster is known by. Where servers may have models that nobody listed, only
 * those that are a slip of a known name: the others may well exist.
 */
export function unknownNames(roster: Roster, { denied, allowed }: Pick<RoutingPolicy, 'allowed' | 'denied'>) {
  const lists = [
    { words: denied, provider: undefined },
    ...roster.providers
      .filter(({ configured }) => configured)
      .map(({ id }) => ({ words: allowed[id] ?? [], provider: id })),
  ];
  return lists.flatMap(({ words, provider }) =>
    words.flatMap(name => {
      const found = name.trim() === '' ? undefined : unknownName(roster, name.trim(), provider);
      return found ? [{ ...(provider !== undefined && { provider }), ...found }] : [];
    }),
  );
}

function unknownName(roster: Roster, name: string, provider: string | undefined): UnknownName | undefined {
  const entry = readEntry(roster, name);
  const isMeant = ({ id }: { id: string }) => (provider ?? entry.provider ?? id) === id;
  const models = roster.models.filter(model => isMeant({ id: model.provider }));
  if (models.some(model => names(entry, model))) return undefined;
  const candidates = models.length > 0 ? models : roster.models;
  if (!roster.providers.some(each => isMeant(each) && isOpen(each, provider ?? entry.provider))) {
    const [near] = nearestNames(entry.name, candidates, 1);
    return { name, ...(near !== undefined && { near }) };
  }
  const meant = correct(entry.name, candidates, cheapest);
  return meant && { name, near: meant.id };
}

/** Nothing is asked by it: what a model costs does not matter. */
function cheapest(_model: ModelInfo): number {
  return 0;
}

/** Whether a provider that is asked may know a name all the same. Programs are not meant by a bare one. */
function isOpen(provider: RosterProvider, meant: string | undefined): boolean {
  const { configured, onlyByPrefix, local, id } = provider;
  return configured && (mayServeMore(provider) || local) && (meant === id || !(onlyByPrefix || provider.onlyByName));
}
