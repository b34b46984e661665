/**
 * Options of the usual tools that start another program, take code, or lead elsewhere: what the operator allowed is the command
 * without them. By the program's name; one that is named in an entry of the operator's own is allowed with it.
 */
const leading: readonly { programs: RegExp; options: readonly string[] }[] = [
  {
    programs: /^(?:npm|pnpm|yarn)$/,
    options: [
      ...['--prefix', '-C', '--dir', '--cwd', '--script-shell', '--shell', '--node-options', '--userconfig'],
      ...['--globalconfig', '--location', '-g', '--global', '--use-node-version', '--scripts-prepend-node-path'],
    ],
  },
  {
    programs: /^node$/,
    options: [
      ...['-e', '--eval', '-p', '--print', '-pe', '-r', '--require', '--import', '--loader', '--experimental-loader'],
      ...['--test-reporter', '--test-global-setup', '--env-file', '--env-file-if-exists', '--experimental-config-file'],
      ...['--test-reporter-destination', '--openssl-config', '--snapshot-blob', '--build-snapshot', '--run'],
    ],
  },
  {
    programs: /^npx$/,
    options: [
      ...['-c', '--config', '-r', '--root', '--dir', '--globalSetup', '--outputFile', '--outDir', '--outFile'],
      ...[
        '--declarationDir',
        '--tsBuildInfoFile',
        '--generateTrace',
        '--generateCpuProfile',
        '--noEmit',
        '-b',
        '--build',
      ],
      ...['--api', '--ui', '--execArgv', '--setupFiles', '--environment', '--reporter', '--runner'],
    ],
  },
  {
    programs: /^(?:pytest|python3?)$/,
    options: [
      ...['-p', '-c', '--config-file', '--rootdir', '--confcutdir', '-o', '--override-ini', '--pastebin', '--pdbcls'],
      ...['--basetemp', '--junitxml', '--junit-xml', '--log-file', '--start-directory'],
    ],
  },
  {
    programs: /^go$/,
    options: [
      '-exec',
      '-toolexec',
      '-vettool',
      '-C',
      '-overlay',
      '-modfile',
      '-o',
      '-outputdir',
      '-ldflags',
      '-gcflags',
    ],
  },
  { programs: /^cargo$/, options: ['--config', '--manifest-path', '-C', '-Z', '--target-dir', '--lockfile-path'] },
  {
    programs: /^g?make$/,
    options: ['--eval', '-E', '-f', '--file', '--makefile', '-C', '--directory', '-I', '--include-dir'],
  },
  {
    programs: /^git$/,
    options: [
      '--output',
      '--ext-diff',
      '--textconv',
      '--no-index',
      '--open-files-in-pager',
      '-O',
      '--upload-pack',
      '--exec',
    ],
  },
];

/** One letter and its value in one word: `-C/tmp`. Of these programs, what follows such a letter is never another option. */
const joined = /^(?:npm|pnpm|yarn|pytest|python3?|cargo|g?make|git|npx)$/;

/** The word behind an allowed beginning that makes another command of it; undefined: none does. */
export function leadingAway(program: string, extra: readonly string[]): string | undefined {
  const options = leading.filter(({ programs }) => programs.test(program)).flatMap(each => each.options);
  const isMake = /^g?make$/.test(program);
  const end = isMake ? -1 : extra.indexOf('--');
  const own = end === -1 ? extra : extra.slice(0, end);
  return own.find(word => {
    // Variables of make are expanded by make, and SHELL is what it runs everything with.
    if (isMake && /^[^-].*=/.test(word) && (/[$`]/.test(word) || /^(?:SHELL|\.SHELLFLAGS|MAKEFLAGS)\b/.test(word)))
      return true;
    return options.some(option => isOption(program, word, option));
  });
}

function isOption(program: string, word: string, option: string): boolean {
  // Go takes one dash and two.
  const name = program === 'go' ? word.replace(/^--/, '-') : word;
  if (name === option || name.startsWith(`${option}=`)) return true;
  return joined.test(program) && /^-[A-Za-z]$/.test(option) && name.startsWith(option);
}

/** What may be run where the operator said nothing: the usual ways to test, check and build a project. */
export const usualCommands = [
  'npm test',
  'npm run *',
  'pnpm test',
  'pnpm run *',
  'yarn test',
  'node --test',
  'npx vitest run',
  'npx tsc --noEmit',
  'pytest',
  'python -m pytest',
  'python3 -m pytest',
  'python -m unittest',
  'python3 -m unittest',
  'go test',
  'go vet',
  'cargo test',
  'cargo check',
  'make test',
  'make check',
] as const;

/** Why a command may not be run; undefined: it may. Entries are its first words, `*` for any one word. */
export function commandProblem(argv: readonly string[], allowed: readonly string[]): string | undefined {
  const control = argv.find(word => /[\0\n\r]/.test(word));
  if (control !== undefined) return 'an argument has a line break or a NUL character.';
  const fitting = allowed.flatMap(entry => {
    const words = entry.trim().split(/\s+/);
    if (words[0] === '' || words[0] === '*' || words.length > argv.length) return [];
    const fits = words.every((word, index) => word === argv[index] || (word === '*' && isPlain(argv[index])));
    return fits ? [words.length] : [];
  });
  const away = leadingAway(argv[0] ?? '', argv.slice(Math.max(0, ...fitting)));
  if (fitting.length > 0 && away === undefined) return undefined;
  if (fitting.length > 0) {
    return `"${(away ?? '').slice(0, 100)}" makes another command of it; only an entry of the operator's that names it allows it.`;
  }
  return `"${argv.join(' ').slice(0, 200)}" is none of the commands that the operator allows: ${allowed.join(', ')}.`;
}

/** An option in the place of a name could be anything. */
function isPlain(word: string | undefined): boolean {
  return word !== undefined && !word.startsWith('-');
}
