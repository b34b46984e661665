import type { Clock } from '../domain/ports.ts';
import type { ListedRoots } from '../server/listed-roots.ts';
import { openStdio, type StdioDoor } from '../server/stdio/open-stdio.ts';
import type { StdioStreams } from '../server/stdio/stdio-transport.ts';
import { unlimited } from './wire-host.ts';
import type { Hosts } from './wire-hosts.ts';
import type { AppConfig } from './wire-models.ts';

export interface StdioParts {
  config: AppConfig;
  hosts: Pick<Hosts, 'own' | 'of'>;
  /** The project of the process. */
  root: string;
  /** What the process may read. */
  roots: readonly string[];
  version: string;
  clock: Clock;
}

/** Serves one MCP client over a pair of streams. */
export type OpenStdio = (streams: Pick<StdioStreams, 'input' | 'output'>, onError: (error: Error) => void) => StdioDoor;

export function wireStdio(parts: StdioParts): OpenStdio {
  const { config, hosts, root, version } = parts;
  const { host, instructions } = hosts.own;
  const maxBytes = config.values.app.maxBodyBytes;
  const mcp = { host, version, instructions, principal: { owner: 'local', root }, listed: listedRoots(parts) };
  return (streams, onError) => openStdio(mcp, { ...streams, maxBytes }, onError);
}

/** How the roots of the only client choose his project; undefined where the operator or the host's environment did. */
function listedRoots({ config, hosts, roots, clock }: StdioParts): ListedRoots | undefined {
  const { roots: set = [], claudeProjectDir } = config.values.app;
  if (set.length > 0 || (claudeProjectDir !== undefined && roots.length > 0)) return undefined;
  return {
    clock,
    async productOf(listed) {
      const { wired, root } = await hosts.of({ permissions: unlimited, listed, free: true, isAlone: true });
      return { host: wired.host, root };
    },
  };
}
