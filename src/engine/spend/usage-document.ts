import type { JsonObject } from '../../core/json.ts';
import type { Usage } from '../../core/usage.ts';
import { type Fee, type FeeKind, type Fees, feeKinds, feeUnits, knownUsd } from '../../domain/fees.ts';
import { roundedUsd } from '../../domain/money.ts';

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

function feesDocument(fees: Fees): JsonObject {
  const told = feeKinds.flatMap((kind): [FeeKind, JsonObject][] => {
    const fee = fees[kind];
    return fee ? [[kind, feeDocument(kind, fee)]] : [];
  });
  return Object.fromEntries(told);
}

/** What nobody knows the price of is said to be so, never to cost nothing. */
function feeDocument(kind: FeeKind, fee: Fee): JsonObject {
  const { amount, unpriced = 0 } = fee;
  const usd = knownUsd(fee);
  return {
    [feeUnits[kind]]: Number(amount.toFixed(3)),
    cost_usd: usd === undefined ? undefined : roundedUsd(usd),
    not_priced: unpriced > 0 ? Number(unpriced.toFixed(3)) : undefined,
  };
}
