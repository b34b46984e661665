import { every } from '../core/concurrency.ts';
import { warnFrom } from '../core/errors.ts';
import type { ModelInfo } from '../core/model.ts';
import type { Clock, Emit, Random } from '../core/ports.ts';
import type { AttemptRecord } from '../core/thread.ts';
import { dayOf, feesUsd, noUsage, type SpendEntry, type SpendHold, type SpendLedger } from '../core/usage.ts';
import type { AskModel, ModelAnswer, ModelQuestion, Waste } from './ask-model.ts';
import type { CallSpend, CostRequest, Payment, Reservation } from './budget.ts';
import * as budget from './budget.ts';

/** What is reserved for a question, which has only candidates that the limits allow; nothing where it is free or not priced. */
export interface QuestionReservation {
  question: ModelQuestion;
  payment: Payment;
  held?: Reservation | undefined;
}

export interface SpendLimitParts {
  ledger: SpendLedger;
  caps: budget.SpendCaps;
  pricing: budget.Pricing;
  clock: Clock;
  random: Random;
  emit: Emit;
}

/** What a call reserves is free again so long after its process died, in milliseconds: a process that lives renews it. */
const holdMs = 30_000;
const renewEveryMs = 10_000;

/** For so long a vendor may go on charging for what was given up on, in milliseconds. */
const keepMs = 3_600_000;

/** How often and how long, in milliseconds, a ledger is tried that failed, and how many entries wait for it at most. */
const lateEveryMs = 2_000;
const lateMs = 3_600_000;
const maxLate = 10_000;

/** Sums of dollars are off by less than this. */
const rounding = 1e-9;

/** How often others may take what is free before this one gives up. */
const maxTries = 20;

/**
 * The limits on what may be spent. What something may cost at the worst is reserved before it is done, in the account of the call
 * and, where a limit goes beyond the call, in the ledger: so calls under way can't pass a limit together.
 */
export class SpendLimits {
  readonly parts: SpendLimitParts;
  readonly #writing = new Set<Promise<void>>();
  /** What the ledger could not take so far. */
  readonly #late = new Set<() => void>();
  #stopTimer: (() => void) | undefined;
  /** What calls of this process reserve in the ledger, by its ID. */
  readonly #held = new Map<string, Omit<SpendHold, 'now' | 'expiresAt'>>();
  #stopRenewal: (() => void) | undefined;

  constructor(parts: SpendLimitParts) {
    this.parts = parts;
  }

  /** The money of a call that wants to spend no more than `maxCostUsd`; anything but a number: no limit of its own. */
  account(maxCostUsd?: unknown): CallSpend {
    const limit = budget.callLimit(this.parts.caps.perRequest, maxCostUsd);
    return { used: 0, autoUsed: 0, attempts: [], ...(limit && { limit }) };
  }

