import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type ServerPlace, serverCommand } from './mcp-session.ts';
import { waitUntil } from './wait-until.ts';

export interface DaemonProcess {
  pid: number;
  url: string;
  /** What it wrote to stderr so far. */
  log(): string;
  signal(name: NodeJS.Signals): void;
  ended: Promise<{ code: number | null; signal: string | null }>;
}

export interface DaemonPlace extends ServerPlace {
  /** Where no token is set, it makes itself one; else everybody of this machine is let in. */
  keepsToken?: boolean;
}

/** The spawned `polylogue serve`; resolves once it listens, rejects when it ends before. */
export async function startDaemon({ args = [], keepsToken = false, ...place }: DaemonPlace): Promise<DaemonProcess> {
  const { POLYLOGUE_TOKEN, POLYLOGUE_TOKENS_FILE } = place.env ?? {};
  const isOpen = !keepsToken && (POLYLOGUE_TOKEN ?? POLYLOGUE_TOKENS_FILE) === undefined;
  const open = isOpen ? ['--no-token'] : [];
  const all = ['serve', '--port', '0', ...open, ...args];
  const { command, args: line, cwd, env } = serverCommand({ ...place, args: all });
  const child = spawn(command, line, { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', chunk => {
    log += chunk;
  });
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }));
  const url = () => /listening on (http:\S+)/.exec(log)?.[1];
  const isSo = () => {
    const end = child.exitCode ?? child.signalCode;
    if (end !== null && url() === undefined) throw new Error(`it ended with ${end}: ${log}`);
    return url() !== undefined;
  };
  await waitUntil('the daemon listened', isSo, { everyMs: 5, known: () => log });
  return { url: url() ?? '', pid: child.pid ?? 0, log: () => log, signal: name => void child.kill(name), ended };
}
