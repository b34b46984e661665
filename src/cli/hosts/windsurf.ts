import { join } from 'node:path';
import { defineHost, envTable } from '../init/hosts.ts';

export const windsurf = defineHost({
  name: 'windsurf',
  title: 'Windsurf',
  format: 'json',
  key: 'mcpServers',
  files: { user: ({ homeDir }) => join(homeDir, '.codeium', 'windsurf', 'mcp_config.json') },
  refers: true,
  entry: server => ({
    command: server.command,
    args: server.args,
    env: envTable(server, name => `\${env:${name}}`),
  }),
  next: 'Press refresh in the MCP panel of Cascade.',
});
