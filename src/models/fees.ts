import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { isRecord } from '../core/json.ts';
import type { ModelInfo } from '../core/model.ts';
import { addFees, type Fee, type FeeKind, type Fees } from '../core/usage.ts';
import type { WebSearch } from './ask-model.ts';

/** A price that a vendor's documents name for something beside tokens; above the rows is the page that says so. */
interface FeePrice {
  provider: string;
  kind: FeeKind;
  /** What is used: ids of models, or of search engines. Absent: any. */
  of?: RegExp;
  /** US dollars for `per` uses, in the unit of the kind. */
  usd: number;
  per: number;
  /** However often it is used in one call, the vendor counts it once. */
  oncePerCall?: true;
  /** The most uses in one call where that is known without the limit on rounds. */
  max?: number;
}

/**
 * The first that fits counts. What the vendors give away (Google's first searches of a month) is not taken off: nobody but them
 * knows how much of it is left. Kimi reads and keeps files for nothing; OpenRouter's searches are in the cost that it tells.
 */
const prices: readonly FeePrice[] = [
  // https://developers.openai.com/api/docs/pricing
  searchPrice('openai', 10),
  ...pricesByModel('openai', 'embedding', [
    [/^text-embedding-3-small$/, 0.02],
    [/^text-embedding-3-large$/, 0.13],
    [/^text-embedding-ada-002$/, 0.1],
  ]),
  // https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool
  searchPrice('anthropic', 10),
  // https://docs.x.ai/developers/pricing
  searchPrice('xai', 5),
  // https://ai.google.dev/gemini-api/docs/pricing: up to the second generation a prompt that is grounded is charged, later each query.
  searchPrice('google', 35, { of: /^gemini-[12]\b/, oncePerCall: true }),
  searchPrice('google', 14),
  ...pricesByModel('google', 'cache_storage', [
    [/flash/, 1],
    [/pro/, 4.5],
  ]),
  // https://platform.kimi.ai/docs/pricing/tools
  searchPrice('moonshot', 5),
  // https://docs.z.ai/guides/overview/pricing; the engines of BigModel are paid in yuan, at prices that change apart from these.
  searchPrice('zhipu', 10, { of: /^search-prime$/, max: 1 }),
];

/** `usd` for a thousand searches. */
function searchPrice(provider: string, usd: number, more: Partial<FeePrice> = {}): FeePrice {
  return { provider, kind: 'web_search', usd, per: 1_000, ...more };
}

/** US dollars for a million, by what is used. */
function pricesByModel(provider: string, kind: FeeKind, rows: readonly [of: RegExp, usd: number][]): FeePrice[] {
  return rows.map(([of, usd]) => ({ provider, kind, of, usd, per: 1_000_000 }));
}

/** Something beside tokens that a vendor did. */
export interface Use {
  kind: FeeKind;
  /** In the unit of the kind. */
  amount: number;
  /** What was used where it is not the model: an engine that searches. */
  of?: string;
  /** The vendor counts it again at the end: it stands only where the stream breaks before that. */
  provisional?: true;
}

const priceOf = (provider: string, kind: FeeKind, used: string): FeePrice | undefined =>
  prices.find(row => row.provider === provider && row.kind === kind && (row.of?.test(used) ?? true));

/** What one use costs; undefined: nobody knows. */
export function feeRate(provider: string, kind: FeeKind, used: string): number | undefined {
  const price = priceOf(provider, kind, used);
  return price && price.usd / price.per;
}

/** What the uses of one call come to. `isCovered`: nothing more is paid for them, so that no price is missing. */
export function feeFor(provider: string, kind: FeeKind, used: string, amount: number, isCovered: boolean): Fee {
  const price = priceOf(provider, kind, used);
  if (!price) return { amount, usd: 0, ...(!isCovered && { unpriced: amount }) };
  return { amount, usd: ((price.oncePerCall ? Math.min(1, amount) : amount) * price.usd) / price.per };
}

/**
 * US dollars to reserve for the searches of one call: at the dearest known engine, where the model does not tell which one it
 * is. Vendors that don't let one limit how often they search may take more; 0 where no price is known.
 */
export function searchBound({ provider, id }: ModelInfo, { maxRounds }: WebSearch): number {
  const own = priceOf(provider, 'web_search', id);
  const known = own ? [own] : prices.filter(row => row.provider === provider && row.kind === 'web_search');
  const bounds = known.map(({ usd, per, oncePerCall, max }) => ((oncePerCall ? 1 : (max ?? maxRounds)) * usd) / per);
  return Math.max(0, ...bounds);
}

/** What a part of a vendor's stream tells that was used beside tokens. */
export type UsesIn = (part: LanguageModelV4StreamPart) => Use | undefined;

/** What our own wrappers around vendors' packages pass on in a raw part; nothing that a vendor sends can be one. */
class PassedUse {
  readonly use: Use;

  constructor(use: Use) {
    this.use = use;
  }
}

export const usePart = (use: Use): LanguageModelV4StreamPart => ({ type: 'raw', rawValue: new PassedUse(use) });

export const passedUse: UsesIn = part =>
  part.type === 'raw' && part.rawValue instanceof PassedUse ? part.rawValue.use : undefined;

/** Nothing for what is no number above zero. */
export const use = (kind: FeeKind, amount: unknown): Use | undefined =>
  typeof amount === 'number' && Number.isFinite(amount) && amount > 0 ? { kind, amount } : undefined;

/** A search that a vendor began and will count at the end. */
export function startedSearch(part: LanguageModelV4StreamPart): Use | undefined {
  const isSearch = part.type === 'tool-call' && part.providerExecuted === true;
  return isSearch ? { kind: 'web_search', amount: 1, provisional: true } : undefined;
}

/** A vendor that counts its searches among the tokens, as Anthropic does: `server_tool_use.web_search_requests`. */
export const countedSearches: UsesIn = part => {
  if (part.type === 'tool-call') return startedSearch(part);
  const serverToolUse = part.type === 'finish' ? part.usage.raw?.server_tool_use : undefined;
  return use('web_search', isRecord(serverToolUse) ? serverToolUse.web_search_requests : undefined);
};

/** What the uses of one attempt come to. `counted`: the vendor tells what all of it cost, so no price is missing. */
export function feesOf({ provider, id }: ModelInfo, uses: readonly Use[], counted: boolean): Fees | undefined {
  // Together first: some are charged once, however often they came.
  let fees: Fees | undefined;
  for (const [kind, ofKind] of Map.groupBy(uses, use => use.kind)) {
    for (const [used, group] of Map.groupBy(ofKind, ({ of = id }) => of)) {
      const amount = group.reduce((sum, each) => sum + each.amount, 0);
      fees = addFees(fees, { [kind]: feeFor(provider, kind, used, amount, counted) });
    }
  }
  return fees;
}
