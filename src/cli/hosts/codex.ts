import { join } from 'node:path';
import { defineHost } from '../init/hosts.ts';

export const codex = defineHost({
  name: 'codex',
  title: 'Codex',
  format: 'toml',
  key: 'mcp_servers',
  files: {
    user: ({ homeDir, env }) => join(env.CODEX_HOME || join(homeDir, '.codex'), 'config.toml'),
    project: ({ project }) => join(project, '.codex', 'config.toml'),
  },
  refers: true,
  entry: ({ command, args, values, references }) => ({
    command,
    args,
    env_vars: references.length > 0 ? [...references] : undefined,
    env: Object.keys(values).length > 0 ? { ...values } : undefined,
    // Its own limit is a minute, and models that reason take longer.
    tool_timeout_sec: 600,
  }),
  next: 'Start Codex anew; /mcp shows the server.',
});
