import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fixtureHost } from '../support/conformance/fixture-host.ts';
import { type HttpMount, httpMount } from '../support/conformance/http-mount.ts';

const suite = join(
  dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')),
  'dist/index.js',
);

let mount: HttpMount;

beforeAll(async () => {
  mount = await httpMount(fixtureHost());
});
afterAll(() => mount.close());

function run(scenario: string): Promise<{ code: number; output: string }> {
  const args = [suite, 'server', '--url', mount.url, '--scenario', scenario];
  return new Promise(resolve => {
    execFile(process.execPath, args, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr });
    });
  });
}

describe('the conformance suite, on the Tasks extension', () => {
  it.each([
    'tasks-lifecycle',
    'tasks-capability-negotiation',
    'tasks-wire-fields',
    'tasks-request-state-removal',
    'tasks-mrtr-input',
    'tasks-request-headers',
    'tasks-dispatch-and-envelope',
  ])('%s passes', { timeout: 60_000 }, async scenario => {
    const { code, output } = await run(scenario);
    expect(code, output).toBe(0);
    expect(output).toMatch(/Passed: (\d+)\/\1/);
  });
});