  /** What the tightest limit leaves; infinite: there is none. What earlier calls did not need is free by then. */
  async left(payment: Payment): Promise<budget.BudgetHeadroom> {
    if (this.#isLedgerLimited()) await this.flush();
    return this.#tightest(payment);
  }

  isLimited(payment: Payment): boolean {
    const { thread, day } = this.#limitsOf(payment);
    return this.#ownRooms(payment).length > 0 || thread !== undefined || day !== undefined;
  }

  /** Whether more was spent in a call than it may: `spare` was left beside what is reserved, and `wasted` went since. */
  isPassed(payment: Payment, { spare }: Reservation, wasted: number): boolean {
    return wasted > spare + rounding || this.#ownRooms(payment).some(({ free }) => free < -rounding);
  }

  charge({ account, auto }: Payment, usd: number): void {
    account.used += usd;
    if (auto) account.autoUsed += usd;
  }

  /**
   * Reserves what a question may cost. Candidates that the limits don't allow are left out: one that is dear must not keep the
   * others from being asked. Who was named is asked or refused; nobody else takes that place for its price.
   */
  async reserveFor(given: ModelQuestion, account: CallSpend): Promise<QuestionReservation> {
    if (this.#isLedgerLimited()) await this.flush();
    const tokens = budget.promptTokens(given.messages, []);
    const wanted: Payment = { payer: given.payer, account, auto: isAuto(given) };
    const limited = this.isLimited(wanted);
    const question = limited ? await this.#allowed(given, wanted, tokens) : given;
    const { candidates, sharers } = question;
    const payment = { ...wanted, auto: isAuto(question) };
    const costs = candidates.map(candidate => budget.costAt(candidate, question, tokens, this.parts.pricing));
    const unpriced = costs.find(cost => cost.unpriced)?.unpriced;
    if (unpriced && limited) throw budget.refuseUnpriced(unpriced, (await this.#tightest(wanted)).name);
    if (unpriced) return { question, payment };
    const fixed = Math.max(...costs.map(cost => cost.fixed));
    const perToken = Math.max(...costs.map(cost => cost.perToken));
    const max = budget.mostOutput(question, candidates);
    const least = budget.leastOutput(question, candidates);
    return { question, payment, held: await this.reserve(payment, { sharers, fixed, perToken, max, least }) };
  }

  async #allowed(given: ModelQuestion, payment: Payment, tokens: number): Promise<ModelQuestion> {
    const { pricing } = this.parts;
    const { candidates } = given;
    const { free } = await this.#tightest(payment);
    const kept = candidates.filter(candidate => {
      const { fixed, perToken, unpriced } = budget.costAt(candidate, given, tokens, pricing);
      return !unpriced && fixed + budget.leastOutput(given, [candidate]) * perToken <= free + rounding;
    });
    const [first] = candidates;
    const mayChange = first !== undefined && kept.length > 0 && (first.auto || kept.includes(first));
    return { ...given, candidates: mayChange ? kept : candidates.slice(0, 1) };
  }

  /** Where only a shorter answer can be paid, it is limited to that. Undefined: it is free. */
  async reserve(payment: Payment, request: CostRequest): Promise<Reservation | undefined> {
    const { ledger, clock, random } = this.parts;
    const { payer } = payment;
    const { sharers = 1, fixed, perToken, max, least } = request;
    if (fixed === 0 && perToken === 0) return undefined;
    const { thread: threadLimit, day: dayLimit } = this.#limitsOf(payment);
    for (let tries = 1; ; tries++) {
      const rooms = await this.#ledgerRooms(payment);
      // From here on nothing is waited for, so that other questions of this call reserve nothing in between.
      const room = this.#tightestOf(payment, rooms);
      const affordable = (usd: number) => (perToken === 0 ? max : Math.floor((usd - fixed) / perToken + 1e-6));
      const share = Math.min(...this.#ownRooms(payment).map(({ free }) => free / sharers));
      const maxOutputTokens = Math.min(max, affordable(room.free), Math.max(least, affordable(share)));
      if (maxOutputTokens < least || fixed > room.free + rounding || tries > maxTries)
        throw budget.refuseCost(fixed + least * perToken, room, clock.now());
      const usd = fixed + maxOutputTokens * perToken;
      this.charge(payment, usd);
      const limited = maxOutputTokens < max && { limited: room.name };
      const held = { usd, maxOutputTokens, spare: room.free - usd, ...limited };
      if (!payer || (threadLimit === undefined && dayLimit === undefined)) return held;
      const id = random.uuid();
      const { now, ...scope } = scopeOf(clock, payer);
      const hold = { ...scope, id, usd };
      const holding = ledger.hold({ ...hold, now, expiresAt: now + holdMs, threadLimit, dayLimit });
      const isHeld = await holding.catch(error => {
        this.charge(payment, -usd);
        throw error;
      });
      if (isHeld) {
        this.#held.set(id, hold);
        this.#stopRenewal ??= every(clock, renewEveryMs, () => this.#renew());
        return { ...held, id };
      }
      // Another process took it in between.
      this.charge(payment, -usd);
    }
  }

  /** Makes what was reserved free again; `isGivenUp`: an hour later, for the vendor may go on charging. */
  release(payment: Payment, { usd, id }: Reservation, isGivenUp = false): void {
    const hold = isGivenUp && id !== undefined && this.#held.get(id);
    if (hold) {
      this.#drop(hold.id);
      void this.#write(() => this.#extend(hold, keepMs));
    }
    if (isGivenUp) return;
    this.charge(payment, -usd);
    this.record(undefined, id);
  }

  /** Adds what was spent to the ledger and frees what was reserved there. Nobody has to wait for it but `flush`. */
  async record(entry: SpendEntry | undefined, hold?: string, unhurried = !this.#isLedgerLimited()): Promise<void> {
    if (!entry && hold === undefined) return;
    const named = entry && { ...entry, id: this.parts.random.uuid() };
    await this.#write(async () => {
      await this.parts.ledger.add(named, hold, unhurried);
      // Renewed until then: a ledger that failed must not take it for free.
      if (hold !== undefined) this.#drop(hold);
    });
  }

  #drop(id: string): void {
    this.#held.delete(id);
    if (this.#held.size > 0) return;
    this.#stopRenewal?.();
    this.#stopRenewal = undefined;
  }

  #renew(): void {
    // One that fails is followed by the next in time.
    for (const hold of this.#held.values()) this.#extend(hold, holdMs).catch(warnFrom(this.parts.emit, 'ledger'));
  }

  async #extend(hold: Omit<SpendHold, 'now' | 'expiresAt'>, ms: number): Promise<void> {
    const now = this.parts.clock.storeTime();
    await this.parts.ledger.hold({ ...hold, now, expiresAt: now + ms });
  }

  /** `since`: when the ledger failed first. */
  #write(write: () => Promise<void>, since?: number): Promise<void> {
    const { clock, emit } = this.parts;
    const done: Promise<void> = write()
      .catch(error => {
        // It was done and is paid for; only the sums lack it, until the ledger works again.
        if (since === undefined) warnFrom(emit, 'ledger')(error);
        const now = clock.monotonic();
        if (now - (since ?? now) > lateMs || this.#late.size >= maxLate) return;
        this.#late.add(() => void this.#write(write, since ?? now));
        this.#stopTimer ??= clock.after(lateEveryMs, () => void this.flush());
      })
      .finally(() => this.#writing.delete(done));
    this.#writing.add(done);
    return done;
  }

  /** Resolves when the ledger has everything that it takes. */
  async flush(): Promise<void> {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    for (const again of this.#late) again();
    this.#late.clear();
    while (this.#writing.size > 0) await Promise.all(this.#writing);
  }

  /** Otherwise no later question has to know what this one cost: its entry goes into the ledger with the answer. */
  #isLedgerLimited(): boolean {
    return (this.parts.caps.perThread ?? this.parts.caps.perDay) !== undefined;
  }

  #limitsOf({ payer }: Payment): { thread?: number | undefined; day?: number | undefined } {
    const { perThread, perDay } = payer ? this.parts.caps : {};
    return { thread: payer?.thread === undefined ? undefined : perThread, day: perDay };
  }

  /** What the call's own limits leave. */
  #ownRooms({ account: { limit, used, autoUsed }, auto }: Payment): budget.BudgetHeadroom[] {
    const usd = auto ? this.parts.caps.perAutoCall : undefined;
    return [
      ...(limit ? [{ ...limit, free: limit.usd - used }] : []),
      ...(usd === undefined ? [] : [{ name: 'AUTO_COST_LIMIT' as const, usd, free: usd - autoUsed }]),
    ];
  }

  /** What is left of the limits that the ledger keeps. */
  async #ledgerRooms(payment: Payment): Promise<budget.BudgetHeadroom[]> {
    const { ledger, clock } = this.parts;
    const { thread, day } = this.#limitsOf(payment);
    if (!payment.payer || (thread === undefined && day === undefined)) return [];
    const scope = scopeOf(clock, payment.payer);
    const used = await ledger.used(scope);
    const room = (name: budget.BudgetHeadroom['name'], kind: 'day' | 'thread', usd: number | undefined) => {
      const held = used.held?.filter(({ thread: of }) => kind === 'day' || of === scope.thread);
      return usd === undefined ? [] : [{ name, usd, free: usd - used[kind], held, heldAt: scope.now }];
    };
    return [...room('MAX_COST_PER_DAY', 'day', day), ...room('MAX_COST_PER_THREAD', 'thread', thread)];
  }

