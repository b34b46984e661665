import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { installTestClis } from './test-clis.ts';
import { type Need, provide } from './test-needs/provide.ts';
import { olderTypescript, otherNodes, testClis } from './test-needs/provide-clis.ts';

/** What the tests use that npm does not bring. */
const needs: Need[] = [
  { program: 'git', aptPackage: 'git', purpose: 'the workspace is tested against a real git' },
  { program: 'bwrap', aptPackage: 'bubblewrap', purpose: 'commands of an agent are run in a real sandbox' },
  { program: 'redis-server', aptPackage: 'redis-server', purpose: 'the Redis store is tested against a real Redis' },
  { program: 'haproxy', probe: ['-v'], aptPackage: 'haproxy', purpose: 'deploy/ puts one before several daemons' },
  { program: 'strace', aptPackage: 'strace', purpose: 'what a store writes is recorded, to replay a power loss' },
  { program: 'script', aptPackage: 'bsdutils', purpose: 'commands are used on a terminal of their own' },
  { program: 'chromium', aptPackage: 'chromium', purpose: 'pages are opened in a real browser' },
];

// Debian keeps servers where only root's shell looks.
const PATH = `${process.env.PATH}:/usr/local/sbin:/usr/sbin:/sbin`;

const missing = provide(needs, {
  runs: (command, args, env) =>
    spawnSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, PATH, ...env } })
      .status === 0,
  mayInstall: existsSync('/etc/debian_version') && process.getuid?.() === 0,
  tell: text => console.log(text),
});
const problems = [...missing, ...installTestClis([...testClis, olderTypescript, ...Object.values(otherNodes)])];
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
