import { join } from 'node:path';
import type { BenchFolder } from './measure/bench-folder.ts';
import { type Figures, inRounds, ratio, typical } from './measure/rounds.ts';
import { openSession, type Session } from './measure/session.ts';
import { figure, type Table, times } from './measure/table.ts';
import { product } from './product.ts';
import { buildYardsticks } from './yardsticks/build-yardsticks.ts';
import { directRequest } from './yardsticks/direct-request.ts';
import { openVendorThread } from './yardsticks/vendor-thread.ts';

const roundCount = 15;
const atOnce = 16;
const vendorMs = 60;

/** Whether calls wait for each other: many chats at once against a vendor that takes its time. */
export async function parallel(folder: BenchFolder): Promise<Table> {
  const vendor = await openVendorThread(vendorMs);
  const yardsticks = await buildYardsticks();
  const yardstick = (program: string) => {
    const database = { DATABASE: join(folder.fresh('turns'), 'turns.sqlite') };
    return { program, env: { ...folder.env, ...database, VENDOR_URL: vendor.url } };
  };
  const launches = {
    [`${atOnce} chats`]: product(folder, vendor.url),
    [`${atOnce} chats by hand`]: yardstick(yardsticks.floor),
    [`${atOnce} chats with the libraries alone`]: yardstick(yardsticks.libraries),
  };
  const opened: Session[] = [];
  const direct = () => together(() => directRequest(vendor.url));
  const contenders: Record<string, () => Promise<Figures>> = { [`${atOnce} direct fetches`]: direct };
  try {
    for (const [name, launch] of Object.entries(launches)) {
      const { session } = await openSession(launch);
      opened.push(session);
      contenders[name] = () => together(index => session.call('chat', { prompt: `${index}: why?`, model: 'gpt-5' }));
    }
    const rounds = await inRounds(roundCount, contenders, 200);
    const rows = Object.keys(contenders).map(name => [
      name,
      figure(typical(rounds, name, 'ms'), 1),
      times(ratio(rounds, 'ms', name, `${atOnce} direct fetches`)),
    ]);
    return {
      title: `parallel: ${atOnce} at once, vendor takes ${vendorMs} ms (${roundCount} rounds)`,
      columns: ['what', 'wall ms', 'to direct'],
      rows,
      notes: [
        `One after the other they would take ${atOnce * vendorMs} ms at least. The line to cross: 1.15x.`,
        "By hand, and with the protocol's SDK, the vendor's package and SQLite alone: as in `floor`.",
      ],
    };
  } finally {
    for (const session of opened) await session.close();
    await vendor.close();
  }
}

async function together(call: (index: number) => Promise<unknown>): Promise<Figures> {
  const before = performance.now();
  await Promise.all(Array.from({ length: atOnce }, (_, index) => call(index)));
  return { ms: performance.now() - before };
}