  async #tightest(payment: Payment): Promise<budget.BudgetHeadroom> {
    return this.#tightestOf(payment, await this.#ledgerRooms(payment));
  }

  #tightestOf(payment: Payment, rooms: readonly budget.BudgetHeadroom[]): budget.BudgetHeadroom {
    const none: budget.BudgetHeadroom = { name: 'AUTO_COST_LIMIT', usd: Infinity, free: Infinity };
    return [none, ...rooms, ...this.#ownRooms(payment)].reduce((a, b) => (b.free <= a.free ? b : a));
  }
}

const isAuto = ({ candidates: [first] }: ModelQuestion): boolean =>
  first?.auto === true && first.model.price !== undefined;

function scopeOf(clock: Clock, payer: NonNullable<ModelQuestion['payer']>) {
  const [day, now] = [dayOf(clock.now()), clock.storeTime()];
  return { owner: payer.owner, day, now, ...(payer.thread && { thread: payer.thread }) };
}

type Spent = Pick<SpendEntry, 'usage' | 'costUsd' | 'attempt'> & { model: Pick<ModelInfo, 'provider' | 'id'> };

/** Stands before the models: nobody is asked for more than may be spent, and what was spent is written down once. */
export type Meter = ReturnType<typeof createMeter>;

export function createMeter({ ask, ...parts }: SpendLimitParts & { ask: AskModel }) {
  const { clock, pricing } = parts;
  /** What paid work of vendors other than answers is paid out of. */
  const limits = new SpendLimits(parts);
  const accounts = new Map<string, CallSpend>();
  const accountOf = (reqId: string) => accounts.get(reqId) ?? limits.account();
  const costOf = ({ costUsd, model }: Waste) => costUsd ?? (pricing.isLocal(model.provider) ? 0 : undefined);

  const record = ({ payer, tool }: ModelQuestion, { model, usage, costUsd, attempt }: Spent, hold?: string) => {
    const what = { tool, provider: model.provider, model: model.id, usage, costUsd, attempt };
    void limits.record(payer && { ...payer, at: clock.now(), ...what }, hold);
  };

  /** The question with what was reserved as its limit, and attempts that failed counted as they happen. */
  function watched({ question, payment, held }: QuestionReservation, onSent: () => void): ModelQuestion {
    const stop = new AbortController();
    let wasted = 0;
    const onWaste = (waste: Waste) => {
      question.onWaste?.(waste);
      const costUsd = costOf(waste);
      budget.bill(payment.account, waste.usage, costUsd);
      record(question, { ...waste, costUsd });
      if (!costUsd) return;
      limits.charge(payment, costUsd);
      wasted += costUsd;
      // What was reserved is enough for one attempt; the limits may have no more.
      if (held && limits.isPassed(payment, held, wasted)) stop.abort(budget.refuseRetry(waste));
    };
    const onAttempt = (attempt: AttemptRecord) => {
      payment.account.attempts.push(attempt);
      const { provider, model: id, outcome, elapsedMs: ms } = attempt;
      const isFailed = outcome !== 'ok' && outcome !== 'skipped' && attempt.class !== 'cancelled';
      // What it was billed for is told by itself; one that succeeded stands in the entry of its answer.
      if (isFailed) record(question, { model: { provider, id }, usage: noUsage, attempt: { isFailed, ms } });
    };
    if (!held) return { ...question, onWaste, onAttempt, onSent };
    const signal = AbortSignal.any([question.signal, stop.signal]);
    return { ...question, onWaste, onAttempt, onSent, maxOutputTokens: held.maxOutputTokens, signal };
  }

  async function askReserved(reserved: QuestionReservation): Promise<ModelAnswer> {
    const { question, payment, held } = reserved;
    let sent = 0;
    const answer = await ask(watched(reserved, () => void sent++)).catch(error => {
      if (held) limits.release(payment, held, sent > 0 && budget.isInterrupted(error));
      throw error;
    });
    const costUsd = costOf(answer);
    if (held) limits.charge(payment, (costUsd ?? feesUsd(answer.usage.fees)) - held.usd);
    budget.bill(payment.account, answer.usage, costUsd);
    const ms = answer.attempts.findLast(({ outcome }) => outcome === 'ok')?.elapsedMs;
    record(question, { ...answer, costUsd, ...(ms !== undefined && { attempt: { isFailed: false, ms } }) }, held?.id);
    // The usual limit leaves room for any usual answer: it is only worth a word where it cut one.
    const matters = held?.limited !== 'AUTO_COST_LIMIT' || answer.finish.kind === 'length';
    return held?.limited && matters ? withWarning(answer, held) : answer;
  }

  /** Reserves what a question may cost, to be asked once, or given up. Rejects with LIMIT where the limits leave too little. */
  async function reserve(given: ModelQuestion) {
    const account = accountOf(given.reqId);
    const reserved = await limits.reserveFor(given, account);
    const { question, payment, held } = reserved;
    if (held) account.tell?.(account.used);
    let isOver = false;
    return {
      ask(changes?: Pick<ModelQuestion, 'limits'>) {
        isOver = true;
        return askReserved({ ...reserved, question: { ...question, ...changes } });
      },
      /** Frees what was reserved; does nothing once it was asked. */
      release() {
        if (held && !isOver) limits.release(payment, held);
        isOver = true;
      },
    };
  }

  return {
    /** Reserves what a question may cost, and asks it. */
    ask: async (question: ModelQuestion) => (await reserve(question)).ask(),
    reserve,
    limits,
    /**
     * One call of a tool begins: all its questions together may cost what the operator allows, and no more than it asks for
     * (`max_cost_usd`; anything but a number: no limit of its own). `tell` hears what it may cost.
     * Begun again, it has another limit, and its attempts so far. `autoUsed`: US dollars that went before for models nobody named.
     */
    begin(reqId: string, maxCostUsd: unknown, tell?: CallSpend['tell'], autoUsed = 0): void {
      const { attempts = [], tell: earlier } = accounts.get(reqId) ?? {};
      accounts.set(reqId, { ...limits.account(maxCostUsd), autoUsed, attempts, tell: tell ?? earlier });
    },
    /** US dollars that it cost so far, by the highest that unknown costs may be. */
    spent: (reqId: string) => accounts.get(reqId)?.used ?? 0,
    /** What it was billed for; undefined: nothing. */
    end(reqId: string) {
      const billed = accounts.get(reqId)?.billed;
      accounts.delete(reqId);
      return billed;
    },
    /** Attempts at models that the call made so far; those that it made elsewhere may be put there too. */
    attempts: (reqId: string) => accountOf(reqId).attempts,
    /** What the tightest limit leaves for questions of this call whose model nobody names; infinite: there is no limit. */
    left: (reqId: string, payer: ModelQuestion['payer']) =>
      limits.left({ payer, account: accountOf(reqId), auto: true }),
    /** Resolves when the ledger has everything. */
    flush: () => limits.flush(),
  };
}

function withWarning(answer: ModelAnswer, { maxOutputTokens }: Reservation): ModelAnswer {
  const warning = `The answer was limited to ${maxOutputTokens} tokens, so that it cannot cost more than the limit leaves.`;
  return { ...answer, warnings: [...answer.warnings, warning] };
}
