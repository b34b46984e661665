import { ask } from './ask-by-hand.ts';
import { append } from './turns.ts';

// The same work by hand: a line of JSON-RPC comes in, the question is committed, one stream is fetched and read to its end,
// the answer is committed, a line goes out. No library, no checks, no logs.
async function chat(prompt: string): Promise<object> {
  append(JSON.stringify({ role: 'user', content: prompt, timestamp: Date.now() }));
  let content = '';
  await ask(prompt, text => {
    content += text;
  });
  append(JSON.stringify({ role: 'assistant', content, timestamp: Date.now() }));
  return { content: [{ type: 'text', text: JSON.stringify({ status: 'success', content }) }] };
}

const tool = { name: 'chat', description: 'Asks the vendor.', inputSchema: { type: 'object', properties: {} } };
const results: Record<string, unknown> = {
  initialize: {
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: 'floor', version: '1' },
  },
  'tools/list': { tools: [tool] },
};

async function answer(line: string): Promise<void> {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = method === 'tools/call' ? await chat(params.arguments.prompt) : (results[method] ?? {});
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
}

let rest = '';
process.stdin.setEncoding('utf8').on('data', (chunk: string) => {
  const lines = `${rest}${chunk}`.split('\n');
  rest = lines.pop() ?? '';
  for (const line of lines) void answer(line);
});
