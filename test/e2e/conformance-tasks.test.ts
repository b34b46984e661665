import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Daemon } from '../../src/server/daemon/daemon.ts';
import { bareDaemon } from '../support/bare-daemon.ts';
import { fixtureHost } from '../support/conformance/fixture-host.ts';

const suite = join(
  dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')),
  'dist/index.js',
);

let daemon: Daemon;

beforeAll(async () => {
  daemon = await bareDaemon(fixtureHost());
});
afterAll(() => daemon.close());

function conformance(...args: string[]): Promise<{ code: number; output: string }> {
  return new Promise(resolve => {
    execFile(process.execPath, [suite, ...args], (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr });
    });
  });
}

const run = (scenario: string, url: string) => conformance('server', '--url', url, '--scenario', scenario);

const scenarios = [
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-required-task-error',
  'tasks-mrtr-composition',
];
const unwritten = 'tasks-status-notifications';

describe('the conformance suite, on the Tasks extension', () => {
  it.each(scenarios)('%s passes', async scenario => {
    const { code, output } = await run(scenario, `${daemon.url}/mcp`);
    expect(code, output).toBe(0);
    expect(output).toMatch(/Passed: ([1-9]\d*)\/\1/);
  });

  // The suite has only its name so far: it skips its one check without asking the server anything. Once it is written,
  // this fails, and it moves up into the list.
  it(`${unwritten} asks nothing of any server`, async () => {
    const { code, output } = await run(unwritten, 'http://127.0.0.1:1/mcp');
    expect(code).toBe(0);
    expect(output).toMatch(/SKIPPED.*pending subscriptions\/listen rewrite/);
    expect(output).toContain('Passed: 0/0');
  });

  it('has no scenario but these', async () => {
    const { output } = await conformance('list', '--server');
    expect(output.match(/tasks-[a-z-]+/g)?.toSorted()).toEqual([...scenarios, unwritten].toSorted());
  });
});
