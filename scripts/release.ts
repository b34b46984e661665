import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { noChecksum, ownerOf } from './generate/packages.ts';

// npm run release -- 0.2.0            sets the version, dates the changelog, commits, tags, and writes the files of the release to release/
// npm run release -- 0.2.0 --dry-run  the same in a copy that is removed; only release/ is kept
// npm run release                     only the files, of the version that is there

const { values, positionals } = parseArgs({ options: { 'dry-run': { type: 'boolean' } }, allowPositionals: true });
const root = join(import.meta.dirname, '..');
const out = join(root, 'release');
const scratch = mkdtempSync(join(tmpdir(), 'polylogue-release-'));

function run(folder: string, program: string, ...args: string[]): string {
  return execFileSync(program, args, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1e9,
  });
}

function copyOf(folder: string): string {
  const copy = join(scratch, 'copy');
  run(folder, 'git', 'clone', '-q', folder, copy);
  symlinkSync(join(folder, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** The changelog with the version and the day in the place of its newest heading, which has to be one of what is not released. */
function datedChangelog(text: string, version: string, day: string): string {
  const [before = '', ...sections] = text.split(/^(?=## )/m);
  const [heading = '', ...lines] = (sections[0] ?? '').split('\n');
  if (!/^## \[(?:Unreleased\]|\S+\] - not released yet)$/.test(heading) || lines.join('').trim() === '')
    throw new Error('CHANGELOG.md has to begin with "## [Unreleased]" and what is to be released');
  return [before, `## [${version}] - ${day}\n${lines.join('\n')}`, ...sections.slice(1)].join('');
}

function setVersion(folder: string, version: string): void {
  if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version))
    throw new Error(`invalid version "${version}": expected one like 1.2.3`);
  if (run(folder, 'git', 'status', '--porcelain') !== '') throw new Error('commit or remove your changes first');
  if (run(folder, 'git', 'tag', '--list', `v${version}`) !== '') throw new Error(`the tag v${version} already exists`);
  run(folder, 'npm', 'version', version, '--no-git-tag-version', '--allow-same-version', '--ignore-scripts');
  const changelog = join(folder, 'CHANGELOG.md');
  const day = new Date().toISOString().slice(0, 10);
  writeFileSync(changelog, datedChangelog(readFileSync(changelog, 'utf8'), version, day));
  run(folder, process.execPath, 'scripts/generate.ts');
}

/** What is in the package, of all that npm knows of: the bundled packages by name and version. */
function billOfMaterials(folder: string): string {
  const licenses = readFileSync(join(folder, 'dist/THIRD-PARTY-LICENSES.txt'), 'utf8');
  const bundled = new Set(
    [...licenses.matchAll(/^(\S+) (\d\S*) \([^)]+\)$/gm)].map(([, name, version]) => `${name}@${version}`),
  );
  const all = JSON.parse(
    run(folder, 'npm', 'sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', '--sbom-type', 'application'),
  );
  const keeps = ({ 'bom-ref': ref }: { 'bom-ref': string }): boolean => bundled.has(ref);
  const components = all.components.filter(keeps);
  if (components.length < bundled.size)
    throw new Error(`${bundled.size} packages are bundled, npm knows ${components.length}`);
  const refs = new Set(components.map(({ 'bom-ref': ref }: { 'bom-ref': string }) => ref));
  const own = all.metadata.component['bom-ref'];
  const dependencies = [...refs, own].map(ref => ({ ref, dependsOn: ref === own ? [...refs] : [] }));
  return `${JSON.stringify({ ...all, components, dependencies }, undefined, 2)}\n`;
}

const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');

function writeFiles(folder: string): void {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out);
  run(folder, process.execPath, 'scripts/prepare.mjs');
  run(folder, 'npm', 'pack', '--silent', '--ignore-scripts', '--pack-destination', out);
  const [tarball = ''] = readdirSync(out);
  const bundle = join(scratch, 'bundle');
  mkdirSync(bundle);
  run(folder, 'tar', '-xzf', join(out, tarball), '-C', bundle, '--strip-components=1');
  const { dependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies))
    cpSync(join(folder, 'node_modules', name), join(bundle, 'node_modules', name), { recursive: true });
  copyFileSync(join(folder, 'CHANGELOG.md'), join(bundle, 'CHANGELOG.md'));
  copyFileSync(join(folder, 'packaging/mcpb/manifest.json'), join(bundle, 'manifest.json'));
  const mcpb = join(folder, 'node_modules/@anthropic-ai/mcpb/dist/cli/cli.js');
  run(folder, process.execPath, mcpb, 'pack', bundle, join(out, tarball.replace(/\.tgz$/, '.mcpb')));
  writeFileSync(join(out, 'sbom.cdx.json'), billOfMaterials(folder));
  for (const file of ['packaging/homebrew/polylogue.rb', 'packaging/nix/flake.nix']) {
    const text = readFileSync(join(folder, file), 'utf8');
    writeFileSync(join(out, basename(file)), text.replace(noChecksum, sha256(join(out, tarball))));
  }
  const sums = readdirSync(out).map(name => `${sha256(join(out, name))}  ${name}\n`);
  writeFileSync(join(out, 'SHA256SUMS'), sums.join(''));
}

try {
  const [version] = positionals;
  const isDry = values['dry-run'] === true;
  const folder = isDry ? copyOf(root) : root;
  if (version !== undefined) {
    if (!isDry && ownerOf(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))) === 'OWNER')
      throw new Error('package.json: replace OWNER in mcpName by the owner of the repository');
    setVersion(folder, version);
  }
  writeFiles(folder);
  if (version !== undefined) {
    run(folder, 'git', 'commit', '-qam', `chore(release): ${version}`);
    run(folder, 'git', 'tag', '-a', `v${version}`, '-m', `Polylogue ${version}`);
    console.log(run(folder, 'git', 'show', '--stat', '--oneline', `v${version}^{commit}`).trim());
  }
  console.log(`\n${readFileSync(join(out, 'SHA256SUMS'), 'utf8').trim()}`);
  console.log(
    isDry
      ? '\ndry run: nothing was committed or tagged here; the files are in release/'
      : '\nthe files are in release/',
  );
} catch (error) {
  console.error(`release: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
