import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { product } from '../product.ts';
import type { BenchFolder } from './bench-folder.ts';
import { cpuMs, type Launch, residentMb } from './session.ts';

/** `polylogue serve` without a token, and what it takes. */
export function startDaemon(folder: BenchFolder, vendorUrl: string, more: Record<string, string> = {}) {
  const launch = product(folder, vendorUrl, { POLYLOGUE_REQUESTS_PER_MINUTE: '1000000', ...more });
  return startServer({ ...launch, args: ['serve', '--port', '0', '--no-token'] });
}

/** A server that tells on stderr where it listens. */
export async function startServer({ program, args = [], env }: Launch) {
  const child = spawn(process.execPath, [program, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(child, 'exit');
  let log = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr.on('data', chunk => {
      log += chunk;
      const found = /listening on (http:\S+)/.exec(log)?.[1];
      if (found) resolve(found);
    });
    child.once('exit', () => reject(new Error(`The server ended: ${log}`)));
  });
  return {
    url,
    rssMb: () => residentMb(child.pid ?? 0),
    cpuMs: () => cpuMs(child.pid),
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
