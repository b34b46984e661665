import { isAppError } from '../core/errors.ts';
import type { Clock, Emit, Random } from '../core/ports.ts';
import type { SpendLedger } from '../core/spend-ledger.ts';
import type { SpendEntry } from '../core/usage.ts';
import { feesUsd } from '../domain/fees.ts';
import { type CallAccount, type Held, isLimited, putAside } from '../engine/spend/put-aside.ts';
import { type Pricing, withKnownPrices } from '../engine/spend/quote.ts';
import type { AskModel, ModelAnswer, ModelQuestion, Waste } from './ask-model.ts';
import { callLimit, isBrokenOff, refuseRetry, type SpendCaps } from './budget.ts';

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
   * (`max_cost_usd`; anything but a number: no limit of its own).
   */
  begin(reqId: string, maxCostUsd: unknown): void;
  end(reqId: string): void;
  /** Resolves when the ledger has everything. */
  flush(): Promise<void>;
}

export function createMeter(options: MeterOptions): Meter {
  return new ModelMeter(options);
}

class ModelMeter implements Meter {
  readonly #options: MeterOptions;
  readonly #accounts = new Map<string, CallAccount>();
  readonly #writing = new Set<Promise<void>>();

  constructor(options: MeterOptions) {
    this.#options = options;
  }

  begin(reqId: string, maxCostUsd: unknown): void {
    this.#accounts.set(reqId, this.#accountFor(maxCostUsd));
  }

  end(reqId: string): void {
    this.#accounts.delete(reqId);
  }

  async flush(): Promise<void> {
    while (this.#writing.size > 0) await Promise.all(this.#writing);
  }

  readonly ask: AskModel = async given => {
    const account = this.#accounts.get(given.reqId) ?? this.#accountFor(undefined);
    const question = this.#within(given, account);
    // What earlier calls put aside and did not need must be free by now.
    if (!this.#isUnlimited()) await this.flush();
    const held = await putAside(this.#options, question, account);
    const asked = this.#watched(question, account, held);
    let answer: ModelAnswer;
    try {
      answer = await this.#options.ask(asked);
    } catch (error) {
      if (held && !isBrokenOff(error)) {
        account.used -= held.usd;
        this.#write(undefined, held.id);
      }
      throw error;
    }
    const costUsd = this.#costOf(answer);
    if (held) account.used += (costUsd ?? feesUsd(answer.usage.fees)) - held.usd;
    this.#write(this.#entryOf(question, { ...answer, costUsd }), held?.id);
    return held?.limited ? withWarning(answer, held) : answer;
  };

  #within(question: ModelQuestion, account: CallAccount): ModelQuestion {
    if (!isLimited(this.#options, question.payer, account)) return question;
    return { ...question, candidates: withKnownPrices(question.candidates, this.#options.pricing) };
  }

  /** The question with what was put aside as its limit, and attempts that failed counted as they happen. */
  #watched(question: ModelQuestion, account: CallAccount, held: Held | undefined): ModelQuestion {
    const stop = new AbortController();
    const onWaste = (waste: Waste) => {
      question.onWaste?.(waste);
      const costUsd = this.#costOf(waste);
      this.#write(this.#entryOf(question, { ...waste, costUsd }));
      if (!costUsd) return;
      account.used += costUsd;
      // What was put aside is enough for one attempt; the other limits may have no more.
      const over = account.limit !== undefined && account.used > account.limit.usd;
      if (held && (held.id !== undefined || over)) stop.abort(refuseRetry(waste));
    };
    if (!held) return { ...question, onWaste };
    const signal = AbortSignal.any([question.signal, stop.signal]);
    return { ...question, onWaste, maxOutputTokens: held.maxOutputTokens, signal };
  }

  #accountFor(maxCostUsd: unknown): CallAccount {
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

function withWarning(answer: ModelAnswer, { maxOutputTokens }: Held): ModelAnswer {
  const warning = `The answer was limited to ${maxOutputTokens} tokens, so that it can't cost more than is left to spend.`;
  return { ...answer, warnings: [...answer.warnings, warning] };
}
