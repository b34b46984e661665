import { type Fee, type FeeKind, type Fees, feeKinds, feeUnits } from '../../domain/fees.ts';
import type { JsonObject } from '../../domain/json.ts';
import { roundedUsd } from '../../domain/money.ts';
import type { Usage } from '../../domain/usage.ts';

/** Tokens and fees as replies tell them. */
export function usageDocument({ input, output, reasoning, cacheRead, cacheWrite, fees }: Usage): JsonObject {
  return {
    input,
    output,
    reasoning,
    cache_read: cacheRead,
    cache_write: cacheWrite,
    fees: fees && feesDocument(fees),
  };
}

export function feesDocument(fees: Fees): JsonObject {
  const told = feeKinds.flatMap((kind): [FeeKind, JsonObject][] => {
    const fee = fees[kind];
    return fee ? [[kind, feeDocument(kind, fee)]] : [];
  });
  return Object.fromEntries(told);
}

/** What nobody knows the price of is said to be so, never to cost nothing. */
function feeDocument(kind: FeeKind, { amount, usd, unpriced = 0 }: Fee): JsonObject {
  return {
    [feeUnits[kind]]: Number(amount.toFixed(3)),
    cost_usd: unpriced < amount ? roundedUsd(usd) : undefined,
    not_priced: unpriced > 0 ? Number(unpriced.toFixed(3)) : undefined,
  };
}
