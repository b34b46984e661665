import { createOpenAI } from '@ai-sdk/openai';
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { append } from './turns.ts';

// The work of the floor with the libraries that the product is built on, and nothing else: the protocol's SDK, the vendor's
// package, and SQLite. What a chat costs beyond it is ours.
const { VENDOR_URL = '' } = process.env;
const openai = createOpenAI({ apiKey: 'test-key', baseURL: VENDOR_URL });

async function ask(prompt: string): Promise<string> {
  const question = { role: 'user' as const, content: [{ type: 'text' as const, text: prompt }] };
  const { stream } = await openai.responses('gpt-5').doStream({ prompt: [question] });
  let text = '';
  for await (const part of stream) if (part.type === 'text-delta') text += part.delta;
  return text;
}

serveStdio(() => {
  const server = new McpServer({ name: 'libraries', version: '1' });
  const inputSchema = z.object({ prompt: z.string(), model: z.string() });
  server.registerTool('chat', { description: 'Asks the vendor.', inputSchema }, async ({ prompt }) => {
    append(JSON.stringify({ role: 'user', content: prompt, timestamp: Date.now() }));
    const content = await ask(prompt);
    append(JSON.stringify({ role: 'assistant', content, timestamp: Date.now() }));
    return { content: [{ type: 'text', text: JSON.stringify({ status: 'success', content }) }] };
  });
  return server;
});
