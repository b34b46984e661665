import { join } from 'node:path';
import { storePlace } from '../config/derived-settings.ts';
import { requireHome } from '../config/home.ts';
import { configError } from '../core/errors.ts';
import type { Clock } from '../core/ports.ts';
import type { ToolHost } from '../core/tool-host.ts';
import { version } from '../core/version.ts';
import type { Admission } from '../server/access/admission.ts';
import type { FoundDaemon } from '../server/daemon/health-file.ts';
import { createEarlyAnswers } from '../server/mcp/early-answers.ts';
import { openStdio, type StdioStreams } from '../server/mcp/stdio.ts';
import type { ProxyOptions } from '../server/proxy/proxy.ts';
import type { Readiness } from '../server/proxy/start-daemon.ts';
import { composeStartup, followsClientRoots, type ProcessEnvironment, rootsOf, type Startup } from './compose-front.ts';
import type { Product } from './compose-product.ts';
import { type AppConfig, tables } from './settings.ts';

export type { FoundDaemon };

/** The daemons that run on a data folder, as far as they told. */
export async function findDaemons({ home }: AppConfig, clock: Clock): Promise<FoundDaemon[]> {
  const daemons = await import('../server/daemon/health-file.ts');
  return daemons.findDaemons(daemons.healthFolder(home), clock);
}

/** The operator's file of tokens as a daemon reads it. Rejects where no daemon can use it. */
export const readTokenFile = async (path: string) =>
  (await import('../server/daemon/live-tokens.ts')).readTokenFile(path);

/** What stands at a daemon's URL, by its own answer. */
export const readinessOf = async (url: string): Promise<Readiness> =>
  (await import('../server/proxy/start-daemon.ts')).readinessOf(url);

/** Configuration → running parts. Opens nothing: databases, connections and logs come with their first use. */
export const createProduct = async (config: AppConfig, environment: ProcessEnvironment): Promise<Product> =>
  productBehind(await composeStartup(config, environment), config, environment);

/** Where a call waits already (`isCalled`), the store is opened while the rest is loaded. */
async function productBehind(front: Startup, config: AppConfig, environment: ProcessEnvironment, isCalled = false) {
  const { openStore } = await import('./compose-storage.ts');
  const { clock, random } = environment;
  const opened = await openStore({ ...front.place, clock, random, emit: front.telemetry.emit });
  if (isCalled) opened.store.open?.();
  const { composeProduct } = await import('./compose-product.ts');
  return composeProduct(config, environment, front, opened, isCalled);
}

/** Serves one MCP client over standard input and output. Tools are listed at once; the product is loaded by who wants more. */
export async function serveStdio(
  config: AppConfig,
  environment: ProcessEnvironment,
  streams: Pick<StdioStreams, 'input' | 'output'>,
  onError: (error: Error) => void,
) {
  const front = await composeStartup(config, environment);
  const { offer, place, root, telemetry, found } = front;
  const { promise: failed, reject: fail } = Promise.withResolvers<never>();
  // Whoever waits for `closed` hears of it; before anybody can, the caller of this does.
  failed.catch(() => undefined);
  let product: Promise<Product> | undefined;
  const open = (isCalled = false) => {
    product ??= productBehind(front, config, environment, isCalled);
    product.catch(fail);
    return product;
  };
  // Stores with an address or from outside can be set up badly, which is to be told at the start.
  if (place.redis || place.own) await open();
  let admission: Admission | undefined;
  const serve = async (isCalled: boolean) => {
    const { host, instructions, projectOf } = await open(isCalled);
    const { clock, parentProcess: clientId } = environment;
    const { createAdmission, memoryCapacity } = await import('../server/access/admission.ts');
    admission ??= createAdmission(memoryCapacity(), clock);
    const admitted = (each: ToolHost) => admission?.before(each, 'stdio') ?? each;
    const productOf = async (addresses: readonly string[]) => {
      const { host, root } = await projectOf(addresses);
      return { host: admitted(host), root };
    };
    const listed = followsClientRoots(config, found) ? { clock, productOf } : undefined;
    const principal = { owner: 'local', root };
    return { host: admitted(host), version, instructions, principal, clientId, clock, listed };
  };
  const early = offer && createEarlyAnswers({ ...offer, version });
  const warm = async () => (await open()).warm();
  const connection = openStdio(serve, { ...streams, early, warm, maxBytes: config.values.app.maxBodyBytes }, onError);
  return {
    /** Resolves when the connection is over; rejects where the product can't run. */
    closed: Promise.race([connection.closed, failed]),
    /** Ends the connection, and the product as its own `close` does. */
    async close(hurry?: AbortSignal) {
      if (hurry?.aborted) await admission?.shut(0);
      await connection.close();
      // A product that could not be made is told of by `closed`, and leaves nothing else to close.
      const made = await product?.catch(() => undefined);
      await (made ? made.close(hurry) : telemetry.close());
    },
  };
}

