import type { BenchFolder } from './measure/bench-folder.ts';
import { startDaemon } from './measure/daemon-process.ts';
import { figure, type Table } from './measure/table.ts';
import { openVendorThread } from './yardsticks/vendor-thread.ts';

const idleSessions = 1_000;
const activeSessions = 200;
const vendorMs = 60;

/** What a daemon takes: memory with many sessions that rest, and how long calls take while many of them work. */
export async function daemon(folder: BenchFolder): Promise<Table> {
  const vendor = await openVendorThread(vendorMs);
  const server = await startDaemon(folder, vendor.url);
  try {
    const rows: string[][] = [['just started', figure(server.rssMb(), 0), '', '']];
    const idle: string[] = [];
    const begun = performance.now();
    while (idle.length < idleSessions) {
      idle.push(...(await Promise.all(Array.from({ length: 50 }, () => beginSession(server.url)))));
    }
    const perSession = (performance.now() - begun) / idleSessions;
    rows.push([`${idleSessions} idle sessions`, figure(server.rssMb(), 0), figure(perSession, 1), '']);
    const active = idle.slice(0, activeSessions);
    for (const [name, args] of [
      ['version', {}],
      ['chat', { prompt: 'Why?', model: 'gpt-5' }],
    ] as const) {
      const took = await Promise.all(active.map((id, at) => timed(() => call(server.url, id, at, name, args))));
      const sorted = took.toSorted((a, b) => a - b);
      const at = (share: number) => figure(sorted[Math.floor(share * (sorted.length - 1))] ?? 0, 0);
      rows.push([`${activeSessions} of them call ${name} at once`, figure(server.rssMb(), 0), at(0.5), at(0.95)]);
    }
    return {
      title: `daemon: ${idleSessions} sessions of 2025 clients, vendor takes ${vendorMs} ms`,
      columns: ['what', 'RSS MB', 'ms (median)', 'ms (95 %)'],
      rows,
      notes: [`Opening a session takes its ms among 50 at once.`],
    };
  } finally {
    await server.stop();
    await vendor.close();
  }
}

const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };

async function beginSession(url: string): Promise<string> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  const response = await fetch(`${url}/mcp`, { method: 'POST', headers, body });
  await response.text();
  return response.headers.get('mcp-session-id') ?? '';
}

async function call(url: string, session: string, at: number, name: string, args: object): Promise<void> {
  const told = name === 'chat' ? { ...args, prompt: `Question ${at}: why?` } : args;
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: told } });
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
