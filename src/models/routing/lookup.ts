import type { ModelInfo } from '../../core/model.ts';
import { correct, sameSpelling } from './correction.ts';
import { sameModel } from './names.ts';
import type { RosterProvider } from './roster.ts';
import { byPriority, type Scene } from './scene.ts';
import type { Suffixed } from './suffixes.ts';
import { isVariant, splitSuffix } from './suffixes.ts';

/** What a name was found to mean. */
export interface Match {
  /** The rows that bear the name itself: one model, at one provider or several. */
  rows: readonly ModelInfo[];
  how: 'id' | 'alias' | 'spelling' | 'guess';
  /** The suffix that was taken off the name, when that made it known. */
  suffix?: Suffixed;
}

/**
 * Everything a name can mean, the plainest reading first; guesses are not among them. Each is looked for when it is asked
 * for: comparing spellings is by far the most work, and a name that is an id needs none of it.
 */
export function* readings(scene: Scene, text: string, scope?: RosterProvider): Generator<Match> {
  const rows = scene.roster.models.filter(({ provider }) =>
    scope ? provider === scope.id : scene.provider(provider)?.onlyByPrefix !== true,
  );
  const split = splitSuffix(text);
  const suffix = split?.ask ? split : undefined;
  const base = suffix?.base;
  function* both(how: Match['how'], find: (name: string) => readonly ModelInfo[]): Generator<Match> {
    const named = find(text);
    if (named.length > 0) yield { how, rows: named };
    const bare = base === undefined ? [] : find(base);
    if (bare.length > 0) yield { how, rows: bare, suffix };
  }
  yield* both('id', name => byId(rows, name));
  yield* both('id', name => byVariant(rows, name));
  yield* both('alias', name => byAlias(scene, rows, name));
  yield* both('spelling', name => byIdInAnyCase(rows, name));
  if (!isUnknownSuffix(scene, split, scope)) yield* both('spelling', name => sameSpelling(name, rows));
}

/** Whether a known name has something after its colon that means nothing. */
export function isUnknownSuffix(scene: Scene, split: Suffixed | undefined, scope?: RosterProvider): split is Suffixed {
  if (!split || split.ask) return false;
  const rows = scene.roster.models.filter(model => scope === undefined || model.provider === scope.id);
  return (
    [byId, byIdInAnyCase].some(find => find(rows, split.base).length > 0) || byAlias(scene, rows, split.base).length > 0
  );
}

/** The one model a mistyped name means: among configured providers' models first, then among all, to say what is missing. */
export function guess(scene: Scene, text: string, scope?: RosterProvider): Match | undefined {
  const split = splitSuffix(text);
  const suffix = split?.ask ? split : undefined;
  const name = suffix?.base ?? text;
  const rows = scene.roster.models.filter(model =>
    scope ? model.provider === scope.id : scene.provider(model.provider)?.onlyByName !== true,
  );
  const configured = rows.filter(model => scene.provider(model.provider)?.configured === true);
  const model = correct(name, configured, scene.cost) ?? correct(name, rows, scene.cost);
  if (!model) return undefined;
  return { how: 'guess', rows: [model], ...(suffix ? { suffix } : {}) };
}

function byId(rows: readonly ModelInfo[], name: string): ModelInfo[] {
  const found = rows.filter(model => model.id === name);
  return found.length > 0 ? byPriority(found) : rows.filter(model => sameTag(model, name));
}

function byIdInAnyCase(rows: readonly ModelInfo[], name: string): ModelInfo[] {
  return rows.filter(model => model.id.toLowerCase() === name.toLowerCase());
}

/** Ollama takes a name without a tag for its `latest`. */
function sameTag({ provider, id }: ModelInfo, name: string): boolean {
  return provider === 'ollama' && (id === `${name}:latest` || `${id}:latest` === name);
}

/** A row for a known OpenRouter model on a route of its own, such as `:nitro`. What the route costs is not known. */
function byVariant(rows: readonly ModelInfo[], name: string): ModelInfo[] {
  const split = splitSuffix(name);
  if (!split || !isVariant(split.suffix)) return [];
  const [base] = rows.filter(model => model.provider === 'openrouter' && model.id === split.base);
  if (!base) return [];
  const { price: _, ...rest } = base;
  const route = split.suffix.toLowerCase();
  return [
    { ...rest, id: `${base.id}:${route}`, aliases: [], ...(route === 'free' ? { price: { in: 0, out: 0 } } : {}) },
  ];
}

/** The alias's owner, and where that one is out of reach the same model in the rows at hand. */
function byAlias(scene: Scene, rows: readonly ModelInfo[], name: string): ModelInfo[] {
  const alias = name.toLowerCase();
  const owner = scene.roster.models.find(model => model.aliases.includes(alias));
  if (!owner) return [];
  return rows.includes(owner) ? [owner] : byPriority(rows.filter(model => sameModel(owner, model)));
}
