import { DatabaseSync } from 'node:sqlite';
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { directRequest } from './direct-request.ts';

// The floor of a durable chat: the question is stored, the vendor asked, the answer stored, each commit on the disk.
const { DATABASE = '', VENDOR_URL = '' } = process.env;
const database = new DatabaseSync(DATABASE);
database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE turns (text TEXT)');
const append = database.prepare('INSERT INTO turns (text) VALUES (?)');

serveStdio(() => {
  const server = new McpServer({ name: 'relay', version: '1' });
  const inputSchema = z.object({ prompt: z.string() });
  server.registerTool('chat', { description: 'Asks the vendor.', inputSchema }, async ({ prompt }) => {
    append.run(prompt);
    const text = await directRequest(VENDOR_URL);
    append.run(text);
    return { content: [{ type: 'text', text }] };
  });
  return server;
});
