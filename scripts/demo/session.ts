import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

export interface Session {
  call(name: string, args: Record<string, unknown>): Promise<Record<string, unknown>>;
  /** Ends the server the hard way, as a crash would. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

/** A spawned server behind the official MCP client. */
export async function startSession(options: {
  args: string[];
  cwd: string;
  env: Record<string, string>;
}): Promise<Session> {
  const main = join(import.meta.dirname, '../../dist/main.js');
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [main, ...options.args],
    cwd: options.cwd,
    env: options.env,
  });
  const client = new Client({ name: 'polylogue-demo', version: '1.0.0' });
  await client.connect(transport);
  return {
    async call(name, args) {
      const result = await client.callTool({ name, arguments: args }, { timeout: 600_000 });
      const [first] = Array.isArray(result.content) ? result.content : [];
      const document: Record<string, unknown> = JSON.parse(first?.type === 'text' ? first.text : '{}');
      if (result.isError) throw new Error(`${name} failed: ${JSON.stringify(document.error ?? document, null, 2)}`);
      return document;
    },
    async kill() {
      const { pid } = transport;
      const closed = new Promise<void>(resolve => {
        client.onclose = () => resolve();
      });
      if (pid !== null) process.kill(pid, 'SIGKILL');
      await closed;
    },
    close: () => client.close(),
  };
}
