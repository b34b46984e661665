import type { Switches } from './protocol.ts';

/** What the worker and Vitest's runner in it, which are loaded apart, tell each other about the file that runs. */
export interface Control extends Switches {
  /** IDs of the tests to run; undefined runs all. */
  selected: ReadonlySet<string> | undefined;
  /** The first test that failed. */
  failed: string | undefined;
  /** Mutants reached outside tests, and by each test with its milliseconds. */
  always: Set<number>;
  tests: Map<string, { hits: number[]; took: number }>;
}

declare global {
  var mutationControl: Control | undefined;
}

export function currentControl(): Control {
  if (globalThis.mutationControl === undefined) throw new Error('The mutation check has not been started.');
  return globalThis.mutationControl;
}

/** Returns what was reached since the last call. */
export function takeHits({ hits }: Switches): number[] {
  const taken: number[] = [];
  for (let id = hits.indexOf(1); id !== -1; id = hits.indexOf(1, id + 1)) taken.push(id);
  hits.fill(0);
  return taken;
}
