import { type Effort, efforts } from '../core/model.ts';

/**
 * The supported effort nearest to the wanted one: itself, else the next lower, else the next higher. `none` never stands
 * in for another effort, because that would switch thinking off. Undefined when nothing fits.
 */
export function closestEffort(wanted: Effort, supported: readonly Effort[]): Effort | undefined {
  if (supported.includes(wanted)) return wanted;
  const at = efforts.indexOf(wanted);
  const lower = efforts.slice(0, at).reverse();
  const higher = efforts.slice(at + 1);
  return [...lower, ...higher].find(effort => effort !== 'none' && supported.includes(effort));
}

/** How much of a thinking budget's range an effort uses. */
const budgetShare: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 0,
  low: 0.1,
  medium: 0.35,
  high: 0.7,
  xhigh: 0.85,
  max: 1,
};

/** Tokens that an effort stands for at a model that takes a thinking budget. */
export function budgetFor(effort: Effort, range: { min: number; max: number }): number {
  return Math.round(range.min + (range.max - range.min) * budgetShare[effort]);
}
