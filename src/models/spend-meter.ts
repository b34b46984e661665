import { isAppError } from '../core/errors.ts';
import type { Candidate } from '../core/model.ts';
import type { Clock, Emit, Random } from '../core/ports.ts';
import type { SpendLedger } from '../core/spend-ledger.ts';
import { tokenFactor } from '../core/tokens.ts';
import { addUsage, dayOf, feesUsd, noUsage, type SpendEntry, type Usage } from '../core/usage.ts';
import type { AskModel, ModelAnswer, ModelQuestion, Waste } from './ask-model.ts';
import {
  type BudgetHeadroom,
  type CallLimit,
  type CostEstimate,
  callLimit,
  estimateCost,
  isInterrupted,
  type Pricing,
  promptTokens,
  refuseCost,
  refuseRetry,
  refuseUnpriced,
  type SpendCaps,
  usefulAnswer,
  withKnownPrices,
} from './budget.ts';

/** The money of one call of a tool. */
export interface CallSpend {
  limit?: CallLimit;
  /** Spent, or reserved for questions under way. */
  used: number;
  /** The part of `used` for models that nobody named; absent: nothing. */
  autoUsed?: number;
  /** What vendors billed so far; absent: nothing. */
  billed?: Bill;
  /** Gets what the call may have cost by the end of a question, before that is asked. */
  tell?(usd: number): void;
}

/** What a call was billed for. */
export interface Bill {
  usage: Usage;
  /** US dollars as far as prices are known; absent: none is. */
  costUsd?: number;
}

/** What was reserved for one question. */
export interface Reservation {
  usd: number;
  /** The most that the answer may come to; `limited`: what makes that less than was asked for. */
  maxOutputTokens: number;
  limited?: BudgetHeadroom['name'];
  /** US dollars that the limits leave beside it, for attempts that fail. */
  spare: number;
  /** Its number in the ledger; absent: it stands in the account of the call alone. */
  id?: string;
}

export interface ReservationParts {
  ledger: Pick<SpendLedger, 'used' | 'hold'>;
  caps: SpendCaps;
  pricing: Pricing;
  clock: Clock;
  random: Random;
}

/** A process that died in the middle of a call holds its money for this long. */
const holdMs = 3_600_000;

/** Sums of dollars are off by less than this. */
const rounding = 1e-9;

/** How often others may take what is free before this one gives up. */
const maxTries = 20;

/** Whether AUTO_COST_LIMIT holds for a question: nobody named its model, and its price is known. */
function isAuto({ candidates: [first] }: ModelQuestion): boolean {
  return first?.auto === true && first.model.price !== undefined;
}

/** What a question costs at each of its candidates at the worst: `tokens` are o200k's, and each counts in its own way. */
function costsOf(
  { pricing }: ReservationParts,
  { candidates, webSearch }: ModelQuestion,
  tokens: number,
): CostEstimate[] {
  return candidates.map(candidate =>
    estimateCost([candidate], Math.ceil(tokens * tokenFactor(candidate.model.id)), pricing, webSearch),
  );
}

function leastAnswer({ maxOutputTokens, candidates }: ModelQuestion): number {
  const max = Math.min(maxOutputTokens, Math.max(...candidates.map(({ model }) => model.maxOutput)));
  return Math.min(max, usefulAnswer(candidates).least);
}

/**
 * The question without candidates that the limits don't allow: one that is dear must not keep the others from being asked. Who
 * was named is asked or refused; nobody else takes that place for its price.
 */
export async function withinLimits(
  parts: ReservationParts,
  question: ModelQuestion,
  account: CallSpend,
  tokens: number,
): Promise<ModelQuestion> {
  const { payer } = question;
  if (!isLimited(parts, payer, account, isAuto(question))) return question;
  const candidates = withKnownPrices(question.candidates, parts.pricing);
  const known = { ...question, candidates };
  const { free } = await tightestRoom(parts, payer, account, isAuto(question));
  const costs = costsOf(parts, known, tokens);
  const fits = ({ fixed, perToken, unpriced }: CostEstimate, candidate: Candidate) =>
    !unpriced && fixed + leastAnswer({ ...known, candidates: [candidate] }) * perToken <= free + rounding;
  const kept = candidates.filter((candidate, index) => costs[index] && fits(costs[index], candidate));
  const [first] = candidates;
  const mayChange = first !== undefined && kept.length > 0 && (first.auto || kept.includes(first));
  return mayChange ? { ...known, candidates: kept } : { ...known, candidates: candidates.slice(0, 1) };
}

