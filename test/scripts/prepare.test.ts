import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

describe('what runs after an install', () => {
  let root = '';
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'prepare-'));
    mkdirSync(join(root, 'scripts'));
    cpSync('scripts/prepare.mjs', join(root, 'scripts/prepare.mjs'));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  function write(path: string, text = ''): void {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }

  function prepare(): { status: number | null; output: string } {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/prepare.mjs'], {
      cwd: root,
      encoding: 'utf8',
    });
    return { status, output: stdout + stderr };
  }

  function installBundler(source: string): void {
    write('src/main.ts');
    write('node_modules/tsdown/package.json', '{ "type": "module", "bin": { "tsdown": "./run.js" } }');
    write('node_modules/tsdown/run.js', source);
  }

  it('builds when the bundler is there', () => {
    installBundler("console.log('built by', process.version.split('.')[0], process.cwd().split('/').at(-1));");
    expect(prepare()).toEqual({
      status: 0,
      output: `built by ${process.version.split('.')[0]} ${root.split('/').at(-1)}\n`,
    });
  });

  it('builds again only where a source, the lock file, the build itself or what was built has changed', () => {
    const program = "import { mkdirSync, writeFileSync } from 'node:fs';\nmkdirSync('dist', { recursive: true });\n";
    installBundler(`${program}writeFileSync('dist/main.js', 'made');\nconsole.log('built');`);
    const builds = () => prepare().output === 'built\n';
    expect([builds(), builds()]).toEqual([true, false]);
    for (const path of ['src/main.ts', 'src/core/more.ts', 'package-lock.json', 'tsdown.config.ts', 'dist/main.js']) {
      write(path, 'changed');
      expect([path, builds()]).toEqual([path, true]);
    }
    rmSync(join(root, 'src/core'), { recursive: true });
    expect(builds()).toBe(true);
    rmSync(join(root, 'dist/.built'));
    expect(builds()).toBe(true);
    write('docs/page.md', 'changed');
    expect(builds()).toBe(false);
  });

  it('fails when the build fails', () => {
    installBundler('process.exit(3);');
    expect(prepare().status).toBe(3);
  });

  it('leaves a built program alone without development dependencies', () => {
    write('src/main.ts');
    write('dist/main.js');
    expect(prepare()).toEqual({ status: 0, output: '' });
  });

  it('says what to do when nothing is built and nothing can build', () => {
    write('src/main.ts');
    expect(prepare()).toEqual({ status: 0, output: expect.stringContaining('npm ci') });
  });

  it('does nothing where there is no source', () => {
    expect(prepare()).toEqual({ status: 0, output: '' });
  });
});
