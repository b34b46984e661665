import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { type ServerPlace, serverCommand } from '../support/mcp-session.ts';
import type { Document } from '../support/product.ts';

export interface RawServer {
  pid: number;
  /** Every line of stdout so far, unread. */
  lines: string[];
  /** Writes to its standard input as it is. */
  write(text: string): void;
  /** Sends a request and waits for the message that answers it. */
  request(id: number, method: string, params: object): Promise<Document>;
  /** Ends its standard input. */
  end(): void;
  /** Reads its standard output no more. */
  deafen(): void;
  /** Keeps its standard output open and reads nothing of it. */
  ignore(): void;
  /** What it wrote to its standard error so far. */
  told(): string;
  signal(name: NodeJS.Signals): void;
  /** Resolves when it ended and all of its output was read. */
  ended: Promise<{ code: number | null; signal: string | null; errors: string }>;
}

/** The spawned program without any client in between. */
export function startRawServer(place: ServerPlace): RawServer {
  const { command, args, cwd, env } = serverCommand(place);
  const child = spawn(command, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
  const lines: string[] = [];
  const waiting = new Map<number, (message: Document) => void>();
  const reader = createInterface({ input: child.stdout }).on('line', line => {
    lines.push(line);
    const message = JSON.parse(line);
    waiting.get(message.id)?.(message);
  });
  let errors = '';
  child.stderr.on('data', chunk => {
    errors += chunk;
  });
  // A server that is gone takes nothing more; `ended` says how it went.
  child.stdin.on('error', () => {});
  const write = (text: string) => void child.stdin.write(text);
  return {
    pid: child.pid ?? 0,
    lines,
    write,
    request: (id, method, params) =>
      new Promise(resolve => {
        waiting.set(id, resolve);
        write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
      }),
    end: () => void child.stdin.end(),
    deafen: () => void child.stdout.destroy(),
    ignore: () => void reader.pause(),
    told: () => errors,
    signal: name => void child.kill(name),
    ended: once(child, 'close').then(([code, signal]) => ({ code, signal, errors })),
  };
}

export const initializeParams = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'raw', version: '1.0.0' },
};
