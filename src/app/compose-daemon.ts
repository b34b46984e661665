import { join } from 'node:path';
import { ownCaches, ownHeads, removeThread } from '../calls/actions/actions.ts';
import type { Jobs } from '../calls/durable/jobs.ts';
import { exposurePolicy } from '../config/derived-settings.ts';
import { withDeadline } from '../core/concurrency.ts';
import { AppError, cancelledError, configError, inputError, isAppError } from '../core/errors.ts';
import { isRecord, recordIn, textsIn } from '../core/json.ts';
import type { WatchedCall, WatchedCalls } from '../core/ports.ts';
import { endsExchange } from '../core/thread.ts';
import type { ToolReply, UserAnswer } from '../core/tool-host.ts';
import { type SpendRow, savedByCaches } from '../core/usage.ts';
import { narrowExposure } from '../engine/exposure.ts';
import type { ModelService } from '../models/call/models.ts';
import type { Telemetry } from '../observability/observability.ts';
import { isLoopback } from '../server/access/addresses.ts';
import { type Caller, operator } from '../server/access/caller.ts';
import { bytesForCalls } from '../server/access/limits.ts';
import { digestOf, isToken, shortestToken, type TokenEntry } from '../server/access/tokens.ts';
import { createReadiness, type Daemon, metricsRoute, openDaemon } from '../server/daemon/daemon.ts';
import { healthFolder } from '../server/daemon/health-file.ts';
import { openLiveTokens } from '../server/daemon/live-tokens.ts';
import { dashboardRoute } from '../server/dashboard/dashboard.ts';
import type { DashboardData, RunReply, RunsData, ThreadsData } from '../server/dashboard/data.ts';
import { createKeptToken } from '../server/proxy/start-daemon.ts';
import { openWebSockets, type WebSocketOptions } from '../server/websocket/websocket.ts';
import { currentDay } from '../storage/shared-state.ts';
import type { Store } from '../storage/store.ts';
import { shownFile, shownImages, splitFences } from '../threads/transfer/readable.ts';
import { tools } from '../tools/index.gen.ts';
import type { Hosts } from './compose-caller-hosts.ts';
import type { SharedParts } from './compose-host.ts';
import type { AppConfig } from './settings.ts';

/** What of the product the dashboard shows. */
export interface DashboardSources
  extends Pick<SharedParts, 'config' | 'threads' | 'transfer' | 'clock' | 'mask' | 'state'> {
  models: Pick<ModelService, 'capabilities' | 'health' | 'caches' | 'forget' | 'ping' | 'providers' | 'lookAhead'>;
  calls: WatchedCalls;
  hosts: Hosts;
  version: string;
}

/** Running parts → what one caller may see of them. */
export function composeDashboard(sources: DashboardSources): DashboardData {
  const { calls, threads, version } = sources;
  return {
    version,
    segments: splitFences,
    of(caller) {
      const { owner } = caller;
      const mayRead = mayUse('threads', sources, caller);
      // What was said is in threads: who may not use those does not see it here either.
      const shown = (call: WatchedCall): WatchedCall => (mayRead ? call : { ...call, about: undefined });
      const found = (call: WatchedCall | undefined) => call && shown(call);
      return {
        calls: {
          list: () => calls.list(owner).map(shown),
          find: reqId => found(calls.find(owner, reqId)),
          subscribe: (listener, signal) => calls.subscribe(owner, listener, signal),
        },
        // A run shows what its thread holds. Who may have the agent work may say what it does, and nobody else.
        ...(mayRead && mayUse('agent', sources, caller) && { runs: composeRuns(sources, caller) }),
        async providers() {
          const { models } = sources;
          const [providers, health] = await Promise.all([models.capabilities(), models.health()]);
          return providers.map(each => ({ ...each, health: health.filter(({ provider }) => provider === each.id) }));
        },
        ...(!isReadOnly(sources, caller) && { tryProvider: (id, signal) => tryProvider(sources, id, signal) }),
        caches: () => ownCaches(sources, owner),
        saved: rows => savedIn(sources, rows),
        spend: async from =>
          threads.store.spend.rows({ owner, from: from ?? (await currentDay(sources.state, owner, sources.clock)) }),
        ...(mayRead && { threads: threadsOf(sources, caller) }),
      };
    },
  };
}

