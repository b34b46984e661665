import { type Candidate, type Effort, efforts, type ModelInfo } from '../../core/model.ts';
import { budgetFor, closestEffort } from '../provider.ts';

/** The runs of letters and of digits in a name: `gpt-5.1` and `GPT5_1` are both gpt, 5, 1; `gpt-51` is gpt, 51. */
export const nameWords = (name: string): string[] => name.toLowerCase().match(/\p{L}+|\d+/gu) ?? [];

/** A name without case and separators; digits that belong together stay together. */
export const nameKey = (name: string): string => nameWords(name).join('-');

/** Each call compares a name with all there are: about so many ids are known by their keys. */
const keys = new Map<string, string>();

const maxKeys = 5_000;

const maxIdLength = 200;

/** The key of the model itself: what stands before the last slash says who made it, and the tag `latest` says nothing. */
export function modelKey(id: string): string {
  const known = keys.get(id);
  if (known !== undefined) return known;
  const key = nameKey(id.slice(id.lastIndexOf('/') + 1).replace(/:latest$/i, ''));
  if (keys.size >= maxKeys) keys.clear();
  if (id.length <= maxIdLength) keys.set(id, key);
  return key;
}

type Identity = Pick<ModelInfo, 'deployed' | 'id'>;

/** The id that tells which model it is: of a deployment, that of its model. */
export const ownId = ({ deployed, id }: Identity): string => deployed ?? id;

/** What an aggregator's id puts before the last slash, as a key; empty for plain ids. */
export const makerOf = (id: string): string => nameKey(id.slice(0, Math.max(0, id.lastIndexOf('/'))));

/** What OpenRouter puts before the models of a maker, by our provider's id. */
export const makerSlugs: ReadonlyMap<string, string> = new Map([
  ...['openai', 'anthropic', 'google', 'deepseek', 'minimax'].map(id => [id, id] as const),
  ['xai', 'x-ai'],
  ['moonshot', 'moonshotai'],
  ['zhipu', 'z-ai'],
]);

const makers = new Map([...makerSlugs].map(([id, slug]) => [slug, id]));

/** Whether a typed `maker/` can mean this row: rows without a maker of their own are their provider's. */
export function madeBy(maker: string, model: ModelInfo): boolean {
  if (maker === '') return true;
  const own = makerOf(model.id);
  return own === '' ? (makers.get(maker) ?? maker) === model.provider : own === maker;
}

/** Who made a model, also where an aggregator serves it. */
export function vendorOf({ id, provider }: Pick<ModelInfo, 'id' | 'provider'>): string {
  const maker = makerOf(id);
  return maker === '' ? provider : (makers.get(maker) ?? maker);
}

/** Whether two rows are one model at two providers. Names without a number move with the vendor's mind and prove nothing. */
export function sameModel(a: Identity, b: Identity): boolean {
  const key = modelKey(ownId(a));
  return /\d/.test(key) && key === modelKey(ownId(b));
}

/** Speech, guards, images, embeddings; what answers only through tools or jobs of its own; batch prices of other models. */
const noChat =
  /whisper|\btts\b|orpheus|speech|voxtral|guard|image|nano-banana|dall-e|sora|embed|rerank|moderation|computer-use|deep-research|:batch$/i;

/** Whether an id looks like that of a model one can converse with. */
export const isChatId = (id: string): boolean => !noChat.test(id);

const year = /^20[2-3]\d$/;
const month = /^(0[1-9]|1[0-2])$/;
const day = /^(0[1-9]|[12]\d|3[01])$/;
/** In one word: a whole date, month and day, or year and month: 20250905, 0905, 2512. */
const date = /^(20[2-3]\d[01]\d[0-3]\d|(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])|2[3-9](0[1-9]|1[0-2]))$/;

/** A name's words with its date taken out. `date` sorts: later is greater; empty when there is none. */
export function splitDate(words: readonly string[]): { words: string[]; date: string } {
  for (let at = 0; at < words.length; at++) {
    const [a = '', b = '', c = ''] = words.slice(at, at + 3);
    if (date.test(a)) return { words: words.toSpliced(at, 1), date: a };
    if (year.test(a) && month.test(b) && day.test(c)) return { words: words.toSpliced(at, 3), date: a + b + c };
    if (month.test(a) && year.test(b)) return { words: words.toSpliced(at, 2), date: b + a };
  }
  return { words: [...words], date: '' };
}

export const undatedKey = (id: string): string =>
  splitDate(nameWords(id.slice(id.lastIndexOf('/') + 1))).words.join('-');

