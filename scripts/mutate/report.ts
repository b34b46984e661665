import type { Mutant } from './mutants.ts';
import type { Outcome } from './session.ts';

/** A survivor that stays, because no test can tell it from the original, or none should. */
export interface AcceptedSurvivor {
  file: string;
  /** The text of its line, and its change: both stay when lines move. */
  text: string;
  change: string;
  reason: string;
}

export interface TriedMutant extends Mutant {
  file: string;
  outcome: Outcome;
}

/** The least share of mutants that the tests must notice. */
export const leastKilled = 0.9;

const isAlive = ({ outcome }: TriedMutant) => outcome === 'survived' || outcome === 'unreached';

export function isAccepted(mutant: TriedMutant, accepted: readonly AcceptedSurvivor[]): boolean {
  const { file, text, change } = mutant;
  return accepted.some(each => each.file === file && each.text === text && each.change === change);
}

/** One row of the table, for a file, a module or all. */
export function row(name: string, tried: readonly TriedMutant[]): string {
  const count = (outcome: Outcome) => String(tried.filter(mutant => mutant.outcome === outcome).length).padStart(9);
  const percent = `${(killedShare(tried) * 100).toFixed(1)} %`.padStart(9);
  return `${name.padEnd(52)}${String(tried.length).padStart(8)}${count('killed')}${count('timeout')}${count('survived')}${count('unreached')}${percent}`;
}

export const header = `${''.padEnd(52)} mutants   killed  timeout survived unreached    share`;

/** A mutant that hangs or ends the process is noticed too. */
export function killedShare(tried: readonly TriedMutant[]): number {
  return tried.length === 0 ? 1 : tried.filter(mutant => !isAlive(mutant)).length / tried.length;
}

/** Lists survivors as `file:line`, those with a reason after the others. */
export function survivors(
  tried: readonly TriedMutant[],
  accepted: readonly AcceptedSurvivor[],
): { listed: string[]; open: string[] } {
  const alive = tried.filter(isAlive);
  const show = (mutant: TriedMutant) =>
    `${mutant.file}:${mutant.line}  ${mutant.change}${mutant.outcome === 'unreached' ? '  (reached by no test)' : ''}`;
  const open = alive.filter(mutant => !isAccepted(mutant, accepted)).map(show);
  const listed = alive.filter(mutant => isAccepted(mutant, accepted)).map(show);
  return { listed, open };
}
