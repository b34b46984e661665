import { addUsage, noUsage, type Usage } from '../core/usage.ts';

/** What a Polylogue used since it was made. */
export interface TokenStats {
  /** Answers of models. */
  answers: number;
  usage: Usage;
  /** US dollars; answers of unknown price cost nothing here. */
  costUsd: number;
  /** By `provider:model`. */
  byModel: Record<string, { answers: number; usage: Usage; costUsd: number }>;
}

/** Adds up what answers took. */
export interface Tally {
  add(answer: { model: string; answers: number; usage: Usage; costUsd?: number }): void;
  stats(): TokenStats;
}

export function createTally(): Tally {
  const byModel = new Map<string, { answers: number; usage: Usage; costUsd: number }>();
  return {
    add({ model, answers, usage, costUsd = 0 }) {
      const before = byModel.get(model) ?? { answers: 0, usage: noUsage, costUsd: 0 };
      byModel.set(model, {
        answers: before.answers + answers,
        usage: addUsage(before.usage, usage),
        costUsd: before.costUsd + costUsd,
      });
    },
    stats() {
      const all = [...byModel.values()];
      return {
        answers: all.reduce((sum, each) => sum + each.answers, 0),
        usage: all.reduce((sum, each) => addUsage(sum, each.usage), noUsage),
        costUsd: all.reduce((sum, each) => sum + each.costUsd, 0),
        byModel: Object.fromEntries(byModel),
      };
    },
  };
}
