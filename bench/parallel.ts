import type { BenchFolder } from './measure/bench-folder.ts';
import { type Figures, inRounds, ratio, typical } from './measure/rounds.ts';
import { openSession } from './measure/session.ts';
import { figure, type Table, times } from './measure/table.ts';
import { product } from './product.ts';
import { directRequest } from './yardsticks/direct-request.ts';
import { openVendorThread } from './yardsticks/vendor-thread.ts';

const roundCount = 15;
const atOnce = 16;
const vendorMs = 60;

/** Whether calls wait for each other: many chats at once against a vendor that takes its time. */
export async function parallel(folder: BenchFolder): Promise<Table> {
  const vendor = await openVendorThread(vendorMs);
  const { session } = await openSession(product(folder, vendor.url));
  const chat = (index: number) => session.call('chat', { prompt: `Question ${index}: why?`, model: 'gpt-5' });
  const contenders = {
    [`${atOnce} chats`]: () => together(chat),
    [`${atOnce} direct fetches`]: () => together(() => directRequest(vendor.url)),
  };
  try {
    const rounds = await inRounds(roundCount, contenders, 3);
    const rows = Object.keys(contenders).map(name => [
      name,
      figure(typical(rounds, name, 'ms'), 1),
      times(ratio(rounds, 'ms', name, `${atOnce} direct fetches`)),
    ]);
    return {
      title: `parallel: ${atOnce} at once, vendor takes ${vendorMs} ms (${roundCount} rounds)`,
      columns: ['what', 'wall ms', 'to direct'],
      rows,
      notes: [`One after the other they would take ${atOnce * vendorMs} ms at least.`],
    };
  } finally {
    await session.close();
    await vendor.close();
  }
}

async function together(call: (index: number) => Promise<unknown>): Promise<Figures> {
  const before = performance.now();
  await Promise.all(Array.from({ length: atOnce }, (_, index) => call(index)));
  return { ms: performance.now() - before };
}
