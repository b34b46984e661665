import { join } from 'node:path';
import type { BenchFolder } from './measure/bench-folder.ts';
import { load } from './measure/load.ts';
import { type Contenders, inRounds, type Round, ratio, typical } from './measure/rounds.ts';
import { openSession } from './measure/session.ts';
import { figure, type Table, times } from './measure/table.ts';
import { product } from './product.ts';
import { buildYardsticks } from './yardsticks/build-yardsticks.ts';
import { directRequest } from './yardsticks/direct-request.ts';
import { openVendorThread } from './yardsticks/vendor-thread.ts';

const roundCount = 7;
const callsPerRound = 120;
const question = { prompt: 'What is the shortest answer?', model: 'gpt-5' };

/** What a call costs beside the work of the vendor, who answers at once. */
export async function overhead(folder: BenchFolder): Promise<Table> {
  const { bundledSdk, relay } = await buildYardsticks();
  const vendor = await openVendorThread(0);
  const relayEnv = { ...folder.env, DATABASE: join(folder.fresh('relay'), 'turns.sqlite'), VENDOR_URL: vendor.url };
  const opened = await Promise.all([
    openSession(product(folder, vendor.url)),
    openSession(product(folder, vendor.url, { POLYLOGUE_STORE: 'memory' })),
    openSession({ program: bundledSdk, env: folder.env }),
    openSession({ program: relay, env: relayEnv }),
  ]);
  const [ours, inMemory, sdk, floor] = opened.map(({ session }) => session);
  if (!ours || !inMemory || !sdk || !floor) throw new Error('a server is missing');
  const calls: Record<string, () => Promise<unknown>> = {
    version: () => ours.call('version', {}),
    echo: () => sdk.call('echo', { text: 'again' }),
    chat: () => ours.call('chat', question),
    'chat, store in memory': () => inMemory.call('chat', question),
    relay: () => floor.call('chat', { prompt: question.prompt }),
    direct: () => directRequest(vendor.url),
  };
  try {
    const rounds = await inRounds(roundCount, atBothConcurrencies(calls));
    return tableOf(rounds);
  } finally {
    await Promise.all(opened.map(({ session }) => session.close()));
    await vendor.close();
  }
}

function atBothConcurrencies(calls: Record<string, () => Promise<unknown>>): Contenders {
  return Object.fromEntries(
    Object.entries(calls).flatMap(([name, call]) =>
      [1, 8].map(atOnce => [`${name} c${atOnce}`, () => load(callsPerRound, atOnce, call)]),
    ),
  );
}

/** Each kind of call and what it is measured by. */
const comparisons = [
  { name: 'version', label: 'version', yardstick: 'echo' },
  { name: 'echo', label: 'echo of a bare SDK server', yardstick: undefined },
  { name: 'chat', label: 'chat, SQLite FULL', yardstick: 'relay' },
  { name: 'chat, store in memory', label: 'chat, store in memory', yardstick: 'direct' },
  { name: 'relay', label: 'bare SDK relay, two FULL commits', yardstick: 'direct' },
  { name: 'direct', label: 'direct fetch', yardstick: undefined },
] as const;

function tableOf(rounds: readonly Round[]): Table {
  const rows = [1, 8].flatMap(atOnce =>
    comparisons.map(({ name, label, yardstick }) => {
      const own = `${name} c${atOnce}`;
      const other = `${yardstick} c${atOnce}`;
      return [
        `${label}, ${atOnce} at once`,
        figure(typical(rounds, own, 'p50'), 3),
        figure(typical(rounds, own, 'p99'), 3),
        yardstick ? `${times(ratio(rounds, 'p50', own, other))} ${yardstick}` : '',
        yardstick ? `${times(ratio(rounds, 'p99', own, other))} ${yardstick}` : '',
      ];
    }),
  );
  return {
    title: `overhead: one call, vendor answers at once (${roundCount} rounds of ${callsPerRound} calls)`,
    columns: ['call', 'p50 ms', 'p99 ms', 'p50 to', 'p99 to'],
    rows,
  };
}
