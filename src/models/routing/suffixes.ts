import type { Effort, ModelInfo } from '../../core/model.ts';
import { efforts } from '../../core/model.ts';
import { budgetFor, closestEffort } from '../effort.ts';

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
export interface Settled extends Pick<Ask, 'effort'> {
  thinkingBudget?: number;
  warning?: string;
}

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
  const ask = parseAsk(suffix);
  return ask ? { base, suffix, ask } : { base, suffix };
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

export function isVariant(suffix: string): boolean {
  return variants.has(suffix.toLowerCase());
}

/** Puts a suffix's wish into what this model takes; what it cannot take is dropped and said. */
export function settleSuffix(model: ModelInfo, { suffix, ask }: Suffixed): Settled {
  const dropped = (why: string): Settled => ({ warning: `":${suffix}" was dropped: ${model.id} ${why}.` });
  if (ask?.budget !== undefined) {
    if (!model.thinkingBudget) return dropped(takes(model));
    const thinkingBudget = clamp(ask.budget, model.thinkingBudget);
    if (thinkingBudget === ask.budget) return { thinkingBudget };
    return {
      thinkingBudget,
      warning: `":${suffix}" became ${thinkingBudget} thinking tokens: ${model.id} ${takes(model)}.`,
    };
  }
  if (ask?.effort === undefined) return {};
  const thinkingBudget = tokensFor(ask.effort, model);
  if (thinkingBudget !== undefined) return { thinkingBudget };
  return model.efforts.includes(ask.effort) ? { effort: ask.effort } : dropped(takes(model));
}

/** Puts a call's general wish into what this model takes: the nearest effort, or a share of its budget, or nothing. */
export function settleEffort(model: ModelInfo, effort: Effort | undefined): Settled {
  if (effort === undefined) return {};
  const thinkingBudget = tokensFor(effort, model);
  if (thinkingBudget !== undefined) return { thinkingBudget };
  const nearest = closestEffort(effort, model.efforts);
  return nearest === undefined ? {} : { effort: nearest };
}

/** An effort as thinking tokens, for models that count; undefined where they do not, or none is no number they take. */
function tokensFor(effort: Effort, { thinkingBudget: range }: ModelInfo): number | undefined {
  if (!range || (effort === 'none' && range.min > 0)) return undefined;
  return effort === 'none' ? 0 : budgetFor(effort, range);
}

function clamp(tokens: number, { min, max }: { min: number; max: number }): number {
  return Math.min(max, Math.max(min, tokens));
}

function takes(model: ModelInfo): string {
  const { thinkingBudget: range, efforts: words } = model;
  if (range) return `takes ${range.min} to ${range.max} thinking tokens`;
  if (words.length > 0) return `takes ${words.join(', ')}`;
  return model.reasoning ? 'thinks as it sees fit' : 'does not think before it answers';
}
