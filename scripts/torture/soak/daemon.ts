import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type ServerPlace, serverCommand } from '../../../test/support/mcp-session.ts';
import type { Minute } from './judge.ts';

/**
 * Loaded before the built program: on request it collects garbage as V8 does when memory is short, which also drops what V8 only keeps
 * to save work (compiled code, empty pages), and tells what is left. The product has no part in it.
 */
const probe = `data:text/javascript,${encodeURIComponent(`
  const collect = () => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  process.on('message', () => {
    collect();
    setImmediate(() => {
      collect();
      process.send(process.memoryUsage());
    });
  });
  process.channel.unref();
`)}`;

const mb = 1024 * 1024;

/** The built `polylogue serve`, which can be asked for its memory. */
export async function startMeasuredDaemon(place: ServerPlace) {
  const nodeArgs = ['--expose-gc', '--import', probe];
  const args = ['serve', '--port', '0', '--no-token'];
  const { command, args: line, cwd, env } = serverCommand({ ...place, nodeArgs, args });
  const child = spawn(command, line, { cwd, env, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  const ended = once(child, 'exit');
  let log = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr?.on('data', chunk => {
      // The end is enough to say why it ended.
      log = `${log}${chunk}`.slice(-20_000);
      const found = /listening on (http:\S+)/.exec(log)?.[1];
      if (found) resolve(found);
    });
    child.once('exit', code => reject(new Error(`the daemon ended with ${code}: ${log}`)));
  });
  return {
    url,
    log: () => log,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    async measure(): Promise<Pick<Minute, 'heapMb' | 'rssMb' | 'descriptors' | 'databaseMb'>> {
      child.send('measure');
      const [{ heapUsed, external, rss }] = await once(child, 'message', { signal: AbortSignal.timeout(60_000) });
      const files = ['', '-wal'].map(suffix => statSync(`${join(place.home, 'threads.sqlite')}${suffix}`));
      return {
        heapMb: (heapUsed + external) / mb,
        rssMb: rss / mb,
        descriptors: readdirSync(`/proc/${child.pid}/fd`).length,
        databaseMb: files.reduce((sum, { size }) => sum + size, 0) / mb,
      };
    },
    /** The exit code. */
    async stop(): Promise<number | null> {
      child.kill('SIGTERM');
      const [code] = await ended;
      return code;
    },
  };
}
