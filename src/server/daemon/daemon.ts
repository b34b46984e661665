import type { Clock, Random } from '../../core/ports.ts';
import { createGate } from '../access/admission.ts';
import { type CapacityRules, createCapacity, createRates, type RateRules } from '../access/limits.ts';
import type { Tokens } from '../access/tokens.ts';
import { createIdentify } from '../access/wrong-tokens.ts';
import type { Route, RouteServices, UpgradeHandler } from '../http/routes.ts';
import { followTokens } from './follow-tokens.ts';
import { type DaemonHealth, keepHealthFile } from './health-file.ts';
import { type HttpListener, type HttpOptions, openHttp } from './http-server.ts';

export interface DaemonOptions
  extends Pick<
    HttpOptions,
    'bind' | 'hosts' | 'origins' | 'sessions' | 'serverOf' | 'notReady' | 'version' | 'onError'
  > {
  tokens: Tokens;
  rates: RateRules;
  capacity: CapacityRules;
  maxBodyBytes: number;
  productOf: RouteServices['productOf'];
  clock: Clock;
  random: Random;
  /** Where it tells of itself; absent: nowhere. */
  healthFolder?: string;
  /** The file with the operator's token, where it was not given. */
  tokenFile?: string | undefined;
  /** What is wrong with the tokens at the moment, as a sentence. */
  tokensProblem?(): string | undefined;
  /** What is at paths of its own beside MCP and the tools. */
  routes: readonly ((parts: RouteServices) => Route)[];
  /** What connections may become. */
  upgrades: readonly ((parts: RouteServices) => UpgradeHandler)[];
  /** Milliseconds; the usual ones unless told. */
  patience?: Partial<HttpOptions['patience'] & Pick<RouteServices, 'stallMs'>>;
}

/** What runs now. */
export interface DaemonLoad {
  sessions: number;
  callsRunning: number;
  callsWaiting: number;
}

/** The product behind a port, for many clients at once. */
export interface Daemon extends Omit<HttpListener, 'sessions'> {
  tokens: Tokens;
  load(): DaemonLoad;
  /** Tells at once how it is, where it tells of itself. */
  report(): Promise<void>;
}

const usualPatience = { headMs: 10_000, requestMs: 60_000, stallMs: 30_000 };

/** Listens; rejects where it may not, or can't. */
export async function openDaemon(options: DaemonOptions): Promise<Daemon> {
  const { clock, random, tokens, version, maxBodyBytes, onError } = options;
  const capacity = createCapacity(options.capacity);
  const checkRate = createRates(options.rates, clock);
  const { stallMs, ...patience } = { ...usualPatience, ...options.patience };
  const parts: RouteServices = {
    version,
    clock,
    random,
    tokens,
    identify: createIdentify(tokens, clock),
    gate: createGate(capacity, clock),
    productOf: followTokens(tokens, options.productOf),
    admit: (caller, count) => checkRate(caller.name, count),
    maxBodyBytes,
    stallMs,
    onError,
  };
  const http = await openHttp({
    ...options,
    ...parts,
    patience,
    routes: options.routes.map(make => make(parts)),
    upgrades: options.upgrades.map(make => make(parts)),
  });
  const load = () => ({
    sessions: http.sessions(),
    callsRunning: capacity.running(),
    callsWaiting: capacity.waiting(),
  });
  const startedAt = clock.now();
  const report = () => healthOf(options, http, { isShut: parts.gate.isShut(), load: load(), startedAt });
  const { healthFolder: folder } = options;
  const file = folder
    ? await keepHealthFile({ folder, port: http.port, pid: process.pid, clock, report, onError })
    : undefined;
  const { url, port, drain } = http;
  return {
    ...{ url, port, drain, tokens, load },
    report: async () => file?.write(),
    async close() {
      await http.close();
      await file?.remove();
    },
  };
}

async function healthOf(
  options: DaemonOptions,
  http: HttpListener,
  { isShut, load, startedAt }: { isShut: boolean; load: DaemonLoad; startedAt: number },
): Promise<DaemonHealth> {
  const reason = await options.notReady();
  return {
    t: options.clock.now() / 1_000,
    pid: process.pid,
    url: http.url,
    host: options.bind.host,
    port: http.port,
    version: options.version,
    started_at: startedAt / 1_000,
    status: isShut ? 'draining' : reason === undefined ? 'ready' : 'not_ready',
    reason,
    sessions: load.sessions,
    calls_running: load.callsRunning,
    calls_waiting: load.callsWaiting,
    token_file: options.tokenFile,
    tokens_problem: options.tokensProblem?.(),
  };
}
