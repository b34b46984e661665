import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { ask } from './ask-with-libraries.ts';
import { append } from './turns.ts';

// The work of the floor with the libraries that the product is built on, and nothing else: the protocol's SDK, the vendor's
// package, and SQLite. What a chat costs beyond it is ours.
serveStdio(() => {
  const server = new McpServer({ name: 'libraries', version: '1' });
  const inputSchema = z.object({ prompt: z.string(), model: z.string() });
  server.registerTool('chat', { description: 'Asks the vendor.', inputSchema }, async ({ prompt }) => {
    append(JSON.stringify({ role: 'user', content: prompt, timestamp: Date.now() }));
    let content = '';
    await ask(prompt, text => {
      content += text;
    });
    append(JSON.stringify({ role: 'assistant', content, timestamp: Date.now() }));
    return { content: [{ type: 'text', text: JSON.stringify({ status: 'success', content }) }] };
  });
  return server;
});
