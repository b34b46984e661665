import { join } from 'node:path';
import { defineHost, envTable } from '../init/hosts.ts';

export const claude = defineHost({
  name: 'claude',
  title: 'Claude Code',
  format: 'json',
  key: 'mcpServers',
  files: {
    user: ({ homeDir, env }) => join(env.CLAUDE_CONFIG_DIR || homeDir, '.claude.json'),
    project: ({ project }) => join(project, '.mcp.json'),
  },
  refers: true,
  entry: server => ({
    type: 'stdio',
    command: server.command,
    args: server.args,
    // Without a default, an unset variable would arrive as the text of its reference.
    env: envTable(server, name => `\${${name}:-}`),
  }),
  next: 'Start Claude Code anew; /mcp shows the server.',
});
