import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { product } from '../product.ts';
import type { BenchFolder } from './bench-folder.ts';
import { cpuMs, residentMb } from './session.ts';

/** `polylogue serve` without a token, and what it takes. */
export async function startDaemon(folder: BenchFolder, vendorUrl: string, more: Record<string, string> = {}) {
  const { program, env } = product(folder, vendorUrl, { POLYLOGUE_REQUESTS_PER_MINUTE: '1000000', ...more });
  const child = spawn(process.execPath, [program, 'serve', '--port', '0', '--no-token'], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'exit');
  let log = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr.on('data', chunk => {
      log += chunk;
      const found = /listening on (http:\S+)/.exec(log)?.[1];
      if (found) resolve(found);
    });
    child.once('exit', () => reject(new Error(`The daemon ended: ${log}`)));
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
