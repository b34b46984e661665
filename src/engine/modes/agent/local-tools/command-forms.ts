/** What a word after the known words of a command may be. */
export type WordKind =
  /** A file or folder of the project, or one that could be made there. No pattern, which could match a link. */
  | 'path'
  /** A path, with names of tests after `::`. */
  | 'test'
  /** `.`, or a path that begins with `./`, with `/...` for all below. */
  | 'package'
  /** A source file of the project. */
  | 'source'
  /** A folder, or a file that is named as configurations of the compiler are. */
  | 'tsconfig'
  /** A module of the project. */
  | 'module'
  /** A name that is no path. */
  | 'name'
  /** A script or target whose name says that it tests, checks or builds. */
  | 'task'
  | 'number'
  /** A branch, tag or commit. */
  | 'ref'
  /** Anything that is no option. */
  | 'text';

/** A command that may be run unasked, with all that may follow its first words. What is not listed is not allowed. */
export interface CommandForm {
  words: string;
  /** Whole words, each with its value where it has one behind `=`. */
  options?: RegExp;
  /** Options whose value is the next word. */
  values?: Readonly<Record<string, WordKind>>;
  /** Other words; absent: none. */
  operands?: WordKind;
  /** Words behind `--`; absent: it may not be there. */
  rest?: { options?: RegExp; operands: WordKind };
  /** A word without which it is another command. */
  needs?: RegExp;
  /** Files that the program looks for from its folder upwards: the first that it finds lies in the project. */
  finds?: readonly string[];
}

const script = { options: /^--(?:silent|if-present|workspaces|workspace=[\w-]+)$/, finds: ['package.json'] } as const;

const vitest: Omit<CommandForm, 'words'> = {
  options:
    /^--(?:passWithNoTests|no-file-parallelism|no-coverage|bail=\d+|maxWorkers=\d+|retry=\d+|reporter=(?:default|verbose|dot|json|tap))$/,
  values: { '-t': 'text', '--testNamePattern': 'text' },
  operands: 'path',
};

const jest: Omit<CommandForm, 'words'> = {
  options: /^(?:-i|--(?:runInBand|verbose|silent|bail|ci|no-coverage|passWithNoTests|runTestsByPath|maxWorkers=\d+))$/,
  values: { '-t': 'text', '--testNamePattern': 'text' },
  operands: 'path',
  finds: ['package.json'],
};

const tsc: Omit<CommandForm, 'words'> = {
  options: /^--(?:noEmit|strict|skipLibCheck)$/,
  values: { '-p': 'tsconfig', '--project': 'tsconfig' },
  operands: 'source',
  needs: /^--noEmit$/,
  finds: ['tsconfig.json'],
};

const pytest: Omit<CommandForm, 'words'> = {
  options:
    /^(?:-[qvxsl]|-vv|-qq|-r[aA]|--(?:lf|ff|exitfirst|quiet|verbose|last-failed|failed-first|collect-only|no-header|maxfail=\d+|durations=\d+|tb=(?:auto|long|short|line|native|no)))$/,
  values: { '-k': 'text', '-m': 'text' },
  operands: 'test',
  finds: ['pytest.ini', '.pytest.ini', 'pyproject.toml', 'tox.ini', 'setup.cfg'],
};

const unittest: Omit<CommandForm, 'words'> = {
  options: /^-[vqf]$/,
  values: { '-k': 'text' },
  operands: 'module',
};

const go: Omit<CommandForm, 'words'> = {
  options: /^-(?:v|race|short|failfast|cover|json|count=\d+|cpu=\d+|parallel=\d+|timeout=\d+[smh]|run=.+|bench=.+)$/s,
  values: { '-run': 'text', '-bench': 'text', '-count': 'number' },
  operands: 'package',
  finds: ['go.mod', 'go.work'],
};

const cargo: Omit<CommandForm, 'words'> = {
  options:
    /^(?:-[qv]|--(?:quiet|verbose|release|workspace|all|lib|bins|tests|no-fail-fast|locked|offline|frozen|all-features|no-default-features))$/,
  values: { '-p': 'name', '--package': 'name', '--test': 'name' },
  operands: 'name',
  rest: { options: /^--(?:nocapture|exact|ignored|include-ignored|test-threads=\d+)$/, operands: 'name' },
  finds: ['Cargo.toml'],
};

/** What tests, checks and shows a project in the usual ways. */
export const knownForms: readonly CommandForm[] = [
  ...['npm test', 'pnpm test', 'yarn test'].map(
    words =>
      ({
        ...{ words, ...script, operands: 'path' },
        rest: { operands: 'path' },
      }) as const,
  ),
  ...['npm run *', 'pnpm run *', 'yarn run *'].map(
    words => ({ words, ...script, rest: { operands: 'path' } }) as const,
  ),
  {
    words: 'node --test',
    options:
      /^--(?:test-only|test-force-exit|no-warnings|enable-source-maps|test-name-pattern=.+|test-concurrency=\d+|test-timeout=\d+|test-reporter=(?:spec|tap|dot|junit))$/s,
    values: { '--test-name-pattern': 'text' },
    operands: 'path',
  },
  ...['npx vitest run', 'vitest run'].map(words => ({ words, ...vitest })),
  ...['npx jest', 'jest'].map(words => ({ words, ...jest })),
  ...['npx tsc', 'tsc'].map(words => ({ words, ...tsc })),
  ...['pytest', 'python -m pytest', 'python3 -m pytest'].map(words => ({ words, ...pytest })),
  ...['python -m unittest', 'python3 -m unittest'].map(words => ({ words, ...unittest })),
  ...['python -m unittest discover', 'python3 -m unittest discover'].map(
    words =>
      ({
        words,
        options: /^-[vqf]$/,
        values: { '-s': 'path', '-t': 'path' },
      }) as const,
  ),
  ...['go test', 'go vet'].map(words => ({ words, ...go })),
  ...['cargo test', 'cargo check', 'cargo clippy'].map(words => ({ words, ...cargo })),
  {
    words: 'make',
    options: /^(?:-k|-s|-j\d{0,3}|--keep-going|--silent|V=[01]|VERBOSE=[01])$/,
    values: { '-j': 'number' },
    operands: 'task',
    needs: /^[a-z]/,
  },
  // Answered by the tools that look at repositories: these leave out secret files and start nothing of the repository's.
  { words: 'git status', options: /^(?:-s|-b|-sb|--short|--branch|--porcelain)$/ },
  {
    words: 'git diff',
    options: /^--(?:staged|cached|stat|name-only|name-status)$/,
    operands: 'ref',
    rest: { operands: 'path' },
  },
  { words: 'git log', options: /^(?:-\d{1,2}|--oneline)$/, values: { '-n': 'number' }, operands: 'ref' },
  { words: 'git show', operands: 'ref' },
];
