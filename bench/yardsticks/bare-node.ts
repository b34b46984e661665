import { createInterface } from 'node:readline';

// The least a server can be: three lines answered without a library.
const tool = { name: 'echo', description: 'Says it again.', inputSchema: { type: 'object', properties: {} } };
const results: Record<string, unknown> = {
  initialize: {
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: 'bare', version: '1' },
  },
  'tools/list': { tools: [tool] },
};

createInterface({ input: process.stdin }).on('line', line => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} })}\n`);
});
