import { join, resolve } from 'node:path';
import type { BenchFolder } from './measure/bench-folder.ts';
import { load } from './measure/load.ts';
import { inRounds, ratio, typical } from './measure/rounds.ts';
import { type Launch, openSession, type Session } from './measure/session.ts';
import { figure, type Table, times } from './measure/table.ts';
import { product } from './product.ts';
import { openVendorThread } from './yardsticks/vendor-thread.ts';

const roundCount = 15;
const question = { prompt: 'What is the shortest answer?', model: 'gpt-5' };

/** Figure → digits after the point, and the contender part that measures it. */
const figures = [
  { label: 'start → tools/list, ms', part: 'start', figure: 'ms', digits: 0 },
  { label: 'start → tools/list, CPU ms', part: 'start', figure: 'cpu', digits: 0 },
  { label: 'first chat after it, ms', part: 'start', figure: 'first', digits: 0 },
  { label: 'memory after it, MB', part: 'start', figure: 'mb', digits: 0 },
  { label: 'chat, SQLite: p50 ms', part: 'sqlite', figure: 'p50', digits: 2 },
  { label: 'chat, SQLite: CPU ms a call', part: 'sqlite', figure: 'cpu', digits: 2 },
  { label: 'chat, store in memory: p50 ms', part: 'memory', figure: 'p50', digits: 2 },
  { label: 'chat, store in memory: CPU ms a call', part: 'memory', figure: 'cpu', digits: 2 },
  { label: '16 chats at once, SQLite: ms', part: 'parallel', figure: 'ms', digits: 1 },
  { label: 'last step of debug: p50 ms', part: 'debug', figure: 'p50', digits: 2 },
] as const;

/** This build beside that of another checkout, which BENCH_BASELINE names, in one run; undefined where none is named. */
export async function builds(folder: BenchFolder): Promise<Table | undefined> {
  const baseline = process.env.BENCH_BASELINE;
  if (baseline === undefined) return undefined;
  const vendor = await openVendorThread(0);
  const opened: Session[] = [];
  const contenders: Record<string, () => Promise<Record<string, number>>> = {};
  try {
    for (const [name, program] of [
      ['before', join(resolve(baseline), 'dist/main.js')],
      ['after', undefined],
    ] as const) {
      const launch = (more?: Record<string, string>): Launch => {
        const own = product(folder, vendor.url, more);
        return program === undefined ? own : { ...own, program };
      };
      const open = async (more?: Record<string, string>) => {
        const { session } = await openSession(launch(more));
        opened.push(session);
        return session;
      };
      const [sqlite, memory] = [await open(), await open({ POLYLOGUE_STORE: 'memory' })];
      const begin = launch();
      contenders[`${name} start`] = () => startOnce(begin);
      contenders[`${name} sqlite`] = () => chats(sqlite);
      contenders[`${name} memory`] = () => chats(memory);
      contenders[`${name} parallel`] = () => together(sqlite);
      contenders[`${name} debug`] = () => load(30, 1, () => debug(sqlite));
    }
    const rounds = await inRounds(roundCount, contenders, 2);
    return {
      title: `builds: ${baseline} and this checkout (${roundCount} rounds)`,
      columns: ['what', 'before', 'after', 'after to before'],
      rows: figures.map(({ label, part, figure: name, digits }) => [
        label,
        figure(typical(rounds, `before ${part}`, name), digits),
        figure(typical(rounds, `after ${part}`, name), digits),
        times(ratio(rounds, name, `after ${part}`, `before ${part}`)),
      ]),
    };
  } finally {
    await Promise.all(opened.map(session => session.close()));
    await vendor.close();
  }
}

async function startOnce(launch: Launch) {
  const { session, elapsedMs } = await openSession(launch);
  const [cpu, before] = [session.cpuMs(), performance.now()];
  await session.call('chat', question);
  const [first, mb] = [performance.now() - before, session.residentMb()];
  await session.close();
  return { ms: elapsedMs, cpu, first, mb };
}

async function chats(session: Session) {
  const before = session.cpuMs();
  const calls = 100;
  const found = await load(calls, 1, () => session.call('chat', question));
  return { ...found, cpu: (session.cpuMs() - before) / calls };
}

async function together(session: Session) {
  const before = performance.now();
  await Promise.all(Array.from({ length: 16 }, (_, at) => session.call('chat', { ...question, prompt: `Why ${at}?` })));
  return { ms: performance.now() - before };
}

function debug(session: Session): Promise<unknown> {
  const step = { step: 'Look', step_number: 1, total_steps: 1, next_step_required: false, findings: 'None yet' };
  return session.call('debug', { ...step, hypothesis: 'A typo', confidence: 'low', model: question.model });
}
