import { wsSettings } from '../config/derive.ts';
import { configError } from '../domain/error.ts';
import type { Clock, Emit, Random } from '../domain/ports.ts';
import type { Store } from '../memory/store.ts';
import { findDaemons as daemonsIn, type FoundDaemon, healthFolder } from '../server/daemon/find-daemons.ts';
import { metricsRoute } from '../server/daemon/metrics-route.ts';
import { type Daemon, openDaemon } from '../server/daemon/open-daemon.ts';
import { createReadiness } from '../server/daemon/readiness.ts';
import { openTokenStore } from '../server/daemon/token-store.ts';
import { dashboardRoute } from '../server/dashboard/create-dashboard.ts';
import type { Caller } from '../server/guards/caller.ts';
import { operator } from '../server/guards/caller.ts';
import { isLoopback } from '../server/guards/loopback.ts';
import {
  createTokens,
  digestOf,
  isToken,
  shortestToken,
  type TokenEntry,
  type Tokens,
} from '../server/guards/tokens.ts';
import { openWs } from '../server/ws/open-ws.ts';
import { wsRules } from '../server/ws/ws-rules.ts';
import { type DashboardSources, wireDashboard } from './wire-dashboard.ts';
import type { Hosts } from './wire-hosts.ts';
import { gaugeDaemon, type Observed } from './wire-observed.ts';
import type { AppConfig } from './wire-settings.ts';

/** What a command line may say otherwise than the settings. */
export interface DaemonSettings {
  host?: string;
  port?: number;
  token?: string;
}

export interface DaemonParts extends Omit<DashboardSources, 'config' | 'version' | 'clock'> {
  config: AppConfig;
  hosts: Hosts;
  store: Pick<Store, 'mark'>;
  version: string;
  clock: Clock;
  random: Random;
  emit: Emit;
  /** Nothing is written to disk. */
  isPrivate: boolean;
  observed: Pick<Observed, 'metrics' | 'gauge'>;
}

/** The daemons that told of themselves in the data folder. */
export function findDaemons({ home }: AppConfig, clock: Clock): Promise<FoundDaemon[]> {
  return daemonsIn(healthFolder(home), clock);
}

/** Settings → the product behind a port. */
export async function wireDaemon(parts: DaemonParts, settings: DaemonSettings): Promise<Daemon> {
  const { config, hosts, store, version, clock, random, emit, observed } = parts;
  const values = config.values.app;
  const bind = { host: settings.host ?? values.serveHost, port: settings.port ?? values.servePort };
  const warn = (message: string) => emit({ type: 'warning', where: 'daemon', message });
  const tokens = await wireTokens(parts, settings.token ?? values.token, bind.host, warn);
  const daemon = await openDaemon({
    bind,
    hosts: values.serveHosts ?? [],
    origins: values.serveOrigins ?? [],
    tokens,
    rates: { perMinute: values.requestsPerMinute, burst: Math.max(1, Math.ceil(values.requestsPerMinute / 6)) },
    capacity: { perCaller: values.sessionCalls, inAll: values.daemonCalls, queued: values.queuedCalls },
    sessions: { idleMs: values.sessionIdleMinutes * 60_000, most: values.maxSessions },
    maxBodyBytes: values.maxBodyBytes,
    version,
    clock,
    random,
    async productOf({ permissions, isAtHome = false }, declared, listed) {
      const { wired, root } = await hosts.of({ permissions, declared, listed, free: isAtHome });
      return { host: wired.host, root, instructions: wired.instructions };
    },
    notReady: createReadiness(() => store.mark(), clock),
    onError: error => warn(error.message),
    ...(!parts.isPrivate && { healthFolder: healthFolder(config.home) }),
    routes: [() => metricsRoute(observed.metrics), dashboardRoute(wireDashboard(parts))],
    upgrades: [parts => openWs({ ...parts, ...wsRules(wsSettings(values)), kindOf: hosts.own.kindOf })],
  });
  gaugeDaemon(observed.gauge, daemon);
  return daemon;
}

async function wireTokens(
  { config }: DaemonParts,
  own: string | undefined,
  host: string,
  warn: (message: string) => void,
): Promise<Tokens> {
  const path = config.values.app.tokensFile;
  const kept = path === undefined ? undefined : await openTokenStore(path);
  for (const message of kept?.warnings ?? []) warn(message);
  const entries = [...(own === undefined ? [] : [operatorEntry(own, host)]), ...(kept?.entries ?? [])];
  const names = new Set(entries.map(({ caller }) => caller.name));
  const digests = new Set(entries.map(({ digest }) => digest.toString('hex')));
  if (Math.min(names.size, digests.size) < entries.length) {
    throw configError(`The file of tokens ${path} holds POLYLOGUE_TOKEN, or its name "${operator.name}", once more.`, {
      next: 'Take it out of the file, or unset POLYLOGUE_TOKEN.',
    });
  }
  const onRotated = (entry: TokenEntry) => {
    kept?.keep(entry).catch(error => warn(`A rotated token holds until the next start only: ${error.message}`));
  };
  return createTokens(entries, operator, onRotated);
}

function operatorEntry(token: string, host: string): TokenEntry {
  if (!isToken(token)) {
    throw configError('POLYLOGUE_TOKEN could be guessed, or holds what no header can carry.', {
      next: `Give it at least ${shortestToken} printable characters without spaces and commas.`,
    });
  }
  const caller: Caller = { ...operator, isAtHome: isLoopback(host) };
  return { digest: digestOf(token), caller };
}
