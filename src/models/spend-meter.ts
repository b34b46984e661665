import { feesUsd, type SpendEntry } from '../core/usage.ts';
import type { AskModel, ModelAnswer, ModelQuestion, Waste } from './ask-model.ts';
import { type BudgetHeadroom, isInterrupted, refuseRetry } from './budget.ts';
import { createServiceMeter, type MeterService } from './paid-services.ts';
import {
  type Bill,
  bill,
  type CallSpend,
  type QuestionReservation,
  type Reservation,
  type SpendLimitParts,
  SpendLimits,
} from './spend-limits.ts';

export interface MeterOptions extends SpendLimitParts {
  ask: AskModel;
}

/** A question whose worst cost is reserved. It is asked once, or given up. */
export interface ReservedQuestion {
  ask(changes?: Pick<ModelQuestion, 'limits'>): Promise<ModelAnswer>;
  /** Frees what was reserved; does nothing once it was asked. */
  release(): void;
}

/** Stands before the models: nobody is asked for more than may be spent, and what was spent is written down once. */
export interface Meter {
  /** Reserves what a question may cost, and asks it. */
  ask: AskModel;
  /** Reserves what a question may cost, to be asked later. Rejects with LIMIT where the limits leave too little. */
  reserve(question: ModelQuestion): Promise<ReservedQuestion>;
  /** Has vendors do paid work other than answers, within the same limits. */
  pay: MeterService;
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

export function createMeter({ ask, ...parts }: MeterOptions): Meter {
  const { clock, pricing } = parts;
  const limits = new SpendLimits(parts);
  const accounts = new Map<string, CallSpend>();
  const accountOf = (reqId: string) => accounts.get(reqId) ?? limits.account();
  const costOf = ({ costUsd, model }: Waste) => costUsd ?? (pricing.isLocal(model.provider) ? 0 : undefined);

  function entryOf({ payer, tool }: ModelQuestion, { model, usage, costUsd }: Waste): SpendEntry | undefined {
    if (!payer) return undefined;
    const { provider, id } = model;
    return { ...payer, at: clock.now(), tool, provider, model: id, usage, ...(costUsd !== undefined && { costUsd }) };
  }

  /** The question with what was reserved as its limit, and attempts that failed counted as they happen. */
  function watched({ question, payment, held }: QuestionReservation): ModelQuestion {
    const stop = new AbortController();
    let wasted = 0;
    const onWaste = (waste: Waste) => {
      question.onWaste?.(waste);
      const costUsd = costOf(waste);
      bill(payment.account, waste.usage, costUsd);
      limits.record(entryOf(question, { ...waste, costUsd }));
      if (!costUsd) return;
      limits.charge(payment, costUsd);
      wasted += costUsd;
      // What was reserved is enough for one attempt; the limits may have no more.
      if (held && limits.isPassed(payment, held, wasted)) stop.abort(refuseRetry(waste));
    };
    if (!held) return { ...question, onWaste };
    const signal = AbortSignal.any([question.signal, stop.signal]);
    return { ...question, onWaste, maxOutputTokens: held.maxOutputTokens, signal };
  }

  async function askReserved(reserved: QuestionReservation): Promise<ModelAnswer> {
    const { question, payment, held } = reserved;
    let answer: ModelAnswer;
    try {
      answer = await ask(watched(reserved));
    } catch (error) {
      // A vendor may go on charging for what was given up on: it counts as reserved.
      if (held && !isInterrupted(error)) limits.release(payment, held);
      throw error;
    }
    const costUsd = costOf(answer);
    if (held) limits.charge(payment, (costUsd ?? feesUsd(answer.usage.fees)) - held.usd);
    bill(payment.account, answer.usage, costUsd);
    limits.record(entryOf(question, { ...answer, costUsd }), held?.id);
    // The usual limit leaves room for any usual answer: it is only worth a word where it cut one.
    const matters = held?.limited !== 'AUTO_COST_LIMIT' || answer.finish.kind === 'length';
    return held?.limited && matters ? withWarning(answer, held) : answer;
  }

  async function reserve(given: ModelQuestion): Promise<ReservedQuestion> {
    const account = accountOf(given.reqId);
    const reserved = await limits.reserveFor(given, account);
    const { question, payment, held } = reserved;
    if (held) account.tell?.(account.used);
    let isOver = false;
    return {
      ask(changes) {
        isOver = true;
        return askReserved({ ...reserved, question: { ...question, ...changes } });
      },
      release() {
        if (held && !isOver) limits.release(payment, held);
        isOver = true;
      },
    };
  }

  return {
    ask: async question => (await reserve(question)).ask(),
    reserve,
    pay: createServiceMeter(parts, limits),
    begin: (reqId, maxCostUsd, tell) => void accounts.set(reqId, { ...limits.account(maxCostUsd), tell }),
    end(reqId) {
      const billed = accounts.get(reqId)?.billed;
      accounts.delete(reqId);
      return billed;
    },
    left: (reqId, payer) => limits.left({ payer, account: accountOf(reqId), auto: true }),
    flush: () => limits.flush(),
  };
}

function withWarning(answer: ModelAnswer, { maxOutputTokens }: Reservation): ModelAnswer {
  const warning = `The answer was limited to ${maxOutputTokens} tokens, so that it can't cost more than is left to spend.`;
  return { ...answer, warnings: [...answer.warnings, warning] };
}
