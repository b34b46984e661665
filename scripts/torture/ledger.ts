import { createHash } from 'node:crypto';
import { type ThreadId, threadId } from '../../src/core/ids.ts';
import { damagedTool, type Thread } from '../../src/core/thread.ts';
import type { Lookup, Store } from '../../src/storage/store.ts';
import { start } from '../../test/contracts/store-fixtures.ts';

/** The ID of a run's thread by its number: the process that writes and the one that checks agree on it without a word. */
export function threadOf(seed: number, number: number): ThreadId {
  const hex = createHash('sha256').update(`${seed} ${number}`).digest('hex');
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ];
  return threadId(parts.join('-'));
}

/** The content of a turn, of 40 bytes to about 20 KB: it names its place, so that a turn in another place is noticed. */
export function textOf(id: ThreadId, seq: number): string {
  const number = Number.parseInt(id.slice(0, 4), 16) + seq * 977;
  const filler = number % 40 === 0 ? number % 20_000 : number % 200;
  return `turn ${seq} of ${id} ${'x'.repeat(filler)}`;
}

/**
 * What a writer says of its threads, a line each, with the number of the first thread and how many there are:
 *   made FIRST COUNT        created
 *   turn FIRST COUNT SEQ    each has this turn
 *   ending FIRST COUNT      are to be removed or pruned
 *   ended FIRST COUNT       were
 */
export type Said = 'made' | 'turn' | 'ending' | 'ended';

interface Known {
  /** Turns that were acknowledged. */
  seq: number;
  end?: 'asked' | 'acknowledged';
}

export interface Findings {
  /** Acknowledged and not there. */
  lost: string[];
  /** Served, and not what was written. */
  wrong: string[];
}

/** What a store must hold, by the acknowledgements of those who wrote to it. */
export class Ledger {
  readonly #seed: number;
  readonly #known = new Map<number, Known>();
  /** Acknowledged writes. */
  writes = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  /** Takes a writer's line; one of another kind says nothing about threads. */
  note(line: string): void {
    const [said, first, count, seq] = line.split(' ');
    if (said !== 'made' && said !== 'turn' && said !== 'ending' && said !== 'ended') return;
    for (let number = Number(first); number < Number(first) + Number(count); number++) {
      const known = this.#known.get(number) ?? { seq: 0 };
      if (said === 'turn') known.seq = Number(seq);
      if (said === 'ending') known.end = 'asked';
      if (said === 'ended') known.end = 'acknowledged';
      this.#known.set(number, known);
    }
    if (said === 'ended') this.writes++;
    else if (said !== 'ending') this.writes += Number(count);
  }

  numbers(): number[] {
    return [...this.#known.keys()];
  }

  /** Reads these threads and tells what is not as it was acknowledged. */
  async check(store: Store, numbers: Iterable<number> = this.#known.keys()): Promise<Findings> {
    const findings: Findings = { lost: [], wrong: [] };
    for (const number of numbers) {
      const known = this.#known.get(number);
      if (known) compare(threadOf(this.#seed, number), known, await found(store, this.#seed, number), findings);
    }
    return findings;
  }
}

type Found = Lookup<Thread> | { state: 'refused'; why: string };

async function found(store: Store, seed: number, number: number): Promise<Found> {
  try {
    return await store.read(threadOf(seed, number), start);
  } catch (error) {
    return { state: 'refused', why: error instanceof Error ? error.message : String(error) };
  }
}

function compare(id: ThreadId, known: Known, thread: Found, { lost, wrong }: Findings): void {
  if (thread.state !== 'live') {
    const isGone = thread.state === 'deleted' || thread.state === 'expired';
    if (!(isGone && known.end)) lost.push(`${id}: ${thread.state === 'refused' ? thread.why : thread.state}`);
    return;
  }
  const { turns } = thread.value;
  if (known.end === 'acknowledged') lost.push(`${id}: its removal`);
  if (turns.length < known.seq) lost.push(`${id}: ${turns.length} of ${known.seq} turns`);
  for (const [index, { seq, content, toolName }] of turns.entries()) {
    if (toolName === damagedTool) lost.push(`${id}: turn ${seq}, which says so`);
    else if (seq !== index + 1 || content !== textOf(id, seq)) wrong.push(`${id}: turn ${index + 1}`);
  }
}
