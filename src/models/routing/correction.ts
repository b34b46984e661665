import { distance } from 'fastest-levenshtein';
import type { ModelInfo } from '../../core/model.ts';
import { madeBy, makerOf, modelKey, nameKey, nameWords, splitDate, undatedKey } from './names.ts';
import { priorityOf } from './roster.ts';

/** Dollars a million tokens, for comparing; infinite where a vendor names no price. */
export type CostOf = (model: ModelInfo) => number;

/** A word a model is known by, taken apart. */
interface Name {
  model: ModelInfo;
  /** Letters and digits joined by hyphens, date left out. */
  key: string;
  /** The numbers in it, in order, date left out. */
  numbers: string;
  letters: string;
  date: string;
}

/** Shorter texts begin or occur in too many names by chance. */
const leastPart = 4;
const leastLetters = 5;
const mostEdits = 2;

/** Models whose name differs from the text in case and separators alone; empty when that is not one model. */
export function sameSpelling(text: string, models: readonly ModelInfo[]): ModelInfo[] {
  const whole = nameKey(text);
  if (whole === '') return [];
  const named = models.filter(
    model => nameKey(model.id) === whole || model.aliases.some(alias => nameKey(alias) === whole),
  );
  const key = modelKey(text);
  const maker = makerOf(text);
  const found = named.length > 0 ? named : models.filter(model => modelKey(model.id) === key && madeBy(maker, model));
  return new Set(found.map(model => modelKey(model.id))).size === 1 ? found : [];
}

/**
 * The one model that a mistyped or shortened name means, or undefined. In this order: the newest of its dated versions;
 * the only name it begins, or occurs in; the only name within two edits of letters. Numbers must agree in every case,
 * and a cheaper model that the text could mean as well forbids the guess.
 */
export function correct(text: string, models: readonly ModelInfo[], costOf: CostOf): ModelInfo | undefined {
  const typed = readName(text);
  if (typed.key === '') return undefined;
  const maker = makerOf(text);
  const names = models
    .filter(model => madeBy(maker, model))
    .flatMap(model => [model.id, ...model.aliases].map(name => ({ model, ...readName(name) })))
    .filter(name => name.numbers === typed.numbers && (typed.date === '' || typed.date === name.date));
  const versions =
    typed.date === '' ? names.filter(name => name.date !== '' && withoutStage(name.key) === typed.key) : [];
  const near = names.filter(name => isNear(typed, name));
  const choice = newestOf(versions) ?? onlyOne(partsOf(typed, names)) ?? onlyOne(near);
  if (!choice) return undefined;
  const shorter = names.filter(name => typed.key.startsWith(`${name.key}-`));
  const plausible = [...versions, ...partsOf(typed, names), ...near, ...shorter];
  return plausible.some(name => costOf(name.model) < costOf(choice)) ? undefined : choice;
}

function readName(text: string): Omit<Name, 'model'> {
  const { words, date } = splitDate(nameWords(text.slice(text.lastIndexOf('/') + 1)));
  return {
    key: words.join('-'),
    numbers: words.filter(word => /\d/.test(word)).join('-'),
    letters: words.filter(word => !/\d/.test(word)).join(''),
    date,
  };
}

function withoutStage(key: string): string {
  return key.replace(/-(preview|latest)$/, '');
}

function partsOf(typed: Omit<Name, 'model'>, names: readonly Name[]): Name[] {
  if (typed.key.length < leastPart) return [];
  const begun = names.filter(name => name.key.startsWith(typed.key));
  return begun.length > 0 ? begun : names.filter(name => name.key.includes(typed.key));
}

function isNear(typed: Omit<Name, 'model'>, name: Name): boolean {
  return (
    typed.letters.length >= leastLetters &&
    Math.abs(typed.letters.length - name.letters.length) <= mostEdits &&
    distance(typed.letters, name.letters) <= mostEdits
  );
}

/** The model behind all these names when it is one; of its rows the plain id first, then the newest date. */
function onlyOne(names: readonly Name[]): ModelInfo | undefined {
  const models = new Set(names.map(name => undatedKey(name.model.id)));
  if (models.size !== 1) return undefined;
  const undated = names.filter(name => name.date === '');
  return undated.length > 0 ? byPriority(undated)[0]?.model : newestOf(names);
}

function newestOf(names: readonly Name[]): ModelInfo | undefined {
  return byPriority(names).toSorted((a, b) => b.date.localeCompare(a.date))[0]?.model;
}

function byPriority(names: readonly Name[]): Name[] {
  return names.toSorted((a, b) => priorityOf(a.model.provider) - priorityOf(b.model.provider));
}

/** The ids nearest to a text, best first, each model once. For suggestions only: nothing is chosen by it. */
export function nearestNames(text: string, models: readonly ModelInfo[], count: number): string[] {
  const typed = nameKey(text);
  const words = new Set(nameWords(text));
  const gap = (name: string) => {
    const key = nameKey(name);
    const shared = [...new Set(nameWords(name))].filter(word => words.has(word)).length;
    return distance(typed, key) / Math.max(typed.length, key.length, 1) - shared / Math.max(words.size, 1);
  };
  const ranked = models
    .map(model => ({ model, gap: Math.min(...[model.id, ...model.aliases].map(gap)) }))
    .sort((a, b) => a.gap - b.gap || priorityOf(a.model.provider) - priorityOf(b.model.provider));
  const seen = new Set<string>();
  const unseen = ranked.filter(({ model }) => !seen.has(undatedKey(model.id)) && seen.add(undatedKey(model.id)));
  return unseen.slice(0, count).map(({ model }) => model.id);
}
