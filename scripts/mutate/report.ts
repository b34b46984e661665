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

export interface PlacedMutant extends Mutant {
  file: string;
}

export interface TriedMutant extends PlacedMutant {
  outcome: Outcome;
}

/** The least share of mutants that the tests must notice. */
export const leastKilled = 0.9;

const isAlive = ({ outcome }: TriedMutant) => outcome === 'survived' || outcome === 'unreached';

export function isAccepted(mutant: PlacedMutant, accepted: readonly AcceptedSurvivor[]): boolean {
  const { file, text, change } = mutant;
  return accepted.some(each => each.file === file && each.text === text && each.change === change);
}

/** What was tried of a file, a module or all. */
export interface Figures {
  /** Mutants that the type check refuses: nobody could merge them, so no test is asked. */
  refused: number;
  tried: readonly TriedMutant[];
  /** Those beside the sample: nothing is said of them. */
  untried: readonly PlacedMutant[];
}

/** A mutant that hangs or ends the process is noticed too. `accepted` are left out of what could have been killed. */
export function killedShare(tried: readonly TriedMutant[], accepted: readonly AcceptedSurvivor[] = []): number {
  const counted = tried.filter(mutant => !(isAlive(mutant) && isAccepted(mutant, accepted)));
  return counted.length === 0 ? 1 : counted.filter(mutant => !isAlive(mutant)).length / counted.length;
}

const columns = ['mutants', 'no types', 'killed', 'timeout', 'survived', 'unreached', 'of all', 'accepted', 'share'];
const line = (name: string, cells: readonly string[]) =>
  name.padEnd(54) + cells.map(cell => cell.padStart(10)).join('');

export const header = line('', columns);

export function row(name: string, { refused, tried }: Figures, accepted: readonly AcceptedSurvivor[]): string {
  const count = (outcome: Outcome) => tried.filter(mutant => mutant.outcome === outcome).length;
  const percent = (share: number) => `${(share * 100).toFixed(1)}%`;
  const reasons = tried.filter(mutant => isAlive(mutant) && isAccepted(mutant, accepted)).length;
  return line(name, [
    ...[tried.length + refused, refused, ...(['killed', 'timeout', 'survived', 'unreached'] as const).map(count)].map(
      String,
    ),
    ...[percent(killedShare(tried)), String(reasons), percent(killedShare(tried, accepted))],
  ]);
}

/** What a survivor is listed as, and found by again. */
export const nameOf = ({ file, line: at, change }: PlacedMutant) => `${file}:${at}  ${change}`;

/** Lists survivors without a reason, and reasons in these files whose mutant is not there or was killed. */
export function survivors(
  { tried, untried }: Omit<Figures, 'refused'>,
  accepted: readonly AcceptedSurvivor[],
): { open: string[]; stale: string[] } {
  const alive = tried.filter(isAlive);
  const files = new Set(tried.map(({ file }) => file));
  const needing = [...alive, ...untried];
  return {
    open: alive
      .filter(mutant => !isAccepted(mutant, accepted))
      .map(mutant => nameOf(mutant) + (mutant.outcome === 'unreached' ? '  (reached by no test)' : '')),
    stale: accepted
      .filter(each => files.has(each.file) && !needing.some(mutant => isAccepted(mutant, [each])))
      .map(({ file, change }) => `${file}  ${change}`),
  };
}
