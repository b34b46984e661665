import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Daemon } from '../../src/server/daemon/daemon.ts';
import { bareDaemon } from '../support/bare-daemon.ts';
import { fixtureHost } from '../support/conformance/fixture-host.ts';
import { fixtureServer } from '../support/conformance/fixture-server.ts';
import { type DaemonProcess, startDaemon } from '../support/daemon-process.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

const suite = join(
  dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')),
  'dist/index.js',
);

function conformance(url: string, revision: string): Promise<{ code: number; output: string }> {
  return new Promise(resolve => {
    const args = ['server', '--url', `${url}/mcp`, '--requirements', revision];
    execFile(process.execPath, [suite, ...args], { maxBuffer: 64_000_000 }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr });
    });
  });
}

/** What has to pass without any tool or resource of the suite's own, by revision. */
const withoutFixtures: Readonly<Record<string, readonly string[]>> = {
  '2025-11-25': [
    'server-initialize',
    'server-session-lifecycle',
    'ping',
    'completion-complete',
    'tools-list',
    'tools-call-error',
    'server-sse-multiple-streams',
    'resources-list',
    'resources-subscribe',
    'resources-unsubscribe',
    'prompts-list',
    'dns-rebinding-protection',
  ],
  '2026-07-28': [
    'completion-complete',
    'tools-list',
    'tools-call-error',
    'server-sse-multiple-streams',
    'resources-list',
    'sep-2164-resource-not-found',
    'prompts-list',
    'dns-rebinding-protection',
    'caching',
    'input-required-result-missing-input-response',
    'input-required-result-unsupported-methods',
    'input-required-result-ignore-extra-params',
    'input-required-result-validate-input',
    'http-header-validation',
  ],
};
const revisions = Object.keys(withoutFixtures);

describe('the conformance suite, over the doors of the daemon', () => {
  let daemon: Daemon;
  beforeAll(async () => {
    daemon = await bareDaemon(fixtureHost(), { serverOf: (_mcp, era) => fixtureServer(era) });
  });
  afterAll(() => daemon.close());

  it.each(revisions)('passes all that %s requires', async revision => {
    const { code, output } = await conformance(daemon.url, revision);
    expect(output).toMatch(/Total: [1-9]\d+ passed/);
    expect(code, output.match(/^✗.*$/gm)?.join('\n')).toBe(0);
  });
});

describe('the conformance suite, over the shipped program', () => {
  let project: TempProject;
  let daemon: DaemonProcess;
  beforeAll(async () => {
    project = await tempProject();
    daemon = await startDaemon({ root: project.root, home: project.path('home'), args: ['--offline'] });
  });
  afterAll(async () => {
    daemon.signal('SIGTERM');
    await daemon.ended;
    await project.dispose();
  });

  it.each(revisions)('passes what %s requires of any server', async revision => {
    const { output } = await conformance(daemon.url, revision);
    const passed = new Set(Array.from(output.matchAll(/^✓ ([a-z0-9-]+): [1-9]/gm), ([, name = '']) => name));
    expect(withoutFixtures[revision]?.filter(name => !passed.has(name))).toEqual([]);
  });
});
