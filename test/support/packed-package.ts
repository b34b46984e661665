import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type TempProject, tempProject } from './temp-project.ts';

const run = promisify(execFile);
const repository = fileURLToPath(new URL('../../', import.meta.url));

export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** A folder of its own in which the tarball of this package is installed, as who uses it would. */
export interface PackedPackage extends TempProject {
  /** What npm wrote while it installed. */
  installed: string;
  /** Runs a program of the folder; in its environment are only these variables, and those that no program does without. */
  run(file: string, env?: Record<string, string>, node?: string): Promise<Ended>;
  /** Writes a program and runs it; answers what it printed as JSON. */
  answer<Answer>(code: string, env?: Record<string, string>): Promise<Answer>;
}

let tarballs: Promise<string[]> | undefined;

/** Files to install: this package, and what it depends on, as npm has nothing offline. */
export function packedTarballs(): Promise<string[]> {
  tarballs ??= pack();
  return tarballs;
}

/** Packed once for all packages of a test file. */
async function pack(): Promise<string[]> {
  const place = await tempProject();
  const { dependencies } = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8'));
  const sources = ['.', ...Object.keys(dependencies).map(name => `./node_modules/${name}`)];
  const options = ['--ignore-scripts', '--pack-destination', place.root, '--cache', place.path('.npm')];
  await run('npm', ['pack', ...options, ...sources], { cwd: repository });
  process.once('exit', () => rmSync(place.root, { recursive: true, force: true }));
  return (await readdir(place.root)).filter(file => file.endsWith('.tgz')).map(file => place.path(file));
}

export async function packedPackage(files: Record<string, string> = {}): Promise<PackedPackage> {
  const place = await tempProject({ 'package.json': '{ "private": true, "type": "module" }', ...files });
  const npm = ['--offline', '--no-audit', '--no-fund', '--cache', place.path('.npm')];
  const { stdout, stderr } = await run('npm', ['install', ...npm, ...(await packedTarballs())], { cwd: place.root });
  await mkdir(place.path('node_modules/@types'), { recursive: true });
  for (const name of ['@types/node', 'undici-types'])
    await symlink(join(repository, 'node_modules', name), place.path(`node_modules/${name}`));
  const start = async (file: string, env: Record<string, string> = {}, node: string = process.execPath) => {
    const around = {
      PATH: process.env.PATH ?? '',
      HOME: place.path('.user'),
      POLYLOGUE_HOME: await mkdtemp(place.path('.home-')),
    };
    const options = { cwd: place.root, env: { ...around, ...env }, maxBuffer: 64 * 1_024 * 1_024 };
    const ended = await run(node, [place.path(file)], options).catch((failed: Ended) => failed);
    return { code: 'code' in ended ? ended.code : 0, stdout: ended.stdout, stderr: ended.stderr };
  };
  let programs = 0;
  return {
    ...place,
    installed: stdout + stderr,
    run: start,
    async answer(code, env) {
      const name = `program-${++programs}.mjs`;
      await place.write(name, `import { createPolylogue } from 'polylogue';\n${code}`);
      const { code: status, stdout: printed, stderr: told } = await start(name, env);
      if (status !== 0) throw new Error(`${name} ended with ${status}:\n${told}`);
      return JSON.parse(printed);
    },
  };
}
