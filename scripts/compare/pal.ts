import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** A server that is measured: what starts it. */
export interface Contender {
  name: string;
  command: string;
  args: string[];
}

/** How to get PAL MCP. */
export const advice = `For the column of PAL MCP, name a checkout:

  git clone https://github.com/BeehiveInnovations/pal-mcp-server.git
  cd pal-mcp-server && python3 -m venv .pal_venv && .pal_venv/bin/pip install -r requirements.txt
  npm run compare -- /path/to/pal-mcp-server

or a program that pip installed, here of a fork of 9.8.2:

  python3 -m venv pal && pal/bin/pip install pal-mcp-server-ramarivera==9.8.2 'mcp<2'
  npm run compare -- pal/bin/pal-mcp-server`;

/** An installed program, or PAL's documented start: `server.py` by the Python of its own environment, or else by uv. */
export function palIn(folder: string): Contender {
  if (statSync(folder, { throwIfNoEntry: false })?.isFile()) return { name: 'PAL MCP', command: folder, args: [] };
  const server = join(folder, 'server.py');
  if (!existsSync(server)) throw new Error(`${server} is missing.\n\n${advice}`);
  const python = join(folder, '.pal_venv/bin/python');
  if (existsSync(python)) return { name: 'PAL MCP', command: python, args: [server] };
  const requirements = ['--with-requirements', join(folder, 'requirements.txt')];
  return { name: 'PAL MCP', command: 'uv', args: ['run', '--no-project', ...requirements, 'python', server] };
}
