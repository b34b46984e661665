import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

/** An npm that fails at what FAILS matches and writes the runner's report at `npm test`, and that of the hosts. */
const npm = `#!/usr/bin/env bash
if [[ "$*" =~ $FAILS ]]; then status=1; else status=0; fi
if [[ "$*" = *test:hosts* ]]; then REPORT="$HOSTS"; fi
for argument in "$@"; do
  if [[ "$argument" = --outputFile.json=* ]]; then echo "$REPORT" > "\${argument#*=}"; fi
done
echo "ran npm $*"
exit $status
`;

type Hosts = object | 'no report';

describe('the CI run', () => {
  let root = '';
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'ci-run-'));
    mkdirSync(join(root, 'bin'));
    mkdirSync(join(root, 'node_modules/.bin'), { recursive: true });
    cpSync('.ci/run', join(root, '.ci/run'));
    for (const name of ['scripts', 'src']) symlinkSync(resolve(name), join(root, name));
    symlinkSync(process.execPath, join(root, 'node_modules/.bin/node'));
    writeFileSync(join(root, 'bin/npm'), npm);
    chmodSync(join(root, 'bin/npm'), 0o755);
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  function run(
    fails: string,
    report: object | undefined,
    hosts: Hosts = { numPassedTests: 0, numFailedTests: 0, numPendingTests: 5 },
  ): { status: number | null; last: string | undefined; output: string } {
    const env = {
      ...process.env,
      PATH: `${join(root, 'bin')}:${process.env.PATH}`,
      FAILS: fails,
      REPORT: report ? JSON.stringify(report) : '',
      HOSTS: hosts === 'no report' ? '' : JSON.stringify(hosts),
    };
    const { status, stdout } = spawnSync(join(root, '.ci/run'), { env, encoding: 'utf8', cwd: tmpdir() });
    return { status, last: stdout.trimEnd().split('\n').at(-1), output: stdout };
  }

  it('ends with what passed when all is well, after every step', () => {
    const { status, last, output } = run('^$', { numPassedTests: 7, numFailedTests: 0 });
    expect({ status, last }).toEqual({ status: 0, last: '7 passed, 0 failed' });
    for (const step of ['ci', 'run check', 'run demo', 'test', 'run test:hosts'])
      expect(output).toContain(`ran npm ${step}`);
  });

  it('fails with a failed test', () => {
    expect(run('^test', { numPassedTests: 7, numFailedTests: 2 })).toMatchObject({
      status: 1,
      last: '7 passed, 2 failed',
    });
  });

  it('runs the tests although a check failed, and counts the check', () => {
    const { status, last, output } = run('^run check', { numPassedTests: 7, numFailedTests: 0 });
    expect({ status, last }).toEqual({ status: 1, last: '7 passed, 1 failed' });
    expect(output).toContain('failed: npm run check');
  });

  it('fails when the tests could not be started', () => {
    expect(run('^test', undefined)).toMatchObject({ status: 1, last: '0 passed, 1 failed' });
  });

  it.each<[string, string, Hosts, number, string]>([
    ['passed', '^$', { numPassedTests: 5, numFailedTests: 0 }, 0, '12 passed, 0 failed'],
    ['failed', 'test:hosts', { numPassedTests: 4, numFailedTests: 1 }, 1, '11 passed, 1 failed'],
    ['were all skipped', '^$', { numPassedTests: 0, numFailedTests: 0, numPendingTests: 5 }, 0, '7 passed, 0 failed'],
    ['could not be started', 'test:hosts', 'no report', 1, '7 passed, 1 failed'],
  ])('counts the tests of real hosts that %s', (_, fails, hosts, status, last) => {
    expect(run(fails, { numPassedTests: 7, numFailedTests: 0 }, hosts)).toMatchObject({ status, last });
  });

  it('runs the hosts although a test failed', () => {
    const tests = { numPassedTests: 6, numFailedTests: 1 };
    expect(run('^test', tests, { numPassedTests: 5, numFailedTests: 0 })).toMatchObject({
      status: 1,
      last: '11 passed, 1 failed',
    });
  });

  it('stops when the installation fails', () => {
    const { status, last, output } = run('^ci$', { numPassedTests: 7, numFailedTests: 0 });
    expect({ status, last }).toEqual({ status: 1, last: '0 passed, 1 failed' });
    expect(output).not.toContain('ran npm test');
  });
});