/** What a token is denied as a tool it is denied as a page. */
function mayUse(tool: string, { config }: DashboardSources, { permissions }: Caller): boolean {
  const exposed = narrowExposure(tools, exposurePolicy(config.values.app), permissions);
  return [...exposed.tools, ...exposed.unlisted].some(({ name }) => name === tool);
}

function threadsOf(sources: DashboardSources, caller: Caller): ThreadsData {
  const { threads, transfer, clock } = sources;
  const { owner } = caller;
  const { store } = threads;
  // Threads are named by their ids alone here: no project is looked in.
  const place = { owner, workspace: '' };
  const blob: Parameters<typeof shownFile>[1] = async hash => (await store.blobs([hash])).get(hash);
  return {
    list: query => store.list({ ...query, owner, now: clock.now() }),
    search: query => store.search({ ...query, owner, now: clock.now() }),
    read: id => threads.find(id, place),
    async projects(ids) {
      const heads = await ownHeads(sources, owner, ids);
      return new Map([...heads].map(([id, { workspace }]) => [id, workspace]));
    },
    file: file => shownFile(file, blob),
    async image({ mediaType, blob: hash }) {
      const data = shownImages.has(mediaType) ? await blob(hash) : undefined;
      return data === undefined ? undefined : Buffer.from(data, 'base64');
    },
    export: async (id, form) => (await transfer.export(id, place, form)).pieces,
    ...(!isReadOnly(sources, caller) && {
      change: {
        async fork(thread, turn) {
          if (endsExchange(thread, turn))
            return threads.fork(thread, turn.seq, `${thread.title} (fork at turn ${turn.seq})`);
          throw inputError(`No exchange ends with turn ${turn.seq}: a fork keeps whole ones.`, {
            class: 'fork',
            next: 'Go back and choose an answer that is there.',
          });
        },
        async remove({ id }, signal) {
          await removeThread(sources, id, signal);
        },
      },
    }),
  };
}

/** What a token or the settings keep from changing anything. */
const isReadOnly = ({ config }: DashboardSources, { permissions }: Caller): boolean =>
  permissions.readOnly || exposurePolicy(config.values.app).readOnly;

async function savedIn({ models }: DashboardSources, rows: readonly SpendRow[]): Promise<number> {
  const all = (await models.providers()).flatMap(provider => provider.models);
  const prices = new Map(all.map(({ provider, id, price }) => [`${provider}:${id}`, price]));
  return rows.reduce((sum, { provider, model, usage }) => {
    const price = prices.get(`${provider}:${model}`);
    return sum + (price ? savedByCaches(usage, price) : 0);
  }, 0);
}

/** What a command line may say otherwise than the settings. */
export interface DaemonSettings {
  host?: string;
  port?: number;
  token?: string;
  /** Where no token is set at all, one is made and kept in `daemon.token` of the data directory. */
  keepsToken?: boolean;
  /** Hears what the operator should know, a sentence each. */
  log?(message: string): void;
}

export interface DaemonParts extends DashboardSources, Pick<SharedParts, 'random' | 'emit'> {
  store: Pick<Store, 'lease'>;
  jobs: Pick<Jobs, 'count'>;
  /** Nothing is written to disk. */
  isPrivate: boolean;
  /** Masks these too from now on, and those alone of what was told before. */
  know(secrets: readonly string[]): void;
  observed: Pick<Telemetry, 'metrics' | 'gauge'>;
}

