import { join } from 'node:path';
import { defineHost, envTable, type HostPlace } from '../init/hosts.ts';

export const vscode = defineHost({
  name: 'vscode',
  title: 'VS Code',
  format: 'json',
  key: 'servers',
  files: {
    user: place => join(userFolder(place), 'mcp.json'),
    project: ({ project }) => join(project, '.vscode', 'mcp.json'),
  },
  refers: true,
  entry: server => ({
    type: 'stdio',
    command: server.command,
    args: server.args,
    env: envTable(server, name => `\${env:${name}}`),
  }),
  next: 'Run "MCP: List Servers" in VS Code and start the server.',
});

function userFolder({ homeDir, platform, env }: HostPlace): string {
  switch (platform) {
    case 'darwin':
      return join(homeDir, 'Library', 'Application Support', 'Code', 'User');
    case 'win32':
      return join(env.APPDATA || join(homeDir, 'AppData', 'Roaming'), 'Code', 'User');
    default:
      return join(env.XDG_CONFIG_HOME || join(homeDir, '.config'), 'Code', 'User');
  }
}
