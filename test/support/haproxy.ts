import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from './redis-server.ts';
import { waitUntil } from './wait-until.ts';

export interface Haproxy {
  url: string;
  dispose(): Promise<void>;
}

/** Debian keeps servers where only root's shell looks. */
export const serversPath = `${process.env.PATH}:/usr/local/sbin:/usr/sbin:/sbin`;

const deployed = fileURLToPath(new URL('../../deploy/haproxy.cfg', import.meta.url));

/** A real HAProxy with the configuration of deploy/, before daemons at these ports in the places of its a, b and c. */
export async function startHaproxy(ports: readonly [number, number, number]): Promise<Haproxy> {
  const folder = await mkdtemp(join(tmpdir(), 'polylogue-haproxy-'));
  const text = await readFile(deployed, 'utf8');
  const path = join(folder, 'haproxy.cfg');
  await writeFile(
    path,
    text.replace(/polylogue-([abc]):8765/g, (_all, name) => `127.0.0.1:${ports['abc'.indexOf(name)]}`),
  );
  const port = await freePort();
  const bind = `127.0.0.1:${port}`;
  const child = spawn('haproxy', ['-db', '-f', path], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, PATH: serversPath, BIND: bind },
  });
  let log = '';
  child.stderr.on('data', chunk => {
    log += chunk;
  });
  const gone = once(child, 'exit');
  const url = `http://${bind}`;
  const isSo = () => {
    if (child.exitCode !== null) throw new Error(`haproxy did not start: ${log}`);
    return isUp(url);
  };
  await waitUntil('haproxy passed calls on', isSo, { known: () => log });
  return {
    url,
    async dispose() {
      child.kill('SIGKILL');
      await gone;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function isUp(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/healthz`)).ok;
  } catch {
    // Nobody listens yet.
    return false;
  }
}
