import type { BenchFolder } from './measure/bench-folder.ts';
import { type Figures, inRounds, ratio, typical } from './measure/rounds.ts';
import { openSession } from './measure/session.ts';
import { figure, type Table, times } from './measure/table.ts';
import { product } from './product.ts';
import { openInstantVendor } from './yardsticks/instant-vendor.ts';

const roundCount = 10;
const quickMs = 50;
const slowMs = 500;
const slow = 'gpt-5';
const models = ['gpt-5-mini', 'gpt-5-nano', slow, 'o3', 'o4-mini'];
const synthesizer = 'gpt-5.1';

/** Whether a panel waits for more than its slowest model: five models, one of them slow, then the synthesis. */
export async function consensus(folder: BenchFolder): Promise<Table> {
  const delayOf = (body: string) => (body.includes(`"model":"${slow}"`) ? slowMs : quickMs);
  const vendor = await openInstantVendor({ delayMs: quickMs, delayOf });
  const { session } = await openSession(product(folder, vendor.url));
  const ask = (args: Record<string, unknown>) => session.call('consensus', { prompt: 'Is it worth it?', ...args });
  const alone = `${slow} alone`;
  const contenders = {
    'five models, one slow': () => timed(() => ask({ models, synthesizer })),
    'five models, two rounds': () => timed(() => ask({ models, synthesizer, rounds: 2 })),
    [alone]: () => timed(() => ask({ models: [slow] })),
  };
  try {
    const rounds = await inRounds(roundCount, contenders, 2);
    const rows = Object.keys(contenders).map(name => [
      name,
      figure(typical(rounds, name, 'ms'), 1),
      times(ratio(rounds, 'ms', name, alone)),
    ]);
    const sum = (models.length - 1) * quickMs + slowMs + quickMs;
    return {
      title: `consensus: the slow model takes ${slowMs} ms, the others ${quickMs} ms (${roundCount} rounds)`,
      columns: ['what', 'wall ms', 'to the slowest'],
      rows,
      notes: [
        `The first two end with a synthesis of ${quickMs} ms. One after the other, one round would take ${sum} ms at least.`,
      ],
    };
  } finally {
    await session.close();
    await vendor.close();
  }
}

async function timed(call: () => Promise<unknown>): Promise<Figures> {
  const before = performance.now();
  await call();
  return { ms: performance.now() - before };
}
