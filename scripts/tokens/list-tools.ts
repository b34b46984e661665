import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio';

/** Starts a built server on stdio, as a host does, without any key and with a home of its own, and asks what it lists. */
export async function listTools(program: string): Promise<{ name: string }[]> {
  const home = await mkdtemp(join(tmpdir(), 'polylogue-tokens-'));
  const env = { ...getDefaultEnvironment(), POLYLOGUE_HOME: home };
  const client = new Client({ name: 'polylogue-tokens', version: '1' });
  try {
    await client.connect(new StdioClientTransport({ command: process.execPath, args: [program], env }));
    const { tools } = await client.listTools();
    return tools;
  } finally {
    await client.close();
    await rm(home, { recursive: true, force: true });
  }
}
