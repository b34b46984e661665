import type { OptionSpec } from '../../core/option.ts';

/** Which files may be read. */
export const fileOptions = {
  roots: {
    env: ['POLYLOGUE_ROOTS', 'PROJECT_ROOT'],
    flag: 'roots',
    type: 'paths',
    doc: 'The directories whose files may be read; unset: the project that the client names, else the git repository around the working directory.',
    group: 'Files',
    operatorOnly: true,
  },
  claudeProjectDir: {
    env: ['CLAUDE_PROJECT_DIR'],
    type: 'path',
    doc: 'The project directory as Claude Code tells it; counts when no roots are set.',
    group: 'Files',
    operatorOnly: true,
  },
  maxFileBytes: {
    env: ['MAX_FILE_BYTES'],
    type: 'number',
    default: 10_485_760,
    min: 1_024,
    max: 1_073_741_824,
    doc: 'The most bytes of one file; a larger one is skipped and the reply says so.',
    group: 'Files',
  },
  maxNamedFiles: {
    env: ['MAX_NAMED_FILES'],
    type: 'number',
    default: 50,
    min: 1,
    max: 10_000,
    doc: 'The most files that one call may name; a directory counts as one.',
    group: 'Files',
  },
  allowSecretFiles: {
    env: ['ALLOW_SECRET_FILES'],
    type: 'boolean',
    default: false,
    doc: 'Reads private keys, `.env` files and credential stores too, which are skipped otherwise.',
    group: 'Files',
    operatorOnly: true,
  },
  maskSecrets: {
    env: ['MASK_SECRETS'],
    type: 'boolean',
    default: true,
    doc: 'Replaces keys, tokens and passwords in texts by placeholders before a vendor or a thread gets them.',
    group: 'Files',
    operatorOnly: true,
  },
} as const satisfies Record<string, OptionSpec>;