/**
 * Reserves what a question may cost at the worst, before anybody is asked: so calls under way can't pass a limit together.
 * Where only a shorter answer can be paid, it is limited to that. Undefined: it is free, or nobody knows its price.
 */
export async function reserveForQuestion(
  parts: ReservationParts,
  question: ModelQuestion,
  account: CallSpend,
  tokens: number,
): Promise<Reservation | undefined> {
  const { payer, sharers, candidates } = question;
  const auto = isAuto(question);
  const costs = costsOf(parts, question, tokens);
  const unpriced = costs.find(cost => cost.unpriced)?.unpriced;
  if (unpriced && isLimited(parts, payer, account, auto)) throw refuseUnpriced(unpriced);
  if (unpriced) return undefined;
  const fixed = Math.max(...costs.map(cost => cost.fixed));
  const perToken = Math.max(...costs.map(cost => cost.perToken));
  const max = Math.min(question.maxOutputTokens, Math.max(...candidates.map(({ model }) => model.maxOutput)));
  const least = leastAnswer(question);
  return reserveBudget(parts, { payer, sharers, fixed, perToken, max, least, auto }, account);
}

/** What something may cost, and who pays. */
export interface BudgetRequest
  extends Pick<ModelQuestion, 'payer' | 'sharers'>,
    Pick<CostEstimate, 'fixed' | 'perToken'> {
  /** Tokens of an answer that are wanted, and without which it is of no use. */
  max: number;
  least: number;
  /** AUTO_COST_LIMIT holds. */
  auto?: boolean;
}

/** Whether anything limits what this payer may spend. */
export function isLimited(
  parts: Pick<ReservationParts, 'caps'>,
  payer: ModelQuestion['payer'],
  account: CallSpend,
  auto = false,
): boolean {
  const { thread, day } = limitsOf(parts, payer);
  return roomsOfCall(parts, account, auto).length > 0 || thread !== undefined || day !== undefined;
}

function limitsOf({ caps }: Pick<ReservationParts, 'caps'>, payer: ModelQuestion['payer']) {
  const { perThread, perDay } = payer ? caps : {};
  return { thread: payer?.thread === undefined ? undefined : perThread, day: perDay };
}

/** What the call's own limits leave. */
function roomsOfCall({ caps }: Pick<ReservationParts, 'caps'>, account: CallSpend, auto: boolean): BudgetHeadroom[] {
  const { limit, used, autoUsed = 0 } = account;
  const usd = auto ? caps.perAutoCall : undefined;
  return [
    ...(limit ? [{ ...limit, free: limit.usd - used }] : []),
    ...(usd === undefined ? [] : [{ name: 'AUTO_COST_LIMIT' as const, usd, free: usd - autoUsed }]),
  ];
}

function charge(account: CallSpend, usd: number, auto: boolean): void {
  account.used += usd;
  if (auto) account.autoUsed = (account.autoUsed ?? 0) + usd;
}

/** Puts the money aside, in the account of the call and, where a limit goes beyond the call, in the ledger. */
export async function reserveBudget(
  parts: ReservationParts,
  ask: BudgetRequest,
  account: CallSpend,
): Promise<Reservation | undefined> {
  const { payer, sharers = 1, fixed, perToken, max, least, auto = false } = ask;
  if (fixed + perToken === 0) return undefined;
  const limits = limitsOf(parts, payer);
  const shared = limits.thread !== undefined || limits.day !== undefined;
  for (let tries = 1; ; tries++) {
    const room = await tightestRoom(parts, payer, account, auto);
    const affordable = (usd: number) => (perToken === 0 ? max : Math.floor((usd - fixed) / perToken + 1e-6));
    const own = roomsOfCall(parts, account, auto).map(({ free }) => free / sharers);
    const share = own.length > 0 ? Math.min(...own) : room.free;
    const maxOutputTokens = Math.min(max, affordable(room.free), Math.max(least, affordable(share)));
    if (maxOutputTokens < least || fixed > room.free + rounding || tries > maxTries) {
      throw refuseCost(fixed + least * perToken, room, parts.clock.now());
    }
    const usd = fixed + maxOutputTokens * perToken;
    charge(account, usd, auto);
    const held = { usd, maxOutputTokens, spare: room.free - usd, ...(maxOutputTokens < max && { limited: room.name }) };
    if (!shared || !payer) return held;
    const id = parts.random.uuid();
    const scope = scopeOf(parts.clock, payer);
    const wanted = { ...scope, id, usd, expiresAt: scope.now + holdMs };
    if (await parts.ledger.hold({ ...wanted, threadLimit: limits.thread, dayLimit: limits.day }))
      return { ...held, id };
    // Another process took it in between.
    charge(account, -usd, auto);
  }
}

