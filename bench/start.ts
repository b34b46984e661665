import type { BenchFolder } from './measure/bench-folder.ts';
import { type Figures, inRounds, ratio, typical } from './measure/rounds.ts';
import { type Launch, openSession } from './measure/session.ts';
import { figure, type Table, times } from './measure/table.ts';
import { product } from './product.ts';
import { buildYardsticks } from './yardsticks/build-yardsticks.ts';

const roundCount = 11;

/** From spawn to the list of tools, and the memory held then. */
export async function start(folder: BenchFolder): Promise<Table> {
  const { bareNode, bareSdk, bundledSdk } = await buildYardsticks();
  const plain = (program: string): Launch => ({ program, env: folder.env });
  const ours = product(folder);
  const contenders: Record<string, () => Promise<Figures>> = {
    'dist/main.js': () => startOnce(ours),
    'dist/main.js, never run before': () => startOnce(withEmptyCache(folder, ours)),
    'bare SDK server, bundled': () => startOnce(plain(bundledSdk)),
    'bare SDK server': () => startOnce(plain(bareSdk)),
    'bare node': () => startOnce(plain(bareNode)),
  };
  const rounds = await inRounds(roundCount, contenders);
  const rows = Object.keys(contenders).map(name => [
    name,
    figure(typical(rounds, name, 'ms'), 0),
    figure(typical(rounds, name, 'mb'), 0),
    times(ratio(rounds, 'ms', name, 'bare SDK server, bundled')),
    times(ratio(rounds, 'ms', name, 'bare node')),
  ]);
  return {
    title: `start: spawn to tools/list over stdio (${roundCount} rounds)`,
    columns: ['server', 'ms', 'RSS MB', 'to bundled SDK', 'to bare node'],
    rows,
    notes: ['All use a warm compile cache but the one that was never run before.'],
  };
}

async function startOnce(launch: Launch): Promise<Figures> {
  const { session, elapsedMs } = await openSession(launch);
  const mb = session.residentMb();
  await session.close();
  return { ms: elapsedMs, mb };
}

function withEmptyCache(folder: BenchFolder, { program, env }: Launch): Launch {
  return { program, env: { ...env, NODE_COMPILE_CACHE: folder.fresh('empty-cache') } };
}
