import { median } from './statistics.ts';

/** What one contender showed in one round, by the name of the figure. */
export type Figures = Readonly<Record<string, number>>;
export type Contenders = Readonly<Record<string, () => Promise<Figures>>>;

/** One round's figures by contender. */
export type Round = Readonly<Record<string, Figures>>;

/**
 * Lets every contender run once a round, one after the other. Each round begins with another one, so that none always
 * has the place after a heavy neighbour. The first `warmUp` rounds count for nothing.
 */
export async function inRounds(count: number, contenders: Contenders, warmUp = 1): Promise<Round[]> {
  const names = Object.keys(contenders);
  const rounds: Round[] = [];
  for (let round = 0; round < count + warmUp; round++) {
    const figures: Record<string, Figures> = {};
    for (let place = 0; place < names.length; place++) {
      const name = names[(place + round) % names.length] ?? '';
      const contender = contenders[name];
      if (contender) figures[name] = await contender();
    }
    if (round >= warmUp) rounds.push(figures);
  }
  return rounds;
}

/** Median over the rounds. */
export function typical(rounds: readonly Round[], contender: string, figure: string): number {
  return median(rounds.map(round => round[contender]?.[figure] ?? Number.NaN));
}

/** Median of the quotients, each taken inside of its round: what slows a whole round down cancels out. */
export function ratio(rounds: readonly Round[], figure: string, contender: string, yardstick: string): number {
  return median(
    rounds.map(round => (round[contender]?.[figure] ?? Number.NaN) / (round[yardstick]?.[figure] ?? Number.NaN)),
  );
}
