import { join } from 'node:path';
import { defineHost, envTable, type HostPlace } from '../init/hosts.ts';

export const zed = defineHost({
  name: 'zed',
  title: 'Zed',
  format: 'json',
  key: 'context_servers',
  files: {
    user: place => join(settingsFolder(place), 'settings.json'),
    project: ({ project }) => join(project, '.zed', 'settings.json'),
  },
  // It passes the table on as it stands, so that a reference would arrive as text.
  refers: false,
  entry: server => ({
    source: 'custom',
    command: server.command,
    args: server.args,
    env: envTable(server, name => name) ?? {},
  }),
  next: 'Zed starts the server at once; the agent panel’s settings show it.',
});

function settingsFolder({ homeDir, platform, env }: HostPlace): string {
  if (platform === 'win32') return join(env.APPDATA || join(homeDir, 'AppData', 'Roaming'), 'Zed');
  const config = platform === 'linux' ? env.XDG_CONFIG_HOME : undefined;
  return join(config || join(homeDir, '.config'), 'zed');
}
