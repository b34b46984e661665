import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { isRecord } from '../../core/json.ts';
import type { ModelInfo } from '../../core/model.ts';
import { addFees, type FeeKind, type Fees } from '../../domain/fees.ts';
import { feeFor, type Use } from '../fees.ts';

/** What a part of a vendor's stream tells that was used beside tokens. */
export type UsesIn = (part: LanguageModelV4StreamPart) => Use | undefined;

/** What our own wrappers around vendors' packages pass on in a raw part, which nobody else reads. */
export function usePart(use: Use): LanguageModelV4StreamPart {
  return { type: 'raw', rawValue: { polylogueUse: { ...use } } };
}

/** The use that `usePart` passed on. */
export const passedUse: UsesIn = part => {
  const told = part.type === 'raw' && isRecord(part.rawValue) ? part.rawValue.polylogueUse : undefined;
  if (!isRecord(told) || typeof told.amount !== 'number') return undefined;
  const kind = told.kind === 'cache_storage' ? told.kind : 'web_search';
  return use(kind, told.amount, typeof told.of === 'string' ? told.of : undefined);
};

/** Nothing for what is no number above zero. */
export function use(kind: FeeKind, amount: unknown, of?: string): Use | undefined {
  if (typeof amount !== 'number' || !Number.isFinite(amount) || amount <= 0) return undefined;
  return { kind, amount, ...(of !== undefined && { of }) };
}

/** A vendor that counts its searches among the tokens, as Anthropic does: `server_tool_use.web_search_requests`. */
export const countedSearches: UsesIn = part => {
  const told = part.type === 'finish' ? part.usage.raw?.server_tool_use : undefined;
  return use('web_search', isRecord(told) ? told.web_search_requests : undefined);
};

/**
 * What the uses of one attempt come to. `told`: the vendor says itself what all of it cost, so that no price is missing.
 */
export function feesOf({ provider, id }: ModelInfo, uses: readonly Use[], told: boolean): Fees | undefined {
  // Together first: some are charged once, however often they came.
  const sums = Map.groupBy(uses, ({ kind, of = id }) => `${kind} ${of}`);
  let fees: Fees | undefined;
  for (const group of sums.values()) {
    const [{ kind, of = id } = { kind: 'web_search' as const, of: id }] = group;
    const amount = group.reduce((sum, each) => sum + each.amount, 0);
    const { unpriced, ...fee } = feeFor(provider, kind, of, amount);
    fees = addFees(fees, { [kind]: unpriced === undefined || told ? fee : { ...fee, unpriced } });
  }
  return fees;
}