/** Settings → the product behind a port. */
export async function composeDaemon(parts: DaemonParts, settings: DaemonSettings): Promise<Daemon> {
  const { config, hosts, store, version, clock, random, emit, observed } = parts;
  const values = config.values.app;
  const bind = { host: settings.host ?? values.serveHost, port: settings.port ?? values.servePort };
  const warn = (message: string) => emit({ type: 'warning', where: 'daemon', message });
  const given = settings.token ?? values.token;
  const isOpen = given === undefined && values.tokensFile === undefined;
  // Other machines would not see the file: what they are let in by, their operator chooses.
  const isKept = settings.keepsToken === true && isOpen && isLoopback(bind.host);
  const kept = isKept ? createKeptToken(join(config.home, 'daemon.token')) : undefined;
  const ownToken = given ?? kept?.readOrMake();
  const live = await openLiveTokens({
    path: values.tokensFile,
    own: ownToken === undefined ? undefined : operatorEntry(ownToken, bind.host, kept?.path),
    clock,
    warn,
    log: message => settings.log?.(message),
    onSecrets: parts.know,
  });
  live.tokens.onChange(({ rotated }) => {
    try {
      if (rotated?.secret !== undefined) kept?.replace(rotated.secret);
    } catch (error) {
      warn(`A rotated token holds until the next start: ${String(error)}`);
    }
  });
  const half = Math.ceil(values.maxSessions / 2);
  const perCaller = () => values.sessionsPerToken ?? (live.tokens.count() > 1 ? half : values.maxSessions);
  const daemon = await openDaemon({
    bind,
    live,
    hosts: values.serveHosts ?? [],
    origins: values.serveOrigins ?? [],
    tokenFile: kept?.path,
    rates: { perMinute: values.requestsPerMinute, burst: Math.max(1, Math.ceil(values.requestsPerMinute / 6)) },
    capacity: {
      perCaller: values.sessionCalls,
      inAll: values.daemonCalls,
      queued: values.queuedCalls,
      bytes: bytesForCalls(),
    },
    sessions: { idleMs: values.sessionIdleMinutes * 60_000, max: values.maxSessions, perCaller },
    maxBodyBytes: values.maxBodyBytes,
    version,
    clock,
    random,
    async productOf({ permissions, isAtHome = false }, declared, listed) {
      const { services, root } = await hosts.of({ permissions, declared, listed, free: isAtHome });
      return { host: services.host, root, instructions: services.instructions };
    },
    // A write: a full disk and a replica of Redis can still be read.
    notReady: createReadiness(() => store.lease('readiness', 'readiness', 0, clock.storeTime()), clock),
    jobsRunning: () => parts.jobs.count(),
    onError: error => warn(error.message),
    ...(!parts.isPrivate && { healthFolder: healthFolder(config.home) }),
    routes: [() => metricsRoute(observed.metrics), dashboardRoute(composeDashboard(parts))],
    upgrades: [parts => openWebSockets({ ...parts, ...socketRules(values), perCaller, kindOf: hosts.own.kindOf })],
  }).catch(error => {
    live.close();
    throw error;
  });
  gaugeDaemon(observed.gauge, daemon);
  // Not awaited: nobody has asked for a model yet.
  void parts.models.lookAhead().catch(() => undefined);
  if (kept) settings.log?.(`the token that clients and the dashboard need is in ${kept.path}`);
  return daemon;
}

/** Settings, which are in seconds → times and limits of WebSockets. */
const socketRules = (values: AppConfig['values']['app']): Pick<WebSocketOptions, 'rules' | 'ceilings'> => ({
  ceilings: {
    quick: values.wsCallSeconds * 1_000,
    files: values.wsFilesCallSeconds * 1_000,
    reasoning: values.wsReasoningCallSeconds * 1_000,
  },
  rules: {
    pingMs: values.wsPingSeconds * 1_000,
    silenceMs: values.wsSilenceSeconds * 1_000,
    maxBytes: 1_048_576,
    maxKept: 134_217_728,
    maxConnections: values.maxSessions,
    frames: {
      helloMs: values.wsHelloSeconds * 1_000,
      progressMs: values.wsProgressSeconds * 1_000,
      resultMs: values.wsResultSeconds * 1_000,
      maxCharacters: 8_388_608,
      maxAsked: 67_108_864,
      compatText: values.wsCompatText,
      notJoined: values.wsNotJoined ?? [],
    },
  },
});

