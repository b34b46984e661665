import type { OptionSpec } from '../../core/option.ts';

/** Other vendors' agents with a command line. */
export const cliOptions = {
  cliClients: {
    env: ['CLI_CLIENTS_CONFIG_PATH', 'POLYLOGUE_CLIS'],
    type: 'path',
    doc: 'A JSON file, or a directory of them, each about one CLI for `clink` and `cli:name`, in the format of docs/clis.md; read after those in `clis` of POLYLOGUE_HOME.',
    group: 'Programs',
    operatorOnly: true,
  },
  cliAllowWrites: {
    env: ['CLI_ALLOW_WRITES'],
    type: 'boolean',
    default: false,
    doc: 'Lets CLIs change files where a call of `clink` says `allow_writes`; otherwise all of them are started so that they only read.',
    group: 'Programs',
    operatorOnly: true,
  },
  cliTimeoutSeconds: {
    env: ['CLI_TIMEOUT_SECONDS'],
    type: 'number',
    default: 1_800,
    min: 1,
    max: 86_400,
    doc: 'Seconds that a CLI may work on one request; then it is ended with all that it started.',
    group: 'Programs',
  },
} as const satisfies Record<string, OptionSpec>;
