import { append } from './turns.ts';

// The same work by hand: a line of JSON-RPC comes in, the question is committed, one stream is fetched and read to its end,
// the answer is committed, a line goes out. No library, no checks, no logs.
const { VENDOR_URL = '' } = process.env;

/** The text of one streamed answer, put together from its events as they come. */
async function ask(prompt: string): Promise<string> {
  const input = [{ role: 'user', content: [{ type: 'input_text', text: prompt }] }];
  const response = await fetch(`${VENDOR_URL}/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer test-key' },
    body: JSON.stringify({ model: 'gpt-5', stream: true, input }),
  });
  if (!response.ok || !response.body) throw new Error(`the vendor answered ${response.status}`);
  let [rest, text] = ['', ''];
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.startsWith('data: ')) continue;
      const event = JSON.parse(line.slice(6));
      if (event.type === 'response.output_text.delta') text += event.delta;
    }
  }
  return text;
}

async function chat(prompt: string): Promise<object> {
  append(JSON.stringify({ role: 'user', content: prompt, timestamp: Date.now() }));
  const content = await ask(prompt);
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
