import { join } from 'node:path';
import { defineHost, envTable } from '../init/hosts.ts';

export const cursor = defineHost({
  name: 'cursor',
  title: 'Cursor',
  format: 'json',
  key: 'mcpServers',
  files: {
    user: ({ homeDir }) => join(homeDir, '.cursor', 'mcp.json'),
    project: ({ project }) => join(project, '.cursor', 'mcp.json'),
  },
  refers: true,
  entry: server => ({
    type: 'stdio',
    command: server.command,
    args: server.args,
    env: envTable(server, name => `\${env:${name}}`),
  }),
  next: 'Cursor Settings, MCP: the server is listed there; switch it on.',
});
