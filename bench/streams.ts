import { WebSocket } from 'ws';
import type { BenchFolder } from './measure/bench-folder.ts';
import { startDaemon, startServer } from './measure/daemon-process.ts';
import { type Figures, inRounds, typical } from './measure/rounds.ts';
import { figure, type Table } from './measure/table.ts';
import { buildYardsticks } from './yardsticks/build-yardsticks.ts';
import { openVendorThread } from './yardsticks/vendor-thread.ts';

const roundCount = Number(process.env.BENCH_ROUNDS ?? 7);
const counts = [1, 64, 256];
const pieces = { count: 64, everyMs: 15 };
/** What may be added to the first token, in ms. */
const limits: Record<number, string> = { 64: '40', 256: '150' };

/**
 * Answers that are passed on over WebSocket as they are written: what that adds to the first token, and what it takes, beside the same
 * by hand and with the vendor's package alone.
 */
export async function streams(folder: BenchFolder): Promise<Table> {
  const yardsticks = await buildYardsticks();
  const vendor = await openVendorThread(0, pieces);
  const env = { ...folder.env, VENDOR_URL: vendor.url };
  const starts = {
    'by hand': () => startServer({ program: yardsticks.streamsByHand, env }),
    libraries: () => startServer({ program: yardsticks.streamsWithLibraries, env }),
    ours: () => startDaemon(folder, vendor.url),
  };
  const contenders: Record<string, () => Promise<Figures>> = {};
  const opened: { stop(): unknown }[] = [];
  try {
    for (const count of counts) contenders[`direct ${count}`] = () => together(count, () => direct(vendor.url));
    for (const [name, start] of Object.entries(starts)) {
      const server = await start();
      opened.push(server);
      const address = `${server.url.replace(/^http/, 'ws')}/ws`;
      const sockets = await Promise.all(Array.from({ length: Math.max(...counts) }, () => connect(address)));
      opened.push(...sockets.map(socket => ({ stop: () => socket.close() })));
      for (const count of counts)
        contenders[`${name} ${count}`] = async () => {
          const cpu = server.cpuMs();
          const found = await together(count, index => stream(sockets[index]));
          return { ...found, cpu: (server.cpuMs() - cpu) / count };
        };
    }
    const rounds = await inRounds(roundCount, contenders, 8);
    const rows = counts.flatMap(count =>
      Object.keys(starts).map(name => {
        const [own, without] = [`${name} ${count}`, `direct ${count}`];
        const [first, directly] = [typical(rounds, own, 'first'), typical(rounds, without, 'first')];
        return [
          `${count}`,
          name,
          figure(directly, 0),
          figure(first, 0),
          figure(first - directly, 0),
          limits[count] ?? '',
          figure(typical(rounds, own, 'cpu')),
          '4',
          figure(typical(rounds, own, 'frames'), 0),
        ];
      }),
    );
    return {
      title: `streams: ${pieces.count} pieces, one each ${pieces.everyMs} ms, over WebSocket (${roundCount} rounds)`,
      columns: [
        'at once',
        'what',
        'direct: first ms',
        'first ms',
        'added',
        'limit',
        'CPU ms a stream',
        'limit',
        'frames a stream',
      ],
      rows,
      notes: [
        'First: the median of the times to the first words. Ours keeps its threads in SQLite.',
        "By hand: fetch and a socket. Libraries: the vendor's package and a socket, and nothing of ours.",
      ],
    };
  } finally {
    for (const each of opened.toReversed()) await each.stop();
    await vendor.close();
  }
}

async function connect(url: string): Promise<WebSocket> {
  const socket = new WebSocket(url, { perMessageDeflate: false });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once('open', () => socket.send(JSON.stringify({ op: 'hello' })));
  socket.once('message', () => resolve()).once('error', reject);
  await promise;
  return socket;
}

interface Streamed {
  first: number;
  frames: number;
}

let lastId = 0;

/** Milliseconds to the first words, and in how many frames they came. */
async function stream(socket: WebSocket | undefined): Promise<Streamed> {
  if (!socket) throw new Error('there is no socket for this stream');
  const id = `stream-${++lastId}`;
  const began = performance.now();
  const { promise, resolve, reject } = Promise.withResolvers<Streamed>();
  let first = 0;
  let frames = 0;
  const onClose = () => reject(new Error('the connection was closed'));
  const onMessage = (data: WebSocket.RawData) => {
    const frame = JSON.parse(data.toString());
    if (frame.op === 'stream_chunk') {
      first ||= performance.now() - began;
      frames += 1;
    }
    if (frame.op !== 'call_tool_res') return;
    socket.off('message', onMessage).off('close', onClose);
    if (frame.error || frames === 0) reject(new Error(`the stream failed: ${JSON.stringify(frame).slice(0, 500)}`));
    else resolve({ first, frames });
  };
  socket.on('message', onMessage);
  socket.once('close', onClose);
  const prompt = `Question ${id} of ${process.pid}: why?`;
  const args = { prompt, model: 'gpt-5' };
  socket.send(JSON.stringify({ op: 'call_tool', name: 'chat', arguments: args, request_id: id, stream: true }));
  return promise;
}

/** The same without a server between. */
async function direct(vendorUrl: string): Promise<Streamed> {
  const began = performance.now();
  const response = await fetch(`${vendorUrl}/responses`, { method: 'POST', body: '{}' });
  let first = 0;
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    if (decoder.decode(chunk).includes('output_text.delta')) first ||= performance.now() - began;
  }
  return { first, frames: 0 };
}

async function together(count: number, run: (index: number) => Promise<Streamed>): Promise<Figures> {
  const found = await Promise.all(Array.from({ length: count }, (_, index) => run(index)));
  const firsts = found.map(({ first }) => first).sort((a, b) => a - b);
  const frames = found.reduce((sum, each) => sum + each.frames, 0) / found.length;
  return { first: firsts[Math.floor(firsts.length / 2)] ?? Number.NaN, frames };
}
