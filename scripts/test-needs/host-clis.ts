import { homedir } from 'node:os';
import { join } from 'node:path';
import { type TestCli, testCliPath } from './provide-clis.ts';

/** A host that really starts the server in `npm run test:hosts`, pinned. */
export interface HostCli extends TestCli {
  /** Its entry in the folder of its package, for Node; absent: `binary` is run as it is. */
  script?: string;
  /** Its program for this machine, where an install script would copy it: those are not run. */
  binary?: string;
}

const platform = `${process.platform}-${process.arch}`;

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
} as const satisfies Record<string, HostCli>;

/** Outside of the repository, so that `npm ci` leaves it and other clones share it: 1.4 GB. */
export const hostCache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'polylogue-hosts');

/** The program of a host and the arguments that come first. */
export function hostCommand(host: HostCli): [program: string, ...args: string[]] {
  const modules = join(testCliPath(host, hostCache), '..', '..');
  if (host.script !== undefined) return [process.execPath, join(modules, host.script)];
  return [join(modules, host.binary ?? host.program)];
}
