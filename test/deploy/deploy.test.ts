import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { CORE_SCHEMA, load, mergeTag } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serversPath } from '../support/haproxy.ts';
import type { Document } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

const deploy = (name: string) => fileURLToPath(new URL(`../../deploy/${name}`, import.meta.url));

let folder: TempProject;

beforeAll(async () => {
  folder = await tempProject();
});
afterAll(() => folder.dispose());

describe('the compose file', () => {
  let compose: Document;
  let daemons: Document[];

  beforeAll(async () => {
    compose = load(await readFile(deploy('compose.yaml'), 'utf8'), { schema: CORE_SCHEMA.withTags(mergeTag) });
    daemons = ['polylogue-a', 'polylogue-b', 'polylogue-c'].map(name => compose.services[name]);
  });

  it('starts three daemons over one Redis, each with data of its own', () => {
    for (const { environment } of daemons)
      expect(environment).toMatchObject({ POLYLOGUE_STORE: 'redis', REDIS_URL: 'redis://redis:6379' });
    const homes = daemons.map(
      ({ volumes }) => volumes.find((volume: string) => volume.endsWith(':/data')).split(':')[0],
    );
    expect(new Set(homes).size).toBe(3);
    for (const name of homes) expect(compose.volumes).toHaveProperty(name);
    expect(compose.services.redis.command).toContain('--appendonly');
  });

  it('gives them no rights, no file system to write to and no start without a token', () => {
    for (const daemon of daemons) {
      expect(daemon).toMatchObject({ user: '10001:10001', read_only: true, cap_drop: ['ALL'] });
      expect(daemon.security_opt).toEqual(['no-new-privileges:true']);
      expect(daemon.environment.POLYLOGUE_TOKEN).toMatch(/^\$\{POLYLOGUE_TOKEN:\?/);
      expect(Number.parseInt(daemon.stop_grace_period, 10)).toBeGreaterThan(30);
      expect(daemon).not.toHaveProperty('ports');
    }
  });

  it('lets clients reach the proxy alone, and on this machine only unless told otherwise', () => {
    const published = Object.entries<Document>(compose.services).filter(([, service]) => service.ports);
    expect(published.map(([name]) => name)).toEqual(['proxy']);
    expect(published[0]![1].ports).toEqual([`${'$'}{PUBLISH:-127.0.0.1:8765}:8765`]);
    expect(compose.networks.inside).toEqual({ internal: true });
    expect(compose.services.redis.networks).toEqual(['inside']);
    expect(compose.services.proxy.networks).toEqual(['outside']);
  });

  it('names only networks, volumes and services that there are', () => {
    for (const { networks = [], depends_on = {} } of Object.values<Document>(compose.services)) {
      for (const name of networks) expect(compose.networks).toHaveProperty(name);
      const needed = Array.isArray(depends_on) ? depends_on : Object.keys(depends_on);
      for (const name of needed) expect(compose.services).toHaveProperty(name);
    }
  });
});

it('the proxy takes its configuration, which leads to those three daemons', async () => {
  const text = await readFile(deploy('haproxy.cfg'), 'utf8');
  expect([...text.matchAll(/^ {2}server \w+ (\S+)$/gm)].map(([, address]) => address)).toEqual([
    'polylogue-a:8765',
    'polylogue-b:8765',
    'polylogue-c:8765',
  ]);
  await folder.write('haproxy.cfg', text.replaceAll(/polylogue-[abc]:8765/g, '127.0.0.1:8765'));
  const { status, stderr } = spawnSync('haproxy', ['-c', '-dW', '-f', folder.path('haproxy.cfg')], {
    encoding: 'utf8',
    env: { ...process.env, PATH: serversPath },
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  // An editor left open over night asks nothing; its session lives on by its stream, and has to be found again.
  expect(Number(/ expire (\d+)h$/m.exec(text)?.[1])).toBeGreaterThanOrEqual(24);
});

describe('the systemd unit', () => {
  it('is understood by systemd', async () => {
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', deploy('polylogue.service')], {
      encoding: 'utf8',
    });
    // About other units of the machine it may say what it likes.
    expect({ status, stderr: stderr.split('\n').filter(line => line.includes('polylogue')) }).toEqual({
      status: 0,
      stderr: [],
    });
  });

  it('leaves the service little to do harm with', () => {
    const args = ['security', '--offline=true', '--threshold=20', '--no-pager', deploy('polylogue.service')];
    const { status, stdout } = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
    expect(stdout).toContain('Overall exposure level for polylogue.service');
    expect(status).toBe(0);
  });

  it('waits for longer than running calls may take to end', async () => {
    const unit = await readFile(deploy('polylogue.service'), 'utf8');
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])).toBeGreaterThan(30);
    expect(unit).toMatch(/^KillMode=mixed$/m);
    expect(unit).toMatch(/^ExecReload=\/bin\/kill -HUP \$MAINPID$/m);
    // Compiled code is written and run.
    expect(unit).not.toMatch(/^MemoryDenyWriteExecute=(yes|true)/m);
  });
});
