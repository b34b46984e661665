import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../support/redis-server.ts';
import { postTool } from '../support/serve-process.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import { follow, installed, lastOf, readStages, type Stage } from './dockerfile.ts';

const context = fileURLToPath(new URL('../..', import.meta.url));

let folder: TempProject;
let build: Stage;
let install: Stage;
let image: Stage;

beforeAll(async () => {
  folder = await tempProject();
  [build, install, image] = (await readStages(join(context, 'deploy/Dockerfile'))) as [Stage, Stage, Stage];
  const nodeModules = await realpath(join(context, 'node_modules'));
  const instead = async (command: string, at: string) => {
    if (command === 'npm ci') await installed(at, nodeModules);
    return command === 'npm ci';
  };
  for (const stage of [build, install]) await follow(stage, { context, folder: folder.root, instead });
  await follow(image, { context, folder: folder.root, instead: async () => true });
  // What its own commands make as root, and what is mounted.
  for (const path of ['data', 'project', 'tmp']) await mkdir(at(path), { recursive: true });
  await writeFile(at('project/notes.md'), 'It squeaks.\n');
});

afterAll(() => folder.dispose());

describe('the image', () => {
  it('is built of files that the build is given, and of no others', async () => {
    const ignore = await readFile(join(context, 'deploy/Dockerfile.dockerignore'), 'utf8');
    const [all, ...given] = ignore.trim().split('\n');
    expect(all).toBe('*');
    const copied = build.instructions
      .filter(({ word }) => word === 'COPY')
      .flatMap(({ rest }) => rest.split(/\s+/).slice(0, -1));
    expect(given.map(line => line.slice(1)).toSorted()).toEqual(copied.toSorted());
  });

  it('holds the packed package and nothing that only development needs', async () => {
    const modules = join(folder.root, image.name, 'app/node_modules');
    const names = await readdir(modules);
    expect(names.filter(name => !name.startsWith('.'))).toEqual(['polylogue', 'unpdf']);
    expect((await readdir(join(modules, 'polylogue'))).toSorted()).toEqual([
      'LICENSE',
      'README.md',
      'dist',
      'package.json',
    ]);
  });

  it('runs as an ordinary user, whose data is a volume', () => {
    expect(lastOf(image, 'USER')).toEqual(['10001:10001']);
    expect(lastOf(image, 'VOLUME')).toEqual(['/data']);
    expect(lastOf(image, 'ENV')).toContain('POLYLOGUE_HOME=/data');
    expect(lastOf(image, 'STOPSIGNAL')).toEqual(['SIGTERM']);
  });

  it('serves where only its data and its temporary files can be written, and looks healthy', async () => {
    const port = await freePort();
    const [serve, ...flags] = lastOf(image, 'CMD');
    const env = { ...environment(), POLYLOGUE_TOKEN: 'a-token-of-the-image', POLYLOGUE_PORT: String(port) };
    const daemon = spawn(process.execPath, [...confined(), ...program(), serve!, ...flags, '--offline'], {
      cwd: at('project'),
      env,
      stdio: 'ignore',
    });
    const ended = once(daemon, 'exit');
    try {
      const [check, ...args] = lastOf(image, 'HEALTHCHECK').map(word => word.replace(':8765', `:${port}`));
      expect(check).toBe('node');
      const isHealthy = () => spawnSync(process.execPath, args).status === 0;
      for (let tries = 0; !isHealthy() && tries < 100; tries++) await wait(50);
      expect(isHealthy()).toBe(true);
      const { document } = await postTool(
        `http://127.0.0.1:${port}`,
        'chat',
        { prompt: 'Hello?', absolute_file_paths: ['notes.md'] },
        { authorization: 'Bearer a-token-of-the-image' },
      );
      expect(document).toMatchObject({ status: 'continuation_available' });
      expect(await readdir(at('data'))).toContain('threads.sqlite');
    } finally {
      daemon.kill(image.instructions.find(({ word }) => word === 'STOPSIGNAL')?.rest as NodeJS.Signals);
      expect(await ended).toEqual([0, null]);
    }
  });

  it('refuses to start without a token, since other machines may reach it', () => {
    const { status, stderr } = spawnSync(process.execPath, [...program(), ...lastOf(image, 'CMD')], {
      env: environment(),
      encoding: 'utf8',
    });
    expect(status).toBe(2);
    expect(stderr).toContain('POLYLOGUE_TOKEN');
  });
});

/** Node's own guard stands for the container's read-only file system. */
function confined(): string[] {
  const writable = ['data', 'tmp'].map(name => `--allow-fs-write=${at(name)}/`);
  return ['--permission', '--allow-fs-read=*', ...writable, '--allow-worker', '--allow-child-process'];
}

const at = (path: string) => join(folder.root, image.name, path);

function program(): string[] {
  const [node, ...args] = lastOf(image, 'ENTRYPOINT');
  expect(node).toBe('node');
  return args.map(at);
}

function environment(): Record<string, string> {
  const entries = lastOf(image, 'ENV').map(entry => entry.split('='));
  const values = Object.fromEntries(
    entries.map(([name, value = '']) => [name, value.startsWith('/') ? at(value) : value]),
  );
  return { PATH: process.env.PATH ?? '', HOME: at('data'), ...values };
}