/** Without any limit its room is infinite. */
async function tightestRoom(
  { ledger, clock, caps }: ReservationParts,
  payer: ModelQuestion['payer'],
  account: CallSpend,
  auto: boolean,
): Promise<BudgetHeadroom> {
  const limits = limitsOf({ caps }, payer);
  const shared = limits.day !== undefined || limits.thread !== undefined;
  const used = payer && shared ? await ledger.used(scopeOf(clock, payer)) : undefined;
  const rooms: BudgetHeadroom[] = [];
  if (used && limits.day !== undefined) {
    rooms.push({ name: 'MAX_COST_PER_DAY', usd: limits.day, free: limits.day - used.day });
  }
  if (used && limits.thread !== undefined) {
    rooms.push({ name: 'MAX_COST_PER_THREAD', usd: limits.thread, free: limits.thread - used.thread });
  }
  // Last, and without a wait behind it: other questions of this call may have put money aside meanwhile.
  rooms.push(...roomsOfCall({ caps }, account, auto));
  const endless: BudgetHeadroom = { name: 'AUTO_COST_LIMIT', usd: Infinity, free: Infinity };
  return rooms.reduce((a, b) => (b.free <= a.free ? b : a), endless);
}

function scopeOf(clock: Clock, payer: NonNullable<ModelQuestion['payer']>) {
  const now = clock.now();
  return { owner: payer.owner, day: dayOf(now), now, ...(payer.thread && { thread: payer.thread }) };
}

export interface MeterOptions {
  ask: AskModel;
  ledger: SpendLedger;
  caps: SpendCaps;
  pricing: Pricing;
  clock: Clock;
  random: Random;
  emit: Emit;
}

/** Stands before the models: nobody is asked for more than may be spent, and what was spent is written down once. */
export interface Meter {
  ask: AskModel;
  /**
   * One call of a tool begins: all its questions together may cost what the operator allows, and no more than it asks for
   * (`max_cost_usd`; anything but a number: no limit of its own). `tell` hears what it may cost.
   */
  begin(reqId: string, maxCostUsd: unknown, tell?: CallSpend['tell']): void;
  /** What it was billed for; undefined: nothing. */
  end(reqId: string): Bill | undefined;
  /** What the tightest limit leaves for questions of this call whose model nobody names; infinite: there is no limit. */
  left(reqId: string, payer: ModelQuestion['payer']): Promise<BudgetHeadroom>;
  /** Resolves when the ledger has everything. */
  flush(): Promise<void>;
}

export function createMeter(options: MeterOptions): Meter {
  return new ModelMeter(options);
}

class ModelMeter implements Meter {
  readonly #options: MeterOptions;
  readonly #accounts = new Map<string, CallSpend>();
  readonly #writing = new Set<Promise<void>>();

  constructor(options: MeterOptions) {
    this.#options = options;
  }

  begin(reqId: string, maxCostUsd: unknown, tell?: CallSpend['tell']): void {
    this.#accounts.set(reqId, { ...this.#accountFor(maxCostUsd), tell });
  }

