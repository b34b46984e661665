import { join } from 'node:path';
import { defineHost, envTable } from '../init/hosts.ts';

export const gemini = defineHost({
  name: 'gemini',
  title: 'Gemini CLI',
  format: 'json',
  key: 'mcpServers',
  files: {
    user: ({ homeDir }) => join(homeDir, '.gemini', 'settings.json'),
    project: ({ project }) => join(project, '.gemini', 'settings.json'),
  },
  refers: true,
  entry: server => ({
    command: server.command,
    args: server.args,
    env: envTable(server, name => `\${${name}}`),
  }),
  next: 'Start Gemini CLI anew; /mcp shows the server.',
});
