import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { homedir, uptime } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { onFile } from '../config/home.ts';
import { configError } from '../core/errors.ts';
import type { Clock } from '../core/ports.ts';
import { printableText } from '../core/text.ts';
import type { ProcessEnvironment } from './compose-front.ts';
import type { AppConfig } from './settings.ts';

/** Where the system does not name it, each process counts as a start: only the time of day tells what passed between two. */
const boot = readSystem('/proc/sys/kernel/random/boot_id') ?? randomUUID();

/** The last reading of the time since the start of the machine. */
let booted = { wall: 0, steady: -Infinity, ms: 0 };

const clock: Clock = {
  now: () => Date.now(),
  // `performance` would tell the same, and is loaded with all that measures programs.
  monotonic() {
    const [seconds, nanoseconds] = process.hrtime();
    return seconds * 1_000 + nanoseconds / 1_000_000;
  },
  storeTime: () => Date.now(),
  sinceBoot() {
    const [wall, steady] = [clock.now(), clock.monotonic()];
    const passed = steady - booted.steady;
    // The system's own count is read from a file. `hrtime` stands still while the machine sleeps, and the time of day does not.
    if (passed > 10_000 || Math.abs(wall - booted.wall - passed) > 100) booted = { wall, steady, ms: uptime() * 1_000 };
    return { boot, ms: booted.ms + steady - booted.steady };
  },
  async sleep(ms, signal) {
    try {
      await delay(ms, undefined, signal && { signal });
    } catch (error) {
      throw signal?.reason ?? error;
    }
  },
  after(ms, run) {
    const timer = setTimeout(run, ms).unref();
    return () => clearTimeout(timer);
  },
};

/** The machine as this process finds it. */
export const systemEnvironment = (): ProcessEnvironment => ({
  cwd: workingDirectory(),
  homeDir: homedir(),
  platform: process.platform,
  nodeVersion: process.versions.node,
  clock,
  childEnv: process.env,
  parentProcess: nameOfProcess(process.ppid),
  random: { uuid: randomUUID, fraction: Math.random },
  // Hosts and shells show it on a terminal.
  writeError: line => void process.stderr.write(printableText(line)),
});

/** No other directory takes its place, for that would be another project. */
function workingDirectory(): string {
  try {
    return process.cwd();
  } catch (cause) {
    const next = 'Change to a directory that exists, and start Polylogue there.';
    throw configError('The current directory is gone.', { next, cause });
  }
}

/** Where the system keeps it in a file, with the time at which it began: a number is given again. */
function nameOfProcess(pid: number): string {
  const stat = readSystem(`/proc/${pid}/stat`);
  // The program's name, in brackets, may hold anything.
  if (stat !== undefined) return `${pid} ${stat.slice(stat.lastIndexOf(')')).split(' ')[20]}`;
  // The first process of a container has no parent: each of them is a client of its own.
  return pid === 0 ? randomUUID() : String(pid);
}

function readSystem(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return undefined;
  }
}

const thisMachine = ['localhost', '127.0.0.1', '[::1]'];

/** Uses the configured proxy and authorities: Node takes neither from settings in a file, nor a proxy from the environment. */
export async function useProxy(
  { httpsProxy, httpProxy, noProxy = [], extraCaCerts }: AppConfig['values']['app'],
  alreadyTrusted: string | undefined,
): Promise<void> {
  if (httpsProxy !== undefined || httpProxy !== undefined) {
    const { setGlobalProxyFromEnv } = await import('node:http');
    if (typeof setGlobalProxyFromEnv !== 'function')
      throw configError(
        `Node ${process.versions.node} cannot send what a program asks through HTTPS_PROXY or HTTP_PROXY.`,
        { next: 'Update to Node 24.14 or newer, or leave both out of the environment and settings of Polylogue.' },
      );
    setGlobalProxyFromEnv({
      ...(httpsProxy !== undefined && { https_proxy: proxyAddress(httpsProxy, 'HTTPS_PROXY') }),
      ...(httpProxy !== undefined && { http_proxy: proxyAddress(httpProxy, 'HTTP_PROXY') }),
      no_proxy: [...thisMachine, ...noProxy].join(','),
    });
  }
  // What the environment names, Node has read before the first line of any program.
  if (extraCaCerts !== undefined && extraCaCerts !== alreadyTrusted) await trust(extraCaCerts);
}

/** Names without a scheme are common and mean http; other schemes than http and https can't be spoken here. */
function proxyAddress(value: string, name: string): string {
  const url = URL.parse(value.includes('://') ? value : `http://${value}`);
  if (url && (url.protocol === 'http:' || url.protocol === 'https:') && url.hostname !== '') return url.href;
  throw configError(`${name} is not the URL of an HTTP proxy.`, {
    next: `Set ${name} to an address such as http://proxy.example:3128, or unset it.`,
  });
}

async function trust(path: string): Promise<void> {
  const { getCACertificates, setDefaultCACertificates } = await import('node:tls');
  onFile('The certificates of NODE_EXTRA_CA_CERTS cannot be used', 'Name a readable PEM file, or unset it.', () =>
    setDefaultCACertificates([...getCACertificates('default'), readFileSync(path, 'utf8')]),
  );
}
