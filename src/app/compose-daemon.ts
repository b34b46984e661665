import { wsSettings } from '../config/derived-settings.ts';
import { configError } from '../core/errors.ts';
import type { Clock, Emit, Random } from '../core/ports.ts';
import type { Caller } from '../server/access/caller.ts';
import { operator } from '../server/access/caller.ts';
import { digestOf, isToken, shortestToken, type TokenEntry } from '../server/access/tokens.ts';
import { type Daemon, type DaemonOptions, openDaemon } from '../server/daemon/daemon.ts';
import { findDaemons as daemonsIn, type FoundDaemon, healthFolder } from '../server/daemon/find-daemons.ts';
import { type LiveTokens, openLiveTokens } from '../server/daemon/live-tokens.ts';
import { metricsRoute } from '../server/daemon/metrics-route.ts';
import { createReadiness } from '../server/daemon/probes.ts';
import { dashboardRoute } from '../server/dashboard/dashboard.ts';
import { isLoopback } from '../server/guards/loopback.ts';
import { wsRules } from '../server/websocket/rules.ts';
import { openWs } from '../server/websocket/websocket.ts';
import type { Store } from '../storage/store.ts';
import { type DashboardSources, wireDashboard } from '../wire/wire-dashboard.ts';
import type { Hosts } from './compose-hosts.ts';
import { gaugeDaemon, type Observed } from './compose-observability.ts';
import type { AppConfig } from './settings.ts';

/** What a command line may say otherwise than the settings. */
export interface DaemonSettings {
  host?: string;
  port?: number;
  token?: string;
  /** Hears what the operator should know, a sentence each. */
  tell?(message: string): void;
}

/** The product behind a port, with what its operator can do to it. */
export interface WiredDaemon extends Daemon {
  /** Reads the file of tokens again. Never rejects. */
  reload(): Promise<void>;
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
  /** Masks these too from now on, and those alone of what was told before. */
  know(secrets: readonly string[]): void;
  observed: Pick<Observed, 'metrics' | 'gauge'>;
}

/** The daemons that told of themselves in the data folder. */
export function findDaemons({ home }: AppConfig, clock: Clock): Promise<FoundDaemon[]> {
  return daemonsIn(healthFolder(home), clock);
}

/** Settings → the product behind a port. */
export async function wireDaemon(parts: DaemonParts, settings: DaemonSettings): Promise<WiredDaemon> {
  const { config, hosts, store, version, clock, random, emit, observed } = parts;
  const values = config.values.app;
  const bind = { host: settings.host ?? values.serveHost, port: settings.port ?? values.servePort };
  const warn = (message: string) => emit({ type: 'warning', where: 'daemon', message });
  const ownToken = settings.token ?? values.token;
  const live = await openLiveTokens({
    path: values.tokensFile,
    own: ownToken === undefined ? undefined : operatorEntry(ownToken, bind.host),
    clock,
    warn,
    tell: message => settings.tell?.(message),
    onSecrets: parts.know,
  });
  const half = Math.ceil(values.maxSessions / 2);
  const ofOne = () => values.sessionsPerToken ?? (live.tokens.count() > 1 ? half : values.maxSessions);
  const daemon = await opened(live, {
    bind,
    hosts: values.serveHosts ?? [],
    origins: values.serveOrigins ?? [],
    tokens: live.tokens,
    tokensProblem: live.problem,
    rates: { perMinute: values.requestsPerMinute, burst: Math.max(1, Math.ceil(values.requestsPerMinute / 6)) },
    capacity: { perCaller: values.sessionCalls, inAll: values.daemonCalls, queued: values.queuedCalls },
    sessions: { idleMs: values.sessionIdleMinutes * 60_000, most: values.maxSessions, ofOne },
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
    upgrades: [parts => openWs({ ...parts, ...wsRules(wsSettings(values)), ofOne, kindOf: hosts.own.kindOf })],
  });
  gaugeDaemon(observed.gauge, daemon);
  return daemon;
}

/** A daemon that looks after its tokens for as long as it is open. */
async function opened(live: LiveTokens, options: DaemonOptions): Promise<WiredDaemon> {
  try {
    const daemon = await openDaemon(options);
    return {
      ...daemon,
      async reload() {
        await live.reload();
        await daemon.report();
      },
      async close() {
        live.close();
        await daemon.close();
      },
    };
  } catch (error) {
    live.close();
    throw error;
  }
}

function operatorEntry(token: string, host: string): TokenEntry {
  if (!isToken(token)) {
    throw configError('POLYLOGUE_TOKEN could be guessed, or holds what no header can carry.', {
      next: `Give it at least ${shortestToken} printable characters without spaces and commas.`,
    });
  }
  const caller: Caller = { ...operator, isAtHome: isLoopback(host) };
  return { digest: digestOf(token), caller, secret: token };
}
