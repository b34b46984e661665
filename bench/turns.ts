import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { systemEnvironment } from '../src/app/system-environment.ts';
import { exchangeId, type ThreadId, threadId } from '../src/core/ids.ts';
import type { Turn } from '../src/core/thread.ts';
import { createSqliteStore } from '../src/storage/sqlite/sqlite.ts';
import type { BenchFolder } from './measure/bench-folder.ts';
import { databaseSize, walBytesBetween } from './measure/database-size.ts';
import { type Figures, inRounds, type Round, ratio, typical } from './measure/rounds.ts';
import { openSession, type Session } from './measure/session.ts';
import { median } from './measure/statistics.ts';
import { figure, type Table, times } from './measure/table.ts';
import { product } from './product.ts';
import { openInstantVendor } from './yardsticks/instant-vendor.ts';

const roundCount = 7;
/** Calls on one thread: the first reads it from the disk, the others know it. */
const callsEach = 6;
const lengths = [1, 10, 100, 1_000] as const;
/** Turns that stand in each prompt; what was before them is summed up. */
const shownTurns = 8;
const text = 'And what follows from that for the next step of the plan? '.repeat(4);
const hourMs = 3_600_000;

/** What a call costs on a thread of N turns, when the prompt is as long as on a thread of ten. */
export async function turns(folder: BenchFolder): Promise<Table> {
  let arrivedAt = Number.NaN;
  const onArrival = () => {
    arrivedAt = performance.now();
  };
  const vendor = await openInstantVendor({ delayMs: 0, onArrival });
  const launch = product(folder, vendor.url, { MAX_CONVERSATION_TURNS: '100000' });
  const file = join(launch.env.POLYLOGUE_HOME ?? '', 'threads.sqlite');
  const threads = await seed(file, launch.env.PROJECT_ROOT ?? '', roundCount + 1);
  const { session } = await openSession(launch);
  const call = async (id?: string) => {
    const before = databaseSize(file);
    const calledAt = performance.now();
    const next = await ask(session, id);
    const doneAt = performance.now();
    const written = walBytesBetween(before, databaseSize(file));
    return { next, build: arrivedAt - calledAt, store: doneAt - arrivedAt, written };
  };
  const oneThread = async (length: number): Promise<Figures> => {
    let id: string | undefined = threads.get(length)?.pop();
    const costs: { build: number; store: number; written: number }[] = [];
    for (let count = 0; count < callsEach; count++) {
      const { next, ...cost } = await call(id);
      costs.push(cost);
      // A thread of one turn has just been asked for the first time.
      if (length > 1) id = next;
    }
    const warm = costs.slice(1);
    const middle = (of: (cost: (typeof costs)[number]) => number) => median(warm.map(of));
    return {
      first: costs[0]?.build ?? Number.NaN,
      build: middle(cost => cost.build),
      store: middle(cost => cost.store),
      both: middle(cost => cost.build + cost.store),
      written: middle(cost => cost.written),
    };
  };
  try {
    const contenders = Object.fromEntries(lengths.map(length => [`${length}`, () => oneThread(length)]));
    return tableOf(await inRounds(roundCount, contenders));
  } finally {
    await session.close();
    await vendor.close();
  }
}

async function ask(session: Session, id?: string): Promise<string> {
  const { content } = await session.call('chat', { prompt: text, model: 'gpt-5', ...(id && { continuation_id: id }) });
  const [first] = Array.isArray(content) ? content : [];
  const next = JSON.parse(first?.text).continuation_offer?.continuation_id;
  if (typeof next !== 'string') throw new Error('the reply offers no continuation');
  return next;
}

/** `each` threads of every length, written as the product writes them. */
async function seed(file: string, workspace: string, each: number): Promise<Map<number, ThreadId[]>> {
  const { clock } = systemEnvironment();
  const store = createSqliteStore({ file, clock, onWarning: message => console.error(message) });
  const now = clock.now();
  const times = { updatedAt: now, expiresAt: now + hourMs };
  const seeded = new Map<number, ThreadId[]>();
  try {
    for (const length of lengths.filter(wanted => wanted > 1)) {
      const ids = Array.from({ length: each }, () => threadId(randomUUID()));
      seeded.set(length, ids);
      for (const id of ids) {
        const facts = { owner: 'local', workspace, toolName: 'chat', title: 'A plan', initialContext: {} };
        const created = store.create({
          ...facts,
          ...times,
          id,
          createdAt: now,
          totals: { tokens: 0, costUsd: 0 },
          seq: 0,
        });
        const commits = Array.from({ length: length / 2 }, (_, at) => {
          const exchange = exchangeId(randomUUID());
          const pair = [turn(2 * at + 1, 'user', exchange, now), turn(2 * at + 2, 'assistant', exchange, now)];
          return store.commit(id, {
            ...times,
            baseSeq: 2 * at,
            turns: pair,
            exchange: { id: exchange, status: 'done' },
          });
        });
        await Promise.all([created, ...commits]);
        const upToSeq = length - shownTurns;
        const compaction = { window: 2 ** 40, upToSeq, summary: text, trims: [], createdAt: now };
        await store.commit(id, { ...times, baseSeq: length, compaction });
      }
    }
  } finally {
    await store.close();
  }
  return seeded;
}

function turn(seq: number, role: Turn['role'], exchange: Turn['exchange'], timestamp: number): Turn {
  const model = role === 'assistant' ? { modelProvider: 'openai', modelName: 'gpt-5' } : {};
  const lists = { files: [], images: [], citations: [] };
  return {
    seq,
    role,
    content: `${seq}: ${text}`,
    timestamp,
    exchange,
    toolName: 'chat',
    ...model,
    ...lists,
    tokens: 60,
  };
}

function tableOf(rounds: readonly Round[]): Table {
  const rows = lengths.map(length => {
    const name = `${length}`;
    return [
      `${length} turns`,
      figure(typical(rounds, name, 'build')),
      times(ratio(rounds, 'build', name, '10')),
      figure(typical(rounds, name, 'both')),
      times(ratio(rounds, 'both', name, '10')),
      figure(typical(rounds, name, 'first')),
      figure(typical(rounds, name, 'written') / 1024, 1),
      times(ratio(rounds, 'written', name, '10')),
    ];
  });
  return {
    title: `turns: a call on a thread of N turns, prompts of equal size (${roundCount} rounds, ${callsEach} calls each)`,
    columns: ['thread', 'to vendor ms', 'to 10', 'whole call ms', 'to 10', 'first ms', 'KB written', 'to 10'],
    rows,
    notes: [
      `Each prompt holds a summary and ${shownTurns} turns or a few more; that of one turn is new and shorter.`,
      'First: the first call of this process on the thread, which reads and verifies all of it once.',
    ],
  };
}
