import { readFileSync } from 'node:fs';

/** What the process that runs the tests is given, as a file that `MUTATION_PLAN` names. */
export interface Plan {
  /** File URL → the code with all mutants. */
  sources: Record<string, string>;
  /** Numbers of the mutants that are still to be tried, and how many numbers there are with the 0 for none. */
  mutants: number[];
  size: number;
  /** Where the events go, one line of JSON each. */
  events: string;
  /** What the tests reach, from an earlier process; absent: it is measured first. */
  reach?: FileReach[];
}

/** Which mutants a test file reaches. */
export interface FileReach {
  filepath: string;
  /** Reached outside tests: while loading, or in hooks. */
  always: number[];
  /** Test ID → mutants, and milliseconds. */
  tests: Record<string, { hits: number[]; took: number }>;
  /** Milliseconds outside tests. */
  took: number;
}

export type RunEvent =
  | { is: 'start'; pid: number }
  /** The tests of a file begin, without a mutant. */
  | { is: 'measure'; filepath: string }
  | { is: 'reach'; reach: FileReach[]; failed: string[] }
  /** A mutant begins; `limit` is how many milliseconds it may take. */
  | { is: 'begin'; mutant: number; limit: number }
  /** It ended; `by` is the test that failed, if one did. */
  | { is: 'end'; mutant: number; reached: boolean; by?: string };

/** Memory that the threads of the process share: which mutant is on, and which were asked for since the last look. */
export interface Switches {
  active: Int32Array;
  hits: Uint8Array;
}

/** Names the switches in the environment data of threads. */
export const threadData = 'mutation';

/** Lets instrumented code of this thread ask which mutant is on. */
export function answerMutants({ active, hits }: Switches): void {
  Object.assign(globalThis, {
    __mutant__: (id: number) => {
      hits[id] = 1;
      return active[0] === id;
    },
  });
}

export function readPlan(): Plan {
  const plan: Plan = JSON.parse(readFileSync(process.env.MUTATION_PLAN ?? '', 'utf8'));
  return plan;
}
