import { setTimeout as wait } from 'node:timers/promises';
import type { BenchFolder } from './measure/bench-folder.ts';
import { startDaemon } from './measure/daemon-process.ts';
import { type Figures, inRounds, ratio, typical } from './measure/rounds.ts';
import { type Launch, openSession } from './measure/session.ts';
import { figure, type Table, times } from './measure/table.ts';
import { product } from './product.ts';
import { buildYardsticks } from './yardsticks/build-yardsticks.ts';
import { openVendorThread } from './yardsticks/vendor-thread.ts';

const roundCount = 11;
const atOnce = 'dist/main.js, called at once';
const yardstick = 'bare SDK server, bundled';

/** A host that is started asks for the tools, and its model for something a moment later. */
export const idleMs = 1_000;

/** The most that a chat may take from the spawn on which is sent with all that comes before it. */
const answerMs = 300;

/** From spawn to the list of tools, the memory held then, and the first call an idle second after it. */
export async function start(folder: BenchFolder): Promise<Table> {
  const { bareNode, bareSdk, bundledSdk } = await buildYardsticks();
  const plain = (program: string) => startOnce({ program, env: folder.env }, 'echo');
  const vendor = await openVendorThread(0);
  const project = { PROJECT_ROOT: folder.fresh('project') };
  const daemon = await startDaemon(folder, vendor.url, project);
  const ours = product(folder, vendor.url, project);
  const question = { prompt: 'What is the shortest answer?', model: 'gpt-5' };
  const bridged = { ...ours, args: ['connect', '--url', daemon.url] };
  const contenders: Record<string, () => Promise<Figures>> = {
    'dist/main.js': () => startOnce(ours, 'chat', question),
    'dist/main.js, never run before': () => startOnce(withEmptyCache(folder, ours), 'chat', question),
    [atOnce]: () => answerOnce(ours, { tool: 'chat', args: question }),
    'dist/main.js connect, to a daemon': () => startOnce(bridged, 'chat', question),
    [yardstick]: () => plain(bundledSdk),
    'bare SDK server': () => plain(bareSdk),
    'bare node': () => plain(bareNode),
  };
  const rounds = await inRounds(roundCount, contenders).finally(() => Promise.all([daemon.stop(), vendor.close()]));
  const answered = `${figure(typical(rounds, atOnce, 'ms'), 0)} ms, ${figure(typical(rounds, atOnce, 'cpu'), 0)} ms CPU`;
  const rows = Object.keys(contenders)
    .filter(name => name !== atOnce)
    .map(name => [
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
      `Spawn to first answered chat, sent at once: ${answered}; to cross: ${answerMs} ms.`,
      `To cross: 1.3 times the bundled SDK server; the first call, ${idleMs} ms after the list, 60 ms.`,
      'All use a warm compile cache but the one that was never run before.',
      'The first call is a chat with a vendor that answers at once here, and an echo elsewhere.',
    ],
  };
}

async function startOnce(launch: Launch, tool: string, args = {}): Promise<Figures> {
  const { session, elapsedMs } = await openSession(launch);
  const [cpu, mb] = [session.cpuMs(), session.residentMb()];
  await wait(idleMs);
  const before = performance.now();
  await session.call(tool, args);
  const [first, mbAfter] = [performance.now() - before, session.residentMb()];
  await session.close();
  return { ms: elapsedMs, cpu, mb, first, mbAfter };
}

async function answerOnce(launch: Launch, first: { tool: string; args: Record<string, unknown> }): Promise<Figures> {
  const { session, answeredMs } = await openSession(launch, undefined, first);
  const cpu = session.cpuMs();
  await session.close();
  return { ms: answeredMs, cpu };
}

function withEmptyCache(folder: BenchFolder, { program, env }: Launch): Launch {
  return { program, env: { ...env, NODE_COMPILE_CACHE: folder.fresh('empty-cache') } };
}
