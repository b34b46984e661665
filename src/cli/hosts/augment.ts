import { join } from 'node:path';
import { defineHost, envTable } from '../init/hosts.ts';

export const augment = defineHost({
  name: 'augment',
  title: 'Augment (Auggie)',
  format: 'json',
  key: 'mcpServers',
  files: { user: ({ homeDir }) => join(homeDir, '.augment', 'settings.json') },
  // Nothing says that it expands references.
  refers: false,
  entry: server => ({
    type: 'stdio',
    command: server.command,
    args: server.args,
    env: envTable(server, name => name),
  }),
  next: 'Start auggie anew; /mcp shows the server.',
});
