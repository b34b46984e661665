import type { ToolHost } from '../../src/core/tool-host.ts';
import { createTokens, type Tokens } from '../../src/server/access/tokens.ts';
import { type Daemon, type DaemonOptions, openDaemon } from '../../src/server/daemon/daemon.ts';
import { realClock } from './clock.ts';
import { seededRandom } from './random.ts';

/** The daemon's doors over any host at all, without tokens, on a free port. */
export function bareDaemon(
  host: ToolHost,
  { tokens = createTokens([]), ...options }: Partial<DaemonOptions> & { tokens?: Tokens } = {},
): Promise<Daemon> {
  return openDaemon({
    bind: { host: '127.0.0.1', port: 0 },
    hosts: [],
    origins: [],
    live: { tokens, reload: async () => {}, problem: () => undefined, close() {} },
    rates: { perMinute: 1_000_000, burst: 1_000_000 },
    capacity: { perCaller: 32, inAll: 128, queued: 256 },
    sessions: { idleMs: 3_600_000, max: 2_000 },
    maxBodyBytes: 33_554_432,
    version: '0.0.0',
    clock: realClock(),
    random: seededRandom(11),
    productOf: async () => ({ host, root: '/', instructions: 'Fixtures.' }),
    notReady: async () => undefined,
    onError() {},
    routes: [],
    upgrades: [],
    ...options,
  });
}
