import { join, resolve } from 'node:path';
import type { BenchFolder } from './measure/bench-folder.ts';
import { load } from './measure/load.ts';
import { type Figures, inRounds, ratio, typical } from './measure/rounds.ts';
import { type Launch, openSession, type Session } from './measure/session.ts';
import { figure, type Table, times } from './measure/table.ts';
import { product } from './product.ts';
import { openVendorThread } from './yardsticks/vendor-thread.ts';

const question = { prompt: 'What is the shortest answer?', model: 'gpt-5' };

/** What is measured: rounds, what one round does with a build, and the figures that come of it. */
interface Part {
  rounds: number;
  store?: 'memory';
  run(session: Session, launch: Launch): Promise<Figures>;
  figures: readonly { label: string; name: string; digits: number }[];
}

const chatFigures = (store: string) => [
  { label: `chat, ${store}: p50 ms`, name: 'p50', digits: 2 },
  { label: `chat, ${store}: CPU ms a call`, name: 'cpu', digits: 2 },
];

const parts: readonly Part[] = [
  {
    rounds: 25,
    run: (_session, launch) => startOnce(launch),
    figures: [
      { label: 'start → tools/list, ms', name: 'ms', digits: 0 },
      { label: 'start → tools/list, CPU ms', name: 'cpu', digits: 0 },
      { label: 'first chat after it, ms', name: 'first', digits: 0 },
      { label: 'memory after it, MB', name: 'mb', digits: 0 },
    ],
  },
  { rounds: 60, run: chats, figures: chatFigures('SQLite') },
  { rounds: 60, store: 'memory', run: chats, figures: chatFigures('store in memory') },
  { rounds: 150, run: together, figures: [{ label: '16 chats at once, SQLite: ms', name: 'ms', digits: 1 }] },
  { rounds: 60, run: debug, figures: [{ label: 'last step of debug: p50 ms', name: 'p50', digits: 2 }] },
];

/**
 * This build beside that of another checkout, which BENCH_BASELINE names; undefined where none is named. The other build runs
 * twice: what its two copies differ by is what this machine can't tell apart.
 */
export async function builds(folder: BenchFolder): Promise<Table | undefined> {
  const baseline = process.env.BENCH_BASELINE;
  if (baseline === undefined) return undefined;
  const before = { program: join(resolve(baseline), 'dist/main.js') };
  const vendor = await openVendorThread(0);
  try {
    const rows: string[][] = [];
    for (const { rounds: count, store, run, figures } of parts) {
      const more = store && { POLYLOGUE_STORE: store };
      const opened: Session[] = [];
      const contender = async (other?: { program: string }) => {
        const launch = { ...product(folder, vendor.url, more), ...other };
        const { session } = await openSession(launch);
        opened.push(session);
        return () => run(session, { ...product(folder, vendor.url, more), ...other });
      };
      const contenders = { before: await contender(before), after: await contender(), again: await contender(before) };
      const rounds = await inRounds(count, contenders, 5);
      await Promise.all(opened.map(session => session.close()));
      for (const { label, name, digits } of figures) {
        const values = [typical(rounds, 'before', name), typical(rounds, 'after', name)];
        const ratios = [ratio(rounds, name, 'after', 'before'), ratio(rounds, name, 'again', 'before')];
        rows.push([label, ...values.map(value => figure(value, digits)), ...ratios.map(times)]);
      }
    }
    const columns = ['what', 'before', 'after', 'after to before', 'before to itself'];
    return { title: `builds: ${baseline} and this checkout`, columns, rows };
  } finally {
    await vendor.close();
  }
}

async function startOnce(launch: Launch): Promise<Figures> {
  const { session, elapsedMs } = await openSession(launch);
  const [cpu, before] = [session.cpuMs(), performance.now()];
  await session.call('chat', question);
  const [first, mb] = [performance.now() - before, session.residentMb()];
  await session.close();
  return { ms: elapsedMs, cpu, first, mb };
}

async function chats(session: Session): Promise<Figures> {
  const before = session.cpuMs();
  const calls = 25;
  const found = await load(calls, 1, () => session.call('chat', question));
  return { ...found, cpu: (session.cpuMs() - before) / calls };
}

async function together(session: Session): Promise<Figures> {
  const before = performance.now();
  await Promise.all(Array.from({ length: 16 }, (_, at) => session.call('chat', { ...question, prompt: `Why ${at}?` })));
  return { ms: performance.now() - before };
}

function debug(session: Session): Promise<Figures> {
  const step = { step: 'Look', step_number: 1, total_steps: 1, next_step_required: false, findings: 'None yet' };
  const args = { ...step, hypothesis: 'A typo', confidence: 'low', model: question.model };
  return load(10, 1, () => session.call('debug', args));
}
