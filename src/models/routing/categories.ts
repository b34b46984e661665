import type { ModelInfo } from '../../core/model.ts';
import { undatedKey } from './names.ts';
import type { Category, RoutingPolicy } from './roster.ts';
import { priorityOf } from './roster.ts';

/** How much each quality of a model counts. Scores run to 20, cost steps to about 10. */
interface Weights {
  score: number;
  /** Taken off for each doubling of the price. */
  cost: number;
  /** Added for a model made to be quick. */
  quick: number;
  /** Taken off for a model that does not reason. */
  shallow: number;
}

const weights: Record<Category, Weights> = {
  extended_reasoning: { score: 1, cost: 0.35, quick: 0, shallow: 4 },
  balanced: { score: 0.7, cost: 0.7, quick: 0, shallow: 1 },
  fast_response: { score: 0.4, cost: 1, quick: 2, shallow: 0 },
};

function weightsFor(category: Category, prefer: RoutingPolicy['prefer']): Weights {
  const own = weights[category];
  if (prefer === 'speed') return { ...own, quick: own.quick + 3, shallow: 0 };
  if (prefer === 'cost') return { ...own, cost: own.cost * 3 };
  return own;
}

/** The price that an unnamed one is taken for: neither a bargain nor a luxury. */
const unknownPrice = 2;

/** Dollars a million tokens, three parts in and one part out; undefined when the vendor names none. */
export function averagePrice(model: ModelInfo): number | undefined {
  return model.price && (3 * model.price.in + model.price.out) / 4;
}

const quickName = /flash|non-reasoning|-mini\b|nano|lite|haiku|luna|fast|turbo|instant|highspeed|spark|air\b/i;

/** A large model on faster machines, for about twice its price: quick for who wants speed, not for a quick question. */
const hurried = /highspeed/i;

/** Whether a model was made to be quick, by its name. */
export function isQuick({ id }: ModelInfo): boolean {
  return quickName.test(id);
}

let byNumber: Intl.Collator | undefined;

/** Within a family the greater number is the newer; across families this only makes the order certain. */
function newerFirst(a: ModelInfo, b: ModelInfo): number {
  // Made on first use: loading the rules of a language would hold up the start.
  byNumber ??= new Intl.Collator('en', { numeric: true });
  return byNumber.compare(b.id, a.id);
}

/** The models in the order in which they suit the category, the best first; ties go by the providers' priority. */
export function rankModels(
  models: readonly ModelInfo[],
  category: Category,
  prefer: RoutingPolicy['prefer'],
  isLocal: (provider: string) => boolean,
): ModelInfo[] {
  const weight = weightsFor(category, prefer);
  const value = (model: ModelInfo) => {
    const price = averagePrice(model) ?? (isLocal(model.provider) ? 0 : unknownPrice);
    return (
      model.score * weight.score -
      Math.log2(1 + 4 * price) * weight.cost +
      (isQuick(model) && (prefer === 'speed' || !hurried.test(model.id)) ? weight.quick : 0) -
      (model.reasoning ? 0 : weight.shallow)
    );
  };
  const valued = models.map(model => ({ model, value: value(model) }));
  return valued
    .sort(
      (a, b) =>
        // What its vendor retires is asked when nothing else is there.
        Number(a.model.status === 'deprecated') - Number(b.model.status === 'deprecated') ||
        b.value - a.value ||
        priorityOf(a.model.provider) - priorityOf(b.model.provider) ||
        newerFirst(a.model, b.model),
    )
    .map(({ model }) => model);
}

/** The models that the first design knew, by provider. */
const firstModels = new Set(
  Object.entries({
    anthropic: ['claude-3-5-haiku-20241022', 'claude-3-7-sonnet-20250219'],
    deepseek: ['deepseek-chat', 'deepseek-coder'],
    google: ['gemini-2.0-flash', 'gemini-2.5-flash', 'gemini-2.5-pro'],
    groq: ['llama-3.1-70b-versatile'],
    moonshot: ['kimi-k2-0711-preview', 'kimi-k2-0905-preview', 'moonshot-v1-128k', 'moonshot-v1-32k', 'moonshot-v1-8k'],
    ollama: ['llama3.1', 'llama3.2'],
    openai: ['gpt-4o-mini', 'gpt-5', 'o3', 'o3-mini', 'o3-pro', 'o4-mini'],
    xai: ['grok-3', 'grok-3-fast', 'grok-4'],
    zhipu: ['glm-4.5', 'glm-4.5-air', 'glm-4.5-flash', 'glm-4.5v'],
  }).flatMap(([provider, ids]) => ids.map(id => `${provider}/${id}`)),
);

const firstOrders: Record<Category, readonly string[]> = {
  extended_reasoning: ['openai/o3', 'xai/grok-3', 'google/gemini-2.5-pro'],
  fast_response: ['openai/o4-mini', 'openai/o3-mini', 'xai/grok-3-fast', 'google/gemini-2.5-flash'],
  balanced: ['openai/o4-mini', 'openai/o3-mini', 'xai/grok-3', 'google/gemini-2.5-flash'],
};

const nameOf = (model: ModelInfo) => `${model.provider}/${model.id}`;

/**
 * The first design's own order, when the models of vendors reached directly are none but its own; what an aggregator
 * serves comes after them. Undefined otherwise, or when none of the order's models is there.
 */
export function firstOrder(models: readonly ModelInfo[], category: Category): ModelInfo[] | undefined {
  const direct = models.filter(model => model.provider !== 'openrouter');
  if (!direct.every(model => firstModels.has(nameOf(model)))) return undefined;
  const found = firstOrders[category].flatMap(name => direct.filter(model => nameOf(model) === name));
  return found.length > 0 ? found : undefined;
}

/**
 * The best `count` models, each model once. One place goes to another provider than the best one's if there is any, so that
 * one vendor's bad day does not take all; the order stays that of the ranking.
 */
export function spread(ranked: readonly ModelInfo[], count: number): ModelInfo[] {
  const seen = new Set<string>();
  const distinct = ranked.filter(model => !seen.has(undatedKey(model.id)) && seen.add(undatedKey(model.id)));
  const head = distinct.slice(0, count);
  if (head.some(model => model.provider !== head[0]?.provider)) return head;
  const elsewhere = ranked.find(model => model.provider !== head[0]?.provider);
  return elsewhere ? [...head.slice(0, count - 1), elsewhere] : head;
}
