import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type ServerPlace, serverCommand } from './mcp-session.ts';
import type { Document } from './product.ts';
import { waitUntil } from './wait-until.ts';

/** `polylogue serve` as a process of its own. */
export interface ServeProcess {
  pid: number;
  /** Where it listens. */
  url: string;
  port: number;
  /** What it wrote to stderr so far. */
  log(): string;
  /** One call by `/api/tools`; rejects where no answer came. */
  post(tool: string, args: object, headers?: Record<string, string>): Promise<{ status: number; document: Document }>;
  signal(name: NodeJS.Signals): void;
  /** Resolves with the exit code once it ended. */
  ended: Promise<number | null>;
  /** Ends it the hard way, as a crash would. */
  kill(): Promise<void>;
}

export async function startServe(place: ServerPlace): Promise<ServeProcess> {
  const { POLYLOGUE_TOKEN, POLYLOGUE_TOKENS_FILE } = place.env ?? {};
  const open = (POLYLOGUE_TOKEN ?? POLYLOGUE_TOKENS_FILE) === undefined ? ['--no-token'] : [];
  const args = ['serve', '--port', '0', ...open, ...(place.args ?? [])];
  const { command, args: all, cwd, env } = serverCommand({ ...place, args });
  const child = spawn(command, all, { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(child, 'exit').then(([code]) => code);
  let log = '';
  child.stderr.on('data', chunk => {
    log += chunk;
  });
  const url = await listening(child, () => log);
  const token = place.env?.POLYLOGUE_TOKEN;
  return {
    pid: child.pid ?? 0,
    url,
    port: Number(new URL(url).port),
    log: () => log,
    post: (tool, args, headers) =>
      postTool(url, tool, args, { ...headers, ...(token && { authorization: `Bearer ${token}` }) }),
    signal: name => void child.kill(name),
    ended,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

export async function postTool(url: string, tool: string, args: object, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/api/tools/${tool}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(args),
  });
  const document: Document = await response.json();
  return { status: response.status, document };
}

async function listening(child: ChildProcess, log: () => string): Promise<string> {
  const url = () => /listening on (\S+)/.exec(log())?.[1];
  const isSo = () => {
    const end = child.exitCode ?? child.signalCode;
    if (end !== null && url() === undefined) throw new Error(`serve ended with ${end}: ${log()}`);
    return url() !== undefined;
  };
  await waitUntil('"serve" listened', isSo, { everyMs: 5, known: log });
  return url() ?? '';
}
