import type { ModelInfo, ProviderCapabilities } from '../../core/model.ts';
import type { ProviderDefinition } from '../provider.ts';
import { correctName, nearestModels } from '../routing/eligible-models.ts';
import type { Roster, RosterProvider, RoutingPolicy } from '../routing/roster.ts';
import { names, readEntry, settingOf } from '../routing/roster.ts';
import type { ConfiguredProvider } from './connections.ts';

export function capabilitiesOf(
  { definition, settings, configured, local, searches }: ConfiguredProvider,
  { models, listedSecondsAgo }: { models: readonly ModelInfo[]; listedSecondsAgo?: number },
): ProviderCapabilities {
  const options = Object.entries(definition.options);
  const some = (has: (model: ModelInfo) => boolean) => models.some(has);
  return {
    id: definition.id,
    title: definition.title,
    configured,
    local,
    keys: Object.fromEntries(
      options.flatMap(([name, { secret, env }]) => (secret && env[0] ? [[env[0], settings[name] !== undefined]] : [])),
    ),
    setting: settingFor(definition),
    endpoints: options.flatMap(([name, { type }]) => (type === 'url' ? shownAddress(settings[name]) : [])),
    models: models.length,
    can: {
      vision: some(({ input }) => input.includes('image')),
      documents: definition.readsDocuments === true || some(({ input }) => input.includes('pdf')),
      search: some(searches),
      thinking: some(({ reasoning }) => reasoning),
      caching: some(({ price }) => price?.cacheRead !== undefined),
      tools: some(({ tools }) => tools),
    },
    ...(listedSecondsAgo !== undefined && { listedSecondsAgo }),
  };
}

/** The variable that sets a provider up: the one that routing names, else its first key or address. */
export function settingFor({ id, options }: Pick<ProviderDefinition, 'id' | 'options'>): string | undefined {
  const first = Object.values(options).find(({ env, secret, type }) => (secret || type === 'url') && env.length > 0);
  return settingOf(id) ?? first?.env[0];
}

/** What to do about a provider without a model that may be used. What names its models is found out by asking it. */
export function modelsAdvice({ definition, settings }: ConfiguredProvider, excludes: boolean): string {
  if (excludes) return 'Check the allow-lists, DENIED_MODELS, LOCAL_ONLY and OFFLINE.';
  const { options, models } = definition;
  const name = Object.keys(options).find(each => models?.({ ...settings, [each]: 'set' }, []).length);
  return name ? `Name its models in ${options[name]?.env[0]}.` : 'Check which models it serves.';
}

/** Keys hide in the user part and in the query of addresses. */
function shownAddress(address: string | undefined): string[] {
  const url = address === undefined ? null : URL.parse(address);
  return url ? [`${url.protocol}//${url.host}${url.pathname}`] : [];
}

/** A word of the operator's lists that means no model, so that the list does not do what it was written for. */
export type UnknownName = ReturnType<typeof unknownNames>[number];

/**
 * The words of these lists that no model of the roster is known by. Where servers may have models that nobody listed, only
 * those that are a slip of a known name: the others may well exist. `provider`: whose list of allowed models it stands in;
 * undefined: in that of the denied ones. `near`: the id that is nearest to it.
 */
export function unknownNames(roster: Roster, { denied, allowed }: Pick<RoutingPolicy, 'allowed' | 'denied'>) {
  const lists = [
    { words: denied, provider: undefined },
    ...roster.providers.flatMap(({ id, configured }) =>
      configured ? [{ words: allowed[id] ?? [], provider: id }] : [],
    ),
  ];
  return lists.flatMap(({ words, provider }) => words.flatMap(name => unknownName(roster, name.trim(), provider)));
}

function unknownName(roster: Roster, name: string, provider: string | undefined) {
  const entry = readEntry(roster, name);
  const isElsewhere = provider !== undefined && entry.provider !== undefined && entry.provider !== provider;
  if (isElsewhere) return [{ provider, name, near: undefined }];
  if (entry.name === '' && entry.provider !== undefined) return [];
  const isMeant = ({ id }: { id: string }) => (provider ?? entry.provider ?? id) === id;
  const models = roster.models.filter(model => isMeant({ id: model.provider }));
  if (name === '' || models.some(model => names(entry, model))) return [];
  const candidates = models.length > 0 ? models : roster.models;
  if (!roster.providers.some(each => isMeant(each) && isOpen(each, provider ?? entry.provider))) {
    const [near] = nearestModels(entry.name, candidates, 1);
    return [{ provider, name, near }];
  }
  // Nothing is asked by it: what a model costs does not matter.
  const meant = correctName(entry.name, candidates, _model => 0);
  return meant ? [{ provider, name, near: meant.id }] : [];
}

/** Whether a provider that is asked may know a name all the same. Programs are not meant by a bare one. */
function isOpen(provider: RosterProvider, meant: string | undefined): boolean {
  const { configured, onlyByPrefix, local, id } = provider;
  return configured && (!provider.listComplete || local) && (meant === id || !(onlyByPrefix || provider.onlyByName));
}
