import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

describe('the check command', () => {
  let root = '';
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'check-'));
    mkdirSync(join(root, 'scripts'));
    mkdirSync(join(root, 'node_modules/.bin'), { recursive: true });
    symlinkSync(resolve('scripts/check.ts'), join(root, 'scripts/check.ts'));
    for (const name of ['generate', 'structure', 'trace-call', 'doc-links', 'words']) script(name, '');
    tool('tsc', 'echo types are fine');
    tool('biome', 'echo all is tidy');
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  function tool(name: string, script: string): void {
    writeFileSync(join(root, 'node_modules/.bin', name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(root, 'node_modules/.bin', name), 0o755);
  }

  function script(name: string, text: string): void {
    writeFileSync(join(root, 'scripts', `${name}.ts`), text);
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
      ['call trace', 'doc links', 'format and lint', 'generated files', 'structure', 'types', 'words'].map(
        name => `ok     ${name.padEnd(16)} N s`,
      ),
    );
  });

  it('prints what the failed ones said, and runs the others all the same', () => {
    tool('tsc', 'echo a type is wrong; exit 2');
    script('structure', "console.error('a file is in the wrong place');\nprocess.exitCode = 1;\n");
    const { status, lines } = check();
    expect(status).toBe(1);
    expect(lines).toContain('a type is wrong');
    expect(lines).not.toContain('all is tidy');
    expect(lines).toContain('a file is in the wrong place');
    expect(lines.filter(line => /^(ok|FAILED) /.test(line))).toHaveLength(7);
    expect(lines.at(-1)).toBe('2 of 7 checks failed');
  });

  it('counts a check that was killed as failed', () => {
    tool('biome', 'kill -9 $$');
    expect(check()).toMatchObject({ status: 1, lines: expect.arrayContaining(['1 of 7 checks failed']) });
  });

  it('says what to do when a tool is not installed', () => {
    rmSync(join(root, 'node_modules/.bin/biome'));
    const { status, lines } = check();
    expect(status).toBe(1);
    expect(lines.some(line => line.includes('run "npm ci" first'))).toBe(true);
  });
});
