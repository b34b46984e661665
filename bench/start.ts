import type { BenchFolder } from './measure/bench-folder.ts';
import { type Figures, inRounds, ratio, typical } from './measure/rounds.ts';
import { type Launch, openSession } from './measure/session.ts';
import { figure, type Table, times } from './measure/table.ts';
import { product } from './product.ts';
import { buildYardsticks } from './yardsticks/build-yardsticks.ts';

const roundCount = 11;
const yardstick = 'bare SDK server, bundled';

/** From spawn to the list of tools, the memory held then, and the first call after it. */
export async function start(folder: BenchFolder): Promise<Table> {
  const { bareNode, bareSdk, bundledSdk } = await buildYardsticks();
  const plain = (program: string) => startOnce({ program, env: folder.env }, 'echo');
  const ours = product(folder);
  const contenders: Record<string, () => Promise<Figures>> = {
    'dist/main.js': () => startOnce(ours, 'version'),
    'dist/main.js, never run before': () => startOnce(withEmptyCache(folder, ours), 'version'),
    [yardstick]: () => plain(bundledSdk),
    'bare SDK server': () => plain(bareSdk),
    'bare node': () => plain(bareNode),
  };
  const rounds = await inRounds(roundCount, contenders);
  const rows = Object.keys(contenders).map(name => [
    name,
    figure(typical(rounds, name, 'ms'), 0),
    times(ratio(rounds, 'ms', name, yardstick)),
    figure(typical(rounds, name, 'cpu'), 0),
    times(ratio(rounds, 'cpu', name, yardstick)),
    figure(typical(rounds, name, 'mb'), 0),
    figure(typical(rounds, name, 'first'), 0),
    figure(typical(rounds, name, 'mbAfter'), 0),
  ]);
  return {
    title: `start: spawn to tools/list over stdio (${roundCount} rounds)`,
    columns: [
      'server',
      'ms',
      'to bundled SDK',
      'CPU ms',
      'to bundled SDK',
      'RSS MB',
      'first call ms',
      'RSS MB after it',
    ],
    rows,
    notes: [
      'All use a warm compile cache but the one that was never run before.',
      'The first call is of "version" here, which needs all parts of the product, and of an echo elsewhere.',
    ],
  };
}

async function startOnce(launch: Launch, tool: string): Promise<Figures> {
  const { session, elapsedMs } = await openSession(launch);
  const [cpu, mb, before] = [session.cpuMs(), session.residentMb(), performance.now()];
  await session.call(tool, {});
  const [first, mbAfter] = [performance.now() - before, session.residentMb()];
  await session.close();
  return { ms: elapsedMs, cpu, mb, first, mbAfter };
}

function withEmptyCache(folder: BenchFolder, { program, env }: Launch): Launch {
  return { program, env: { ...env, NODE_COMPILE_CACHE: folder.fresh('empty-cache') } };
}