  async left(reqId: string, payer: ModelQuestion['payer']): Promise<BudgetHeadroom> {
    if (!this.#isUnlimited()) await this.flush();
    const account = this.#accounts.get(reqId) ?? this.#accountFor(undefined);
    return tightestRoom(this.#options, payer, account, true);
  }

  end(reqId: string): Bill | undefined {
    const billed = this.#accounts.get(reqId)?.billed;
    this.#accounts.delete(reqId);
    return billed;
  }

  async flush(): Promise<void> {
    while (this.#writing.size > 0) await Promise.all(this.#writing);
  }

  readonly ask: AskModel = async given => {
    const account = this.#accounts.get(given.reqId) ?? this.#accountFor(undefined);
    // What earlier calls reserved and did not need must be free by now.
    if (!this.#isUnlimited()) await this.flush();
    const tokens = promptTokens(given.messages, []);
    const question = await withinLimits(this.#options, given, account, tokens);
    const auto = isAuto(question);
    const held = await reserveForQuestion(this.#options, question, account, tokens);
    if (held) account.tell?.(account.used);
    const asked = this.#watched(question, account, held);
    let answer: ModelAnswer;
    try {
      answer = await this.#options.ask(asked);
    } catch (error) {
      if (held && !isInterrupted(error)) {
        charge(account, -held.usd, auto);
        this.#write(undefined, held.id);
      }
      throw error;
    }
    const costUsd = this.#costOf(answer);
    if (held) charge(account, (costUsd ?? feesUsd(answer.usage.fees)) - held.usd, auto);
    bill(account, answer.usage, costUsd);
    this.#write(this.#entryOf(question, { ...answer, costUsd }), held?.id);
    // The usual limit leaves room for any usual answer: it is only worth a word where it cut one.
    const matters = held?.limited !== 'AUTO_COST_LIMIT' || answer.finish.kind === 'length';
    return held?.limited && matters ? withWarning(answer, held) : answer;
  };

  /** The question with what was reserved as its limit, and attempts that failed counted as they happen. */
  #watched(question: ModelQuestion, account: CallSpend, held: Reservation | undefined): ModelQuestion {
    const stop = new AbortController();
    let wasted = 0;
    const onWaste = (waste: Waste) => {
      question.onWaste?.(waste);
      const costUsd = this.#costOf(waste);
      bill(account, waste.usage, costUsd);
      this.#write(this.#entryOf(question, { ...waste, costUsd }));
      if (!costUsd) return;
      charge(account, costUsd, isAuto(question));
      wasted += costUsd;
      // What was reserved is enough for one attempt; the limits may have no more.
      const over = roomsOfCall(this.#options, account, isAuto(question)).some(({ free }) => free < -rounding);
      if (held && (over || wasted > held.spare + rounding)) stop.abort(refuseRetry(waste));
    };
    if (!held) return { ...question, onWaste };
    const signal = AbortSignal.any([question.signal, stop.signal]);
    return { ...question, onWaste, maxOutputTokens: held.maxOutputTokens, signal };
  }

  #accountFor(maxCostUsd: unknown): CallSpend {
    const limit = callLimit(this.#options.caps.perRequest, maxCostUsd);
    return { used: 0, ...(limit && { limit }) };
  }

  #costOf({ costUsd, model }: Waste): number | undefined {
    return costUsd ?? (this.#options.pricing.isLocal(model.provider) ? 0 : undefined);
  }

  #entryOf({ payer, tool }: ModelQuestion, { model, usage, costUsd }: Waste): SpendEntry | undefined {
    if (!payer) return undefined;
    const { provider, id } = model;
    const at = this.#options.clock.now();
    return { ...payer, at, tool, provider, model: id, usage, ...(costUsd !== undefined && { costUsd }) };
  }

  /** Then no later question has to know what this one cost: its entry goes into the ledger with the answer. */
  #isUnlimited(): boolean {
    const { perThread, perDay } = this.#options.caps;
    return perThread === undefined && perDay === undefined;
  }

  /** Nobody waits for it but `flush`. */
  #write(entry: SpendEntry | undefined, hold?: string): void {
    if (!entry && hold === undefined) return;
    const done: Promise<void> = this.#options.ledger
      .add(entry, hold, this.#isUnlimited())
      .catch(error => {
        // The answer is there and paid for; only the sums lack it.
        const message = isAppError(error) ? error.message : String(error);
        this.#options.emit({ type: 'warning', where: 'ledger', message });
      })
      .finally(() => this.#writing.delete(done));
    this.#writing.add(done);
  }
}

function bill(account: CallSpend, usage: Usage, costUsd: number | undefined): void {
  const { billed } = account;
  const usd = costUsd === undefined ? billed?.costUsd : (billed?.costUsd ?? 0) + costUsd;
  account.billed = { usage: addUsage(billed?.usage ?? noUsage, usage), ...(usd !== undefined && { costUsd: usd }) };
}

function withWarning(answer: ModelAnswer, { maxOutputTokens }: Reservation): ModelAnswer {
  const warning = `The answer was limited to ${maxOutputTokens} tokens, so that it can't cost more than is left to spend.`;
  return { ...answer, warnings: [...answer.warnings, warning] };
}
