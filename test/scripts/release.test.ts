import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { symlinkSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { unzipSync } from 'fflate';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TempProject, tempProject } from '../support/temp-project.ts';

const repository = fileURLToPath(new URL('../../', import.meta.url));
const execute = promisify(execFile);
const version = '9.8.7';

/** A clean clone of what is committed, with the packages that are installed here. */
let clone: TempProject;
let printed: string;
let before: string;
/** The days on which the release was begun and ended: two at midnight. */
let days: string[];

const run = async (program: string, ...args: string[]) =>
  (await execute(program, args, { cwd: clone.root, env: { ...process.env, ...author } })).stdout;
const author = {
  GIT_AUTHOR_NAME: 'Ann',
  GIT_AUTHOR_EMAIL: 'ann@example.com',
  GIT_COMMITTER_NAME: 'Ann',
  GIT_COMMITTER_EMAIL: 'ann@example.com',
};
const release = (...args: string[]) => run(process.execPath, 'scripts/release.ts', ...args);
const made = (name: string) => readFile(join(clone.root, 'release', name));
const today = () => new Date().toISOString().slice(0, 10);
const state = () =>
  run('git', 'log', '--all', '--oneline').then(
    async log => log + (await run('git', 'status', '--short', '--untracked-files=no')),
  );

beforeAll(async () => {
  clone = await tempProject();
  await execute('git', ['clone', '-q', '--no-tags', repository, clone.root]);
  symlinkSync(join(repository, 'node_modules'), join(clone.root, 'node_modules'));
  const changelog = await readFile(clone.path('CHANGELOG.md'), 'utf8');
  await clone.write('CHANGELOG.md', changelog.replace(/^## /m, '## [Unreleased]\n\n- **feat:** a change.\n\n## '));
  await run('git', 'commit', '-qam', 'feat: a change');
  before = await state();
  const began = today();
  printed = await release(version, '--dry-run');
  days = [began, today()];
  // A whole build, and what npm packs of it.
}, 400_000);
afterAll(() => clone.dispose());

describe('a dry run of a release', () => {
  it('tells the commit and the checksums, and changes nothing', async () => {
    expect(printed).toContain(`chore(release): ${version}`);
    for (const file of ['CHANGELOG.md', 'package-lock.json', 'server.json', 'gemini-extension.json'])
      expect(printed).toContain(file);
    expect(await state()).toBe(before);
    expect(await run('git', 'tag')).toBe('');
  });

  it('makes a tarball, a bundle, a bill of materials and a formula, with their checksums', async () => {
    const names = [
      'flake.nix',
      `polylogue-${version}.mcpb`,
      `polylogue-${version}.tgz`,
      'polylogue.rb',
      'sbom.cdx.json',
    ];
    expect((await readdir(clone.path('release'))).toSorted()).toEqual(['SHA256SUMS', ...names]);
    const sums = new Map<string, string>();
    for (const name of names)
      sums.set(
        name,
        createHash('sha256')
          .update(await made(name))
          .digest('hex'),
      );
    expect((await made('SHA256SUMS')).toString()).toBe([...sums].map(([name, sum]) => `${sum}  ${name}\n`).join(''));
    const formula = (await made('polylogue.rb')).toString();
    expect(formula).toContain(`sha256 "${sums.get(`polylogue-${version}.tgz`)}"`);
    expect(formula).toContain(`polylogue-${version}.tgz"`);
    expect((await made('flake.nix')).toString()).not.toContain('0'.repeat(64));
  });

  it('has a package of the version with a dated changelog, and a bundle that starts', async () => {
    const bundle = unzipSync(await made(`polylogue-${version}.mcpb`));
    const place = await tempProject();
    for (const [path, bytes] of Object.entries(bundle)) if (!path.endsWith('/')) await place.write(path, bytes);
    const [manifest, { version: packed }] = await Promise.all(
      ['manifest.json', 'package.json'].map(async name => JSON.parse(await readFile(place.path(name), 'utf8'))),
    );
    expect([manifest.version, packed]).toEqual([version, version]);
    const changelog = await readFile(place.path('CHANGELOG.md'), 'utf8');
    const [, day] = changelog.split(/^## \[9\.8\.7\] - (.*)\n\n- \*\*feat:\*\* a change\.\n/m);
    expect(days).toContain(day);
    const started = await execute(process.execPath, [place.path(manifest.server.entry_point), '--version']);
    expect(started.stdout).toContain(version);
    await place.dispose();
  });

  it('lists what is bundled, and nothing that only development needs', async () => {
    const { bomFormat, components } = JSON.parse((await made('sbom.cdx.json')).toString());
    const names: string[] = components.map(({ 'bom-ref': ref }: { 'bom-ref': string }) => ref.replace(/@[^@]*$/, ''));
    expect(bomFormat).toBe('CycloneDX');
    expect(names).toEqual(expect.arrayContaining(['@ai-sdk/google', 'zod', 'ws', '@modelcontextprotocol/server']));
    expect(names.filter(name => /vitest|vitepress|biome|playwright/.test(name))).toEqual([]);
  });

  it.each([
    [['9.8', '--dry-run'], /invalid version "9.8"/],
    // A real one, which would be refused for the second reason once the first is gone.
    [[version], /replace OWNER|commit or remove your changes/],
  ])('refuses %s', async (args, reason) => {
    await clone.write('README.md', 'changed');
    const failed = await release(...args).then(
      () => ({}),
      (error: object) => error,
    );
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringMatching(reason) });
    expect(await run('git', 'tag')).toBe('');
  });
});
