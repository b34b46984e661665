import { join } from 'node:path';
import { storePlace } from '../config/derived-settings.ts';
import { requireHome } from '../config/home.ts';
import { configError } from '../core/errors.ts';
import type { ProxyOptions } from '../server/proxy/proxy.ts';
import { type ProcessEnvironment, rootsOf } from './compose-front.ts';
import { type AppConfig, tables } from './settings.ts';

export interface ProxySettings
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
  const [proxyModule, { createKeptToken }, daemons] = await Promise.all([
    import('../server/proxy/proxy.ts'),
    import('../server/proxy/start-daemon.ts'),
    import('../server/daemon/health-file.ts'),
  ]);
  const { isPrivate } = storePlace(config.values.app, config.home);
  const findDaemons = () => daemons.findDaemons(daemons.healthFolder(config.home), clock);
  const running = (await findDaemons()).filter(({ state }) => state === 'running');
  // Without a configured port, the daemon of this data directory is used on whichever port it listens.
  const isUsual = isNamed || config.sourceOf('app', 'servePort') !== 'default';
  const there = isUsual ? undefined : (running.find(({ port }) => port === servePort) ?? running[0]);
  const port = there?.port ?? servePort;
  const isOurs = async () => {
    // A daemon that writes nothing to disk tells nothing of itself either.
    if (isPrivate) return true;
    return (await findDaemons()).some(each => each.port === port && each.state !== 'gone');
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

/** Where a daemon of this machine is reached, whatever networks it listens on. */
function localUrl(host: string, port: number): string {
  const isEverywhere = ['', '0.0.0.0', '::', '*'].includes(host);
  const name = isEverywhere ? '127.0.0.1' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
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
