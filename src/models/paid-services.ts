import { throwIfAborted } from '../core/errors.ts';
import type { Embedder } from '../core/ports.ts';
import { estimateTokens } from '../core/tokens.ts';
import { type FeeKind, noUsage } from '../core/usage.ts';
import type { ModelQuestion } from './ask-model.ts';
import { mayBeBilled, refuseUnpricedService } from './budget.ts';
import { feeFor, feeRate } from './fees.ts';
import type { SpendLimits } from './spend-meter.ts';
import type { SearchRequest, VendorEmbedder, WebSearcher } from './vendor-services.ts';

/** Something that a vendor does beside answering, and charges for. */
export interface Service {
  payer: NonNullable<ModelQuestion['payer']>;
  /** Under which name it stands in the ledger. */
  tool: string;
  provider: string;
  /** What is used: an engine that searches, a model that makes vectors. */
  used: string;
  kind: FeeKind;
  /** The most that it may come to, in the unit of its kind. */
  max: number;
}

/**
 * Has a service done within what may be spent, and writes down what it came to: `run` tells that as it happens, so that what
 * was used before a failure counts too. `estimated`: the vendor was asked, and its answer was not seen.
 */
export type MeterService = <Result>(
  service: Service,
  run: (report: (amount: number, estimated?: boolean) => void) => Promise<Result>,
) => Promise<Result>;

export function createServiceMeter(limits: SpendLimits): MeterService {
  const { pricing, clock } = limits.parts;
  return async (service, run) => {
    const { provider, used, kind, max, payer, tool } = service;
    const payment = { payer, account: limits.account(), auto: false };
    const free = pricing.isLocal(provider);
    const rate = feeRate(provider, kind, used) ?? (free || pricing.allowUnpriced ? 0 : undefined);
    if (rate === undefined && limits.isLimited(payment)) throw refuseUnpricedService(provider, used);
    const held = await limits.reserve(payment, { fixed: (rate ?? 0) * max, perToken: 0, max: 0, least: 0 });
    let [amount, isEstimate] = [0, false];
    try {
      return await run((more, estimated = false) => {
        amount += more;
        isEstimate ||= estimated;
      });
    } finally {
      const fee = feeFor(provider, kind, used, amount, free);
      const usage = { ...noUsage, fees: { [kind]: fee }, ...(isEstimate && { estimated: 1 }) };
      const costUsd = fee.unpriced === undefined ? fee.usd : undefined;
      const entry = { ...payer, at: clock.now(), tool, provider, model: used, usage, costUsd };
      await limits.record(amount > 0 ? entry : undefined, held?.id, false);
    }
  };
}

/** Searches the web for somebody who pays for it. */
export type PaidSearcher = ReturnType<typeof paidSearcher>;

export const paidSearcher = ({ provider, engine, search }: WebSearcher, tool: string, pay: MeterService) => ({
  provider,
  search(request: SearchRequest, payer: Service['payer'], signal: AbortSignal) {
    const used = request.engine ?? engine;
    return pay({ payer, tool, provider, used, kind: 'web_search', max: 1 }, async report => {
      throwIfAborted(signal);
      try {
        const hits = await search(request, signal);
        report(1);
        return hits;
      } catch (error) {
        if (mayBeBilled(error)) report(1, true);
        throw error;
      }
    });
  },
});

/** The vendor's own count is higher than the estimate where a text is no prose. */
const margin = 1.5;

/** The index belongs to whoever runs Polylogue: where nobody else is named, they pay. */
export function paidEmbedder(embedder: VendorEmbedder, tool: string, pay: MeterService): Embedder {
  const { model: name } = embedder;
  const at = name.indexOf(':');
  const [provider, used] = [name.slice(0, at), name.slice(at + 1)];
  return {
    model: name,
    embed(texts, signal, payer = { owner: 'local' }) {
      const max = Math.ceil(margin * texts.reduce((sum, text) => sum + 1 + estimateTokens(text), 0));
      const service = { payer, tool, provider, used, kind: 'embedding', max } as const;
      return pay(service, report => embedder.embed(texts, signal, report));
    },
  };
}
