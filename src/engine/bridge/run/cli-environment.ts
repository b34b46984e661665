import type { CliDefinition } from '../../../providers/external-cli/clis/cli.ts';
import type { ProgramEnv } from './find-executable.ts';

/** What any program needs to find itself, its settings, its language and its way out. Nobody's keys are among it. */
const everybodys = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LC_*',
  'TZ',
  'TMPDIR',
  'TEMP',
  'TMP',
  'XDG_*',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'ALL_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'all_proxy',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'SYSTEMROOT',
  'SYSTEMDRIVE',
  'WINDIR',
  'COMSPEC',
  'PATHEXT',
  'USERPROFILE',
  'HOMEDRIVE',
  'HOMEPATH',
  'APPDATA',
  'LOCALAPPDATA',
  'PROGRAMDATA',
  'PROGRAMFILES',
];

/** Set for whatever a CLI starts: its processes are known by the value, and a server of ours among them by the name. */
export const markName = 'POLYLOGUE_CLI_RUN';

/** The environment of one run: an allow-list of ours, and what belongs to this CLI. */
export function cliEnvironment(
  { env: own, set }: Pick<CliDefinition, 'env' | 'set'>,
  around: ProgramEnv,
  mark: string,
): Record<string, string> {
  const allowed = [...everybodys, ...own].map(matcherOf);
  const kept = Object.entries(around).flatMap(([name, value]): [string, string][] =>
    value !== undefined && allowed.some(matches => matches(name)) ? [[name, value]] : [],
  );
  return { ...Object.fromEntries(kept), NO_COLOR: '1', TERM: 'dumb', ...set, [markName]: mark };
}

/** Windows writes the same names in other cases. */
function matcherOf(pattern: string): (name: string) => boolean {
  if (pattern.endsWith('*')) {
    const start = pattern.slice(0, -1);
    return name => name.startsWith(start);
  }
  return name => name === pattern || name.toUpperCase() === pattern;
}