interface ProxySettings
  extends Pick<ProcessEnvironment, 'cwd' | 'homeDir' | 'clock' | 'childEnv'>,
    Pick<ProxyOptions, 'input' | 'output' | 'stop' | 'onRemark'> {
  /** How this program is started: absolute paths of Node and of the program, and the flags that set options. */
  launch: { node: string; program: string; args: readonly string[] };
  /** Address of the daemon; absent: the one of this machine. */
  url: string | undefined;
  /** Starts no daemon. */
  onlyRunning: boolean;
}

/** They say which project a client is of; a daemon is of none. */
const projectOptions = [tables.app.roots, tables.app.claudeProjectDir];

/** Carries messages between one client and a daemon that many share, as `runProxy` of the server does. */
export async function runProxy(config: AppConfig, settings: ProxySettings): Promise<void> {
  const { serveHost, servePort, token, maxBodyBytes } = config.values.app;
  const { clock, launch } = settings;
  const isNamed = settings.url !== undefined;
  const starts = !(settings.onlyRunning || isNamed);
  if (starts) requireHome(config.home, 'Set POLYLOGUE_HOME to a directory that you may write: the daemon needs one.');
  const { roots, isGuess = false } = await rootsOf(config, settings);
  const [proxyModule, { createKeptToken }, { localUrl }] = await Promise.all([
    import('../server/proxy/proxy.ts'),
    import('../server/proxy/start-daemon.ts'),
    import('../server/access/addresses.ts'),
  ]);
  const { isPrivate } = storePlace(config.values.app, config.home);
  const running = (await findDaemons(config, clock)).filter(({ state }) => state === 'running');
  // Without a configured port, the daemon of this data directory is used on whichever port it listens.
  const isUsual = isNamed || config.sourceOf('app', 'servePort') !== 'default';
  const there = isUsual ? undefined : (running.find(({ port }) => port === servePort) ?? running[0]);
  const port = there?.port ?? servePort;
  const isOurs = async () => {
    // A daemon that writes nothing to disk tells nothing of itself either.
    if (isPrivate) return true;
    return (await findDaemons(config, clock)).some(each => each.port === port && each.state !== 'gone');
  };
  // A daemon of this data directory that made its token itself tells where it is, by whatever name it is called.
  const url = settings.url === undefined ? (there?.url ?? localUrl(serveHost, port)) : addressOf(settings.url);
  const file = running.find(each => each.url === url)?.token_file;
  const shown = token ?? (file === undefined ? undefined : createKeptToken(file).read());
  const ofProject = new Set<string>(projectOptions.flatMap(({ env }) => [...env]));
  const env = Object.entries({ ...settings.childEnv, POLYLOGUE_HOME: config.home });
  return proxyModule.runProxy({
    ...settings,
    url,
    access: isNamed || token !== undefined ? { token: shown } : { isOurs },
    root: roots[0],
    isGuess,
    home: config.home,
    daemon: starts
      ? {
          command: launch.node,
          // Should the one that was found end, the next one starts where this client looks for it.
          args: [launch.program, 'serve', ...launch.args, ...(there ? ['--port', String(port)] : [])],
          cwd: config.home,
          env: Object.fromEntries(env.filter(([name]) => !ofProject.has(name))),
          log: join(config.home, 'logs', 'daemon.log'),
        }
      : undefined,
    maxBytes: maxBodyBytes,
  });
}

function addressOf(text: string): string {
  const url = URL.parse(text);
  const isPlain =
    url && ['http:', 'https:'].includes(url.protocol) && url.pathname === '/' && !url.search && !url.username;
  if (isPlain) return url.origin;
  throw configError('--url takes the address of a daemon, without a path.', {
    next: 'Write it as http://127.0.0.1:8765 or https://polylogue.example; a token goes into POLYLOGUE_TOKEN.',
  });
}