function operatorEntry(token: string, host: string, path: string | undefined): TokenEntry {
  if (!isToken(token)) {
    const from = path === undefined ? 'POLYLOGUE_TOKEN (or EXAI_WS_TOKEN)' : `The token in "${path}"`;
    const next = `Give it at least ${shortestToken} printable characters without spaces and commas`;
    throw configError(`${from} could be guessed, or holds what no header can carry.`, {
      next: path === undefined ? `${next}.` : `${next}, or delete the file to have another one made.`,
    });
  }
  return { digest: digestOf(token), caller: { ...operator, isAtHome: isLoopback(host) }, secret: token };
}

/** Answers to waiting runs as calls of the tool `agent`, with all that the caller may and may not do with that tool. */
function composeRuns({ hosts, state }: DashboardSources, caller: Caller): RunsData {
  const { owner, permissions, isAtHome = false } = caller;
  async function call(id: string, answers: Map<string, UserAnswer>, signal: AbortSignal): Promise<RunReply> {
    const { services, root } = await hosts.of({ permissions, free: isAtHome });
    const principal = { owner, root, client: 'dashboard' };
    const request = { name: 'agent', arguments: { run_id: id }, principal, answers, rateLimited: true };
    const reply = await services.host.call(request, signal);
    reply.delivered?.();
    return viewOf(reply);
  }
  return {
    async list() {
      const { listWaiting } = await import('../engine/modes/agent/waiting-runs.ts');
      return listWaiting(state, owner);
    },
    question: (id, signal) => call(id, new Map(), signal),
    answer: (id, key, decision) =>
      // A reader who leaves does not end the run.
      call(id, new Map([[key, { action: 'accept', content: { decision } }]]), new AbortController().signal),
  };
}

function viewOf({ isError, document, questions }: ToolReply): RunReply {
  const { error, content, continuation_id: thread } = document;
  const [asked] = questions ?? [];
  const decisions = textsIn(recordIn(recordIn(asked?.schema.properties).decision).enum);
  return {
    isError,
    text: isRecord(error) ? [error.message, error.next].filter(Boolean).join(' ') : String(content ?? ''),
    ...(typeof thread === 'string' && { thread }),
    ...(asked && { question: { key: asked.key, message: asked.message, decisions } }),
  };
}

/** A vendor that says nothing for so long is not waited for. */
const tryMs = 20_000;

/** Asks a provider for its list of models, and says what came of it. */
async function tryProvider({ models, mask, clock }: DashboardSources, id: string, signal: AbortSignal) {
  const startedAt = clock.monotonic();
  const late = () => cancelledError(`It did not answer within ${tryMs / 1_000} s.`);
  try {
    const { listed, remark } = await withDeadline(clock, tryMs, within => models.ping(id, within), signal, late);
    const found =
      typeof listed === 'number' ? `answered with ${listed} models` : 'ready; it has no list of models to ask for';
    return `${found}, after ${Math.round(clock.monotonic() - startedAt)} ms${remark === undefined ? '' : `; ${remark}`}`;
  } catch (error) {
    if (!isAppError(error)) throw error;
    // Vendors may quote the key that they refuse.
    throw new AppError(error.kind, (await mask(error.message, 'dashboard')).text, error.details);
  }
}

/** What the daemon's endpoints know. */
function gaugeDaemon(gauge: Telemetry['gauge'], { load }: Pick<Daemon, 'load'>): void {
  gauge('polylogue_sessions', 'Clients that are connected to the daemon.', [], () => [[[], load().sessions]]);
  const calls = 'Calls of clients of the daemon, by whether they run or wait for a place.';
  gauge('polylogue_daemon_calls', calls, ['state'], () => [
    [['running'], load().callsRunning],
    [['waiting'], load().callsWaiting],
  ]);
}
