import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

describe('the check command', () => {
  let root = '';
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'check-'));
    mkdirSync(join(root, 'src'));
    mkdirSync(join(root, 'node_modules/.bin'), { recursive: true });
    symlinkSync(resolve('scripts'), join(root, 'scripts'));
    tool('tsc', 'echo types are fine');
    tool('biome', 'echo all is tidy');
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  function tool(name: string, script: string): void {
    writeFileSync(join(root, 'node_modules/.bin', name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(root, 'node_modules/.bin', name), 0o755);
  }

  function check(): { status: number | null; lines: string[] } {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/check.ts'], {
      cwd: root,
      encoding: 'utf8',
    });
    return { status, lines: (stdout + stderr).trimEnd().split('\n') };
  }

  it('prints one line a check when all pass', () => {
    const { status, lines } = check();
    expect(status).toBe(0);
    expect(lines.map(line => line.replace(/\d+\.\d/, 'N')).sort()).toEqual(
      ['doc links       ', 'format and lint ', 'generated files ', 'rooms           ', 'types           '].map(
        name => `ok     ${name} N s`,
      ),
    );
  });

  it('prints what the failed ones said, and runs the others all the same', () => {
    tool('tsc', 'echo a type is wrong; exit 2');
    writeFileSync(join(root, 'src/wrong.ts'), 'export {};\n');
    const { status, lines } = check();
    expect(status).toBe(1);
    expect(lines).toContain('a type is wrong');
    expect(lines).not.toContain('all is tidy');
    expect(lines.some(line => line.startsWith('src/wrong.ts:1  [place]'))).toBe(true);
    expect(lines.filter(line => /^(ok|FAILED) /.test(line))).toHaveLength(5);
    expect(lines.at(-1)).toBe('2 of 5 checks failed');
  });

  it('counts a check that was killed as failed', () => {
    tool('biome', 'kill -9 $$');
    expect(check()).toMatchObject({ status: 1, lines: expect.arrayContaining(['1 of 5 checks failed']) });
  });

  it('says what to do when a tool is not installed', () => {
    rmSync(join(root, 'node_modules/.bin/biome'));
    const { status, lines } = check();
    expect(status).toBe(1);
    expect(lines.some(line => line.includes('run "npm ci" first'))).toBe(true);
  });
});
