import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

serveStdio(() => {
  const server = new McpServer({ name: 'bare', version: '1' });
  const inputSchema = z.object({ text: z.string().optional() });
  server.registerTool('echo', { description: 'Says it again.', inputSchema }, ({ text = '' }) => ({
    content: [{ type: 'text', text }],
  }));
  return server;
});
