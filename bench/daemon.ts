import type { BenchFolder } from './measure/bench-folder.ts';
import { startDaemon } from './measure/daemon-process.ts';
import { type Figures, inRounds, typical } from './measure/rounds.ts';
import { figure, type Table } from './measure/table.ts';
import { openVendorThread } from './yardsticks/vendor-thread.ts';

const idleSessions = 1_000;
const activeSessions = 200;
const vendorMs = 60;
const roundCount = Number(process.env.BENCH_ROUNDS ?? 5);

/** What a daemon takes: memory with many sessions that rest, and how long calls take while many of them work. */
export async function daemon(folder: BenchFolder): Promise<Table> {
  const vendor = await openVendorThread(vendorMs);
  const server = await startDaemon(folder, vendor.url);
  try {
    const memory: string[][] = [['just started', '', '', '', figure(server.rssMb(), 0), '']];
    const idle: string[] = [];
    const begun = performance.now();
    while (idle.length < idleSessions) {
      idle.push(...(await Promise.all(Array.from({ length: 50 }, () => beginSession(server.url)))));
    }
    const perSession = (performance.now() - begun) / idleSessions;
    memory.push([
      `${idleSessions} idle sessions`,
      figure(perSession, 1),
      '',
      '',
      figure(server.rssMb(), 0),
      '≤ 180 MB',
    ]);
    const active = idle.slice(0, activeSessions);
    let asked = 0;
    const chat = (id: string) => call(server.url, id, 'chat', { prompt: `Question ${++asked}: why?`, model: 'gpt-5' });
    const rounds = await inRounds(
      roundCount,
      {
        'the vendor itself': () => burst(active, () => direct(vendor.url)),
        version: () => burst(active, id => call(server.url, id, 'version', {})),
        chat: () => burst(active, chat),
      },
      15,
    );
    const rows = ['the vendor itself', 'version', 'chat'].map(name => {
      const [median, late] = [typical(rounds, name, 'median'), typical(rounds, name, 'late')];
      const more = name === 'chat' ? figure(median - typical(rounds, 'the vendor itself', 'median'), 0) : '';
      const line = more && '≤ 350 ms more';
      return [`${activeSessions} call ${name} at once`, figure(median, 0), figure(late, 0), more, '', line];
    });
    return {
      title: `daemon: ${idleSessions} sessions of 2025 clients, vendor takes ${vendorMs} ms (${roundCount} rounds)`,
      columns: ['what', 'ms (median)', 'ms (95 %)', 'more than direct', 'RSS MB', 'line'],
      rows: [...memory, ...rows, ['after that', '', '', '', figure(server.rssMb(), 0), '']],
      notes: [`Opening a session takes its ms among 50 at once.`],
    };
  } finally {
    await server.stop();
    await vendor.close();
  }
}

/** How long each of many takes that begin in the same moment. */
async function burst(sessions: readonly string[], run: (id: string) => Promise<void>): Promise<Figures> {
  const took = await Promise.all(sessions.map(id => timed(() => run(id))));
  const sorted = took.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN;
  return { median: at(0.5), late: at(0.95) };
}

async function direct(url: string): Promise<void> {
  const response = await fetch(`${url}/responses`, { method: 'POST', body: '{}' });
  await response.text();
}

const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };

async function beginSession(url: string): Promise<string> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  const response = await fetch(`${url}/mcp`, { method: 'POST', headers, body });
  await response.text();
  return response.headers.get('mcp-session-id') ?? '';
}

async function call(url: string, session: string, name: string, args: object): Promise<void> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } });
  const own = { 'Mcp-Session-Id': session, 'MCP-Protocol-Version': '2025-11-25' };
  const response = await fetch(`${url}/mcp`, { method: 'POST', headers: { ...headers, ...own }, body });
  const text = await response.text();
  if (!text.includes('"result"') || text.includes('"isError":true'))
    throw new Error(`${name} failed: ${text.slice(0, 500)}`);
}

async function timed(run: () => Promise<void>): Promise<number> {
  const before = performance.now();
  await run();
  return performance.now() - before;
}