/** Whether an id names a release of this model by its day, as `o3-2025-04-16` does of `o3`. */
export const isDated = (model: Identity, id: string): boolean =>
  /\d/.test(undatedKey(id)) && undatedKey(id) === modelKey(ownId(model));

/** How hard to think, as asked for. */
export interface Ask {
  effort?: Effort;
  /** Thinking tokens. */
  budget?: number;
}

/** A name and what stood after its last colon. */
export interface Suffixed {
  base: string;
  /** As typed, without the colon. */
  suffix: string;
  /** Absent when the suffix is none that we know. */
  ask?: Ask;
}

/** What each provider call is given, and what had to be given up. */
export type ResolvedEffort = Pick<Candidate, 'effort' | 'thinkingBudget'> & { warning?: string };

/** The words and forms a suffix may take, for error messages. */
export const knownSuffixes: readonly string[] = [...efforts.map(effort => `:${effort}`), ':<tokens>', ':<n>k'];

/** Below this a number without a k still counts thousands: `:16` is 16 k. */
const leastTokens = 100;

/** Splits at the last colon; undefined when there is none, or nothing on one side of it. */
export function splitSuffix(name: string): Suffixed | undefined {
  const at = name.lastIndexOf(':');
  const base = name.slice(0, at).trim();
  const suffix = name.slice(at + 1).trim();
  if (at < 1 || base === '' || suffix === '') return undefined;
  return { base, suffix, ask: parseAsk(suffix) };
}

/** A name without the suffix that we know, and that suffix where it has one. */
export function splitAsk(name: string): { id: string; suffix?: Suffixed | undefined } {
  const split = splitSuffix(name);
  return split?.ask ? { id: split.base, suffix: split } : { id: name };
}

function parseAsk(suffix: string): Ask | undefined {
  const effort = efforts.find(word => word === suffix.toLowerCase());
  if (effort) return { effort };
  const tokens = /^(\d{1,7})(k?)$/i.exec(suffix);
  if (!tokens) return undefined;
  const count = Number(tokens[1]);
  return { budget: tokens[2] || count < leastTokens ? count * 1024 : count };
}

/** Routes that OpenRouter knows of one model; they are part of its id. */
const variants = new Set(['free', 'nitro', 'floor', 'online', 'thinking', 'extended', 'exacto']);

export const isVariant = (suffix: string): boolean => variants.has(suffix.toLowerCase());

/** Puts a suffix's wish into what this model takes; what it cannot take is dropped and said. */
export function resolveSuffix(model: ModelInfo, { suffix, ask }: Suffixed): ResolvedEffort {
  const dropped = (why: string): ResolvedEffort => ({ warning: `":${suffix}" was dropped: ${model.id} ${why}.` });
  if (ask?.budget !== undefined) {
    if (!model.thinkingBudget) return dropped(takes(model));
    const thinkingBudget = Math.min(model.thinkingBudget.max, Math.max(model.thinkingBudget.min, ask.budget));
    const warning = `":${suffix}" became ${thinkingBudget} thinking tokens: ${model.id} ${takes(model)}.`;
    return thinkingBudget === ask.budget ? { thinkingBudget } : { thinkingBudget, warning };
  }
  if (ask?.effort === undefined) return {};
  const thinkingBudget = tokensFor(ask.effort, model);
  if (thinkingBudget !== undefined) return { thinkingBudget };
  return model.efforts.includes(ask.effort) ? { effort: ask.effort } : dropped(takes(model));
}

/** Puts a call's general wish, or what is usual, into what this model takes: the nearest effort, a share of its budget, or nothing. */
export function resolveEffort(model: ModelInfo, wish: Effort | undefined, usual?: Effort): ResolvedEffort {
  const effort = wish ?? model.usualEffort ?? usual;
  const thinkingBudget = effort && tokensFor(effort, model);
  return thinkingBudget === undefined ? { effort: closestEffort(effort, model.efforts) } : { thinkingBudget };
}

/** An effort as thinking tokens, for models that count; undefined where they do not, or none is no number they take. */
function tokensFor(effort: Effort, { thinkingBudget: range }: ModelInfo): number | undefined {
  if (!range || (effort === 'none' && range.min > 0)) return undefined;
  return effort === 'none' ? 0 : budgetFor(effort, range);
}

function takes(model: ModelInfo): string {
  const { thinkingBudget: range, efforts: words } = model;
  if (range) return `takes ${range.min} to ${range.max} thinking tokens`;
  if (words.length > 0) return `takes ${words.join(', ')}`;
  return model.reasoning ? 'thinks as it sees fit' : 'does not think before it answers';
}
