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

interface Run {
  code: number;
  output: string;
}

function conformance(...args: string[]): Promise<Run> {
  return new Promise(resolve => {
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

const tasks = [
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

let project: TempProject;
let doors: Daemon;
let withTasks: Daemon;
let shipped: DaemonProcess;
/** The suite mostly waits: all of its runs begin at the same time. By revision, and that with the scenarios of tasks. */
let atDoors: Map<string, Promise<Run>>;
let atShipped: Map<string, Promise<Run>>;
let ofTasks: Promise<Run>;

beforeAll(async () => {
  project = await tempProject();
  [doors, withTasks, shipped] = await Promise.all([
    bareDaemon(fixtureHost(), { serverOf: (_mcp, era) => fixtureServer(era) }),
    bareDaemon(fixtureHost()),
    startDaemon({ root: project.root, home: project.path('home'), args: ['--offline'] }),
  ]);
  const server = ({ url }: { url: string }, ...args: string[]) => conformance('server', '--url', `${url}/mcp`, ...args);
  const required = (of: { url: string }) =>
    new Map(revisions.map(revision => [revision, server(of, '--requirements', revision)]));
  // The suite has the extensions among what it calls pending.
  ofTasks = server(withTasks, '--suite', 'pending');
  [atDoors, atShipped] = [required(doors), required(shipped)];
});

afterAll(async () => {
  shipped.signal('SIGTERM');
  await Promise.all([doors.close(), withTasks.close(), shipped.ended]);
  await project.dispose();
});

describe('the conformance suite', () => {
  it.each(revisions)('passes all that %s requires, over the doors of the daemon', async revision => {
    const { code, output = '' } = { ...(await atDoors.get(revision)) };
    expect(output).toMatch(/Total: [1-9]\d+ passed/);
    expect(code, output.match(/^✗.*$/gm)?.join('\n')).toBe(0);
  });

  it.each(revisions)('passes what %s requires of any server, over the shipped program', async revision => {
    const { output = '' } = { ...(await atShipped.get(revision)) };
    const passed = new Set(Array.from(output.matchAll(/^✓ ([a-z0-9-]+): [1-9]/gm), ([, name = '']) => name));
    expect(withoutFixtures[revision]?.filter(name => !passed.has(name))).toEqual([]);
  });
});

describe('the conformance suite, on the Tasks extension', () => {
  it.each(tasks)('%s passes', async scenario => {
    const { output } = await ofTasks;
    expect(output, output).toMatch(new RegExp(`^✓ ${scenario}: [1-9]\\d* passed, 0 failed$`, 'm'));
  });

  // The suite has only its name so far: it skips its one check without asking the server anything. Once it is written,
  // this fails, and it moves up into the list.
  it(`${unwritten} asks nothing of any server`, async () => {
    const nowhere = ['--url', 'http://127.0.0.1:1/mcp'];
    const { code, output } = await conformance('server', ...nowhere, '--scenario', unwritten);
    expect(code).toBe(0);
    expect(output).toMatch(/SKIPPED.*pending subscriptions\/listen rewrite/);
    expect(output).toContain('Passed: 0/0');
  });

  it('has no scenario but these', async () => {
    const { output } = await conformance('list', '--server');
    expect(output.match(/tasks-[a-z-]+/g)?.toSorted()).toEqual([...tasks, unwritten].toSorted());
  });
});
