import { homedir } from 'node:os';
import { join } from 'node:path';
import { type TestCli, testCliPath } from './provide-clis.ts';

const platform = `${process.platform}-${process.arch}`;

/** Hosts that really start the server in `npm run test:hosts`, pinned. */
export const hostClis = {
  claude: {
    program: 'claude',
    npmPackage: '@anthropic-ai/claude-code',
    version: '2.1.330',
    platforms: true,
    binary: `@anthropic-ai/claude-code-${platform}/claude`,
  },
  codex: {
    program: 'codex',
    npmPackage: '@openai/codex',
    version: '0.169.0',
    platforms: true,
    script: '@openai/codex/bin/codex.js',
  },
  gemini: {
    program: 'gemini',
    npmPackage: '@google/gemini-cli',
    version: '0.61.0',
    script: '@google/gemini-cli/bundle/gemini.js',
  },
  opencode: {
    program: 'opencode',
    npmPackage: 'opencode-ai',
    version: '1.18.33',
    platforms: true,
    binary: `opencode-${platform}/bin/opencode`,
  },
  qwen: {
    program: 'qwen',
    npmPackage: '@qwen-code/qwen-code',
    version: '0.24.4',
    script: '@qwen-code/qwen-code/cli-entry.js',
  },
} as const satisfies Record<string, TestCli>;

/** Outside of the repository, so that `npm ci` leaves it and other clones share it: 1.4 GB. */
export const hostCache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'polylogue-hosts');

/** The program of a host and the arguments that come first. */
export function hostCommand(host: TestCli): [program: string, ...args: string[]] {
  const path = testCliPath(host, hostCache);
  return host.script === undefined ? [path] : [process.execPath, path];
}
