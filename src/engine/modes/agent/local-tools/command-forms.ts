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
  /** Other words that there may be; absent: any number. */
  most?: number;
  /** Files that the program looks for from its folder upwards: the first that it finds lies in the project. */
  finds?: readonly string[];
  /** Those at which it ends its search by what they hold: one above the project may be used instead. */
  mayFind?: readonly string[];
}

type FormParts = Omit<CommandForm, 'words'>;

const script: FormParts = {
  options: /^--(?:silent|if-present|workspaces|workspace=[\w-]+)$/,
  rest: { operands: 'path' },
  finds: ['package.json'],
};

const vitest: FormParts = {
  options:
    /^--(?:passWithNoTests|no-file-parallelism|no-coverage|bail=\d+|maxWorkers=\d+|retry=\d+|reporter=(?:default|verbose|dot|json|tap))$/,
  values: { '-t': 'text', '--testNamePattern': 'text' },
  operands: 'path',
};

const jest: FormParts = {
  ...vitest,
  options: /^(?:-i|--(?:runInBand|verbose|silent|bail|ci|no-coverage|passWithNoTests|runTestsByPath|maxWorkers=\d+))$/,
  finds: ['package.json'],
};

const tsc: FormParts = {
  options: /^--(?:noEmit|strict|skipLibCheck)$/,
  values: { '-p': 'tsconfig', '--project': 'tsconfig' },
  operands: 'source',
  needs: /^--noEmit$/,
  finds: ['tsconfig.json'],
};

const pytest: FormParts = {
  options:
    /^(?:-[qvxsl]|-vv|-qq|-r[aA]|--(?:lf|ff|exitfirst|quiet|verbose|last-failed|failed-first|collect-only|no-header|maxfail=\d+|durations=\d+|tb=(?:auto|long|short|line|native|no)))$/,
  values: { '-k': 'text', '-m': 'text' },
  operands: 'test',
  finds: ['pytest.ini', '.pytest.ini'],
  mayFind: ['pyproject.toml', 'tox.ini', 'setup.cfg'],
};

const go: FormParts = {
  options: /^-(?:v|race|short|failfast|cover|json|count=\d+|cpu=\d+|parallel=\d+|timeout=\d+[smh]|run=.+|bench=.+)$/s,
  values: { '-run': 'text', '-bench': 'text', '-count': 'number' },
  operands: 'package',
  finds: ['go.mod', 'go.work'],
};

const cargo: FormParts = {
  options:
    /^(?:-[qv]|--(?:quiet|verbose|release|workspace|all|lib|bins|tests|no-fail-fast|locked|offline|frozen|all-features|no-default-features))$/,
  values: { '-p': 'name', '--package': 'name', '--test': 'name' },
  operands: 'name',
  rest: { options: /^--(?:nocapture|exact|ignored|include-ignored|test-threads=\d+)$/, operands: 'name' },
  finds: ['Cargo.toml'],
};

/** What tests, checks and shows a project in the usual ways. The git tools answer for git: without secret files, starting nothing. */
export const knownForms: readonly CommandForm[] = (
  [
    ['npm test, pnpm test, yarn test', { ...script, operands: 'path' }],
    ['npm run *, pnpm run *, yarn run *', script],
    [
      'node --test',
      {
        options:
          /^--(?:test-only|test-force-exit|no-warnings|enable-source-maps|test-name-pattern=.+|test-concurrency=\d+|test-timeout=\d+|test-reporter=(?:spec|tap|dot|junit))$/s,
        values: { '--test-name-pattern': 'text' },
        operands: 'path',
      },
    ],
    ['npx vitest run, vitest run', vitest],
    ['npx jest, jest', jest],
    ['npx tsc, tsc', tsc],
    ['pytest, python -m pytest, python3 -m pytest', pytest],
    ['python -m unittest, python3 -m unittest', { options: /^-[vqf]$/, values: { '-k': 'text' }, operands: 'module' }],
    [
      'python -m unittest discover, python3 -m unittest discover',
      { options: /^-[vqf]$/, values: { '-s': 'path', '-t': 'path' } },
    ],
    ['go test, go vet', go],
    ['cargo test, cargo check, cargo clippy', cargo],
    [
      'make',
      {
        options: /^(?:-k|-s|-j\d{0,3}|--keep-going|--silent|V=[01]|VERBOSE=[01])$/,
        values: { '-j': 'number' },
        operands: 'task',
        needs: /^[a-z]/,
      },
    ],
    ['git status', { options: /^(?:-s|-b|-sb|--short|--branch|--porcelain)$/ }],
    [
      'git diff',
      {
        options: /^--(?:staged|cached|stat|name-only|name-status)$/,
        operands: 'ref',
        most: 1,
        rest: { operands: 'path' },
      },
    ],
    ['git log', { options: /^(?:-\d{1,2}|--oneline)$/, values: { '-n': 'number' }, operands: 'ref', most: 1 }],
    ['git show', { operands: 'ref', most: 1 }],
  ] satisfies [string, FormParts][]
).flatMap(([commands, parts]: [string, FormParts]) => commands.split(', ').map(words => ({ words, ...parts })));
