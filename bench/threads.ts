import { join } from 'node:path';
import type { BenchFolder } from './measure/bench-folder.ts';
import { databaseSize, walBytesBetween } from './measure/database-size.ts';
import { type Figures, inRounds, type Round, ratio, typical } from './measure/rounds.ts';
import { openSession, type Session } from './measure/session.ts';
import { median } from './measure/statistics.ts';
import { figure, type Table, times } from './measure/table.ts';
import { product } from './product.ts';
import { openInstantVendor } from './yardsticks/instant-vendor.ts';

const roundCount = 7;
/** Turns on each side of the one that is looked at; the median of them stands for it. */
const around = 4;
const lookedAt = [1, 10, 100] as const;

interface TurnCost {
  /** From the call to the request's arrival at the vendor. */
  ms: number;
  keptBytes: number;
  writtenBytes: number;
}

/** What one more turn costs when a thread has grown. */
export async function threads(folder: BenchFolder): Promise<Table> {
  let arrivedAt = Number.NaN;
  const onArrival = () => {
    arrivedAt = performance.now();
  };
  const vendor = await openInstantVendor({ delayMs: 0, onArrival });
  const launch = product(folder, vendor.url, { MAX_CONVERSATION_TURNS: '1000' });
  const file = join(launch.env.POLYLOGUE_HOME ?? '', 'threads.sqlite');
  const { session } = await openSession(launch);
  const turn = async (number: number, id?: string): Promise<{ cost: TurnCost; id: string }> => {
    const before = databaseSize(file);
    const calledAt = performance.now();
    const next = await ask(session, number, id);
    const ms = arrivedAt - calledAt;
    const after = databaseSize(file);
    const cost = { ms, keptBytes: after.bytes - before.bytes, writtenBytes: walBytesBetween(before, after) };
    return { cost, id: next };
  };
  try {
    const rounds = await inRounds(roundCount, { thread: () => oneThread(turn) });
    return tableOf(rounds);
  } finally {
    await session.close();
    await vendor.close();
  }
}

async function ask(session: Session, number: number, id?: string): Promise<string> {
  const prompt = `Question ${number}: and what follows from that for the next step of the plan?`;
  const { content } = await session.call('chat', { prompt, model: 'gpt-5', ...(id && { continuation_id: id }) });
  const [first] = Array.isArray(content) ? content : [];
  const next = JSON.parse(first?.text).continuation_offer?.continuation_id;
  if (typeof next !== 'string') throw new Error('the reply offers no continuation');
  return next;
}

type Turn = (number: number, id?: string) => Promise<{ cost: TurnCost; id: string }>;

/** A thread from its first turn to its last; first turns are asked for several times, in threads of their own. */
async function oneThread(turn: Turn): Promise<Figures> {
  const firsts: TurnCost[] = [];
  for (let count = 0; count < 2 * around; count++) firsts.push((await turn(1)).cost);
  const costs: TurnCost[] = [];
  let id: string | undefined;
  for (let number = 1; number <= Math.max(...lookedAt) + around; number++) {
    const took = await turn(number, id);
    id = took.id;
    costs.push(took.cost);
  }
  const entries = lookedAt.flatMap(number => {
    const near = number === 1 ? [...firsts, ...costs.slice(0, 1)] : costs.slice(number - around - 1, number + around);
    const mean = near.reduce((sum, cost) => sum + cost.keptBytes, 0) / near.length;
    return [
      [`ms ${number}`, median(near.map(cost => cost.ms))],
      // The file grows by whole pages, in leaps.
      [`kept ${number}`, mean],
      [`written ${number}`, median(near.map(cost => cost.writtenBytes))],
    ] as const;
  });
  return Object.fromEntries(entries);
}

function tableOf(rounds: readonly Round[]): Table {
  const byTurn = rounds.map(({ thread = {} }) =>
    Object.fromEntries(lookedAt.map(number => [number, of(thread, number)])),
  );
  const rows = lookedAt.map(number => [
    `turn ${number}`,
    figure(typical(byTurn, `${number}`, 'ms')),
    times(ratio(byTurn, 'ms', `${number}`, '10')),
    figure(typical(byTurn, `${number}`, 'written') / 1024, 1),
    times(ratio(byTurn, 'written', `${number}`, '10')),
    figure(typical(byTurn, `${number}`, 'kept') / 1024, 1),
  ]);
  return {
    title: `threads: cost of one more turn (${roundCount} rounds, ${2 * around + 1} turns each)`,
    columns: ['turn', 'call to vendor ms', 'to turn 10', 'KB written', 'to turn 10', 'KB kept'],
    rows,
    notes: [
      'Written: frames of the write-ahead log, all commits of the turn. Kept: growth of the database. The texts have 110 bytes.',
    ],
  };
}

function of(thread: Figures, turn: number): Figures {
  return Object.fromEntries(['ms', 'kept', 'written'].map(what => [what, thread[`${what} ${turn}`] ?? Number.NaN]));
}
