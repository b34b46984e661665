import { existsSync, lstatSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { isIn, isSkip, upwards } from '../../../../workspace/paths.ts';
import type { Sandbox } from '../../../../workspace/sandbox.ts';

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
  /** Those that it uses from above, whatever it found below. */
  findsAbove?: readonly string[];
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
  values: { '-k': 'expression', '-m': 'expression' },
  operands: 'test',
  finds: ['pytest.ini', '.pytest.ini', 'pytest.toml', '.pytest.toml'],
  mayFind: ['pyproject.toml', 'tox.ini', 'setup.cfg', 'setup.py', 'conftest.py'],
};

const go: FormParts = {
  options: /^-(?:v|race|short|failfast|cover|json|count=\d+|cpu=\d+|parallel=\d+|timeout=\d+[smh]|run=.+|bench=.+)$/s,
  values: { '-run': 'text', '-bench': 'text', '-count': 'number' },
  operands: 'package',
  finds: ['go.mod', 'go.work'],
  findsAbove: ['go.work'],
};

const cargo: FormParts = {
  options:
    /^(?:-[qv]|--(?:quiet|verbose|release|workspace|all|lib|bins|tests|no-fail-fast|locked|offline|frozen|all-features|no-default-features))$/,
  values: { '-p': 'name', '--package': 'name', '--test': 'name' },
  operands: 'name',
  rest: { options: /^--(?:nocapture|exact|ignored|include-ignored|test-threads=\d+)$/, operands: 'name' },
  finds: ['Cargo.toml'],
  findsAbove: ['Cargo.toml', 'rust-toolchain', 'rust-toolchain.toml', '.cargo/config', '.cargo/config.toml'],
};

const ref: FormParts = { operands: 'ref', most: 1 };

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
    ['git diff', { ...ref, options: /^--(?:staged|cached|stat|name-only|name-status)$/, rest: { operands: 'path' } }],
    ['git log', { ...ref, options: /^(?:-\d{1,2}|--oneline)$/, values: { '-n': 'number' } }],
    ['git show', ref],
  ] satisfies [string, FormParts][]
).flatMap(([commands, parts]: [string, FormParts]) => commands.split(', ').map(words => ({ words, ...parts })));

/** A command, and where it is to be run. */
export interface CommandCall {
  argv: readonly string[];
  /** Absolute and real; in `project`. */
  cwd: string;
  /** Absolute and real. */
  project: string;
  sandbox: Pick<Sandbox, 'locate'>;
  /** The operator's own entries: the first words of commands, `*` for any one path or name. Absent: the known forms. */
  entries?: readonly string[] | undefined;
}

/** The form that a command has, or why it has none. */
export type CommandVerdict = { form: string } | { unknown: string };

type Judge = (word: string, call: CommandCall) => boolean | Promise<boolean>;

const like = (pattern: RegExp) => (word: string) => pattern.test(word);

/** What a word after the known words of a command may be. */
const kinds = {
  /** A file or folder of the project, or one that could be made there. No pattern, which could match a link. */
  path: isInProject,
  /** One that is there. */
  there: async (word, call) => (await isInProject(word, call)) && isThere(word, call),
  /** A path, with names of tests after `::`. */
  test: (word, call) => isInProject(word.split('::', 1)[0] ?? '', call),
  /** `.`, or a path that begins with `./`, with `/...` for all below. */
  package: (word, call) => /^\.(?:$|\/)/.test(word) && isInProject(word.replace(/\/\.\.\.$/, ''), call),
  source: (word, call) => /\.[cm]?tsx?$/.test(word) && isInProject(word, call),
  /** A folder, or a file that is named as configurations of the compiler are. */
  tsconfig: async (word, call) =>
    /(?:^|\/)(?:tsconfig(?:\.[\w-]+)*\.json|[^./]+|\.)$/.test(word) &&
    (await isInProject(word, call)) &&
    (word.endsWith('.json') || isThere(join(word, 'tsconfig.json'), call)),
  module: async (word, call) => {
    const [first = ''] = word.split('.', 1);
    if (!/^[A-Za-z_]\w*(?:\.\w+)*$/.test(word)) return false;
    return (await isThere(first, call)) || isThere(`${first}.py`, call);
  },
  name: like(/^\w[\w:.-]*$/),
  /** A script or target whose name says that it tests, checks or builds. */
  task: like(
    /^(?:test|tests|check|checks|lint|build|compile|typecheck|type-check|types|coverage|unit|format|fmt|verify)(?:[:._-][\w:.-]+)?$/,
  ),
  number: like(/^\d{1,9}$/),
  /** A branch, tag or commit. */
  ref: like(/^[A-Za-z0-9][\w./-]*(?:[~^]\d*)*$/),
  /** Anything that is no option. */
  text: like(/^[^-]/),
  /** The same for a program to which `@name` is a file of arguments. */
  expression: like(/^[^-@]/),
} satisfies Record<string, Judge>;

type WordKind = keyof typeof kinds;

/**
 * Tells whether a command has a form that may be run unasked. What is allowed is listed: programs read abbreviations, bundled letters,
 * other cases and files of arguments, so that nobody could list what is not.
 */
export async function judgeCommand(call: CommandCall): Promise<CommandVerdict> {
  const { argv, entries } = call;
  if (argv.some(word => /\p{Cc}/u.test(word))) return { unknown: 'a word has a control character' };
  if (!isIn(call.cwd, call.project)) return { unknown: 'its directory is outside of the project' };
  if (/(?:^|[\\/])(?:node_modules|\.git)(?:[\\/]|$)/.test(relative(call.project, call.cwd)))
    return { unknown: 'its directory holds what others made' };
  const own = entries?.map(formOfEntry);
  const named = own?.filter(({ words }) => hasWords(argv, words)) ?? [];
  if (own && named.length === 0) return { unknown: 'AGENT_COMMANDS does not list it' };
  let why = 'it is none of the known commands';
  for (const form of [...knownForms, ...named]) {
    if (!hasWords(argv, form.words)) continue;
    const problem = await problemOf(form, call);
    if (problem === undefined) return { form: form.words };
    why = problem;
  }
  return { unknown: why };
}

/** What follows an entry of the operator's is judged as it is behind the known command that the entry holds. */
function formOfEntry(entry: string): CommandForm {
  const words = wordsOf(entry);
  const nearest = knownForms.findLast(form => {
    const [program, ...others] = wordsOf(form.words);
    return program === words[0] && others.every(word => words.includes(word));
  });
  if (nearest) return { ...nearest, words: words.join(' ') };
  // The name of a program that has known forms means these: what else it can do is behind its other words.
  const isKnown = words.length === 1 && knownForms.some(form => wordsOf(form.words)[0] === words[0]);
  return { words: words.join(' '), ...(!isKnown && { operands: 'there' }) };
}

const wordsOf = (entry: string): string[] => entry.trim().split(/\s+/);

function hasWords(argv: readonly string[], entry: string): boolean {
  const words = wordsOf(entry);
  return words[0] !== '*' && words.every((word, at) => word === argv[at] || (word === '*' && at < argv.length));
}

async function problemOf(form: CommandForm, call: CommandCall): Promise<string | undefined> {
  const words = wordsOf(form.words);
  const isKnown = knownForms.includes(form);
  for (const [at, word] of words.entries()) {
    const given = call.argv[at] ?? '';
    if (word === '*' && !(await kinds[isKnown ? 'task' : 'path'](given, call))) return `"${given}" is not known here`;
  }
  const given = call.argv.slice(words.length);
  const problem = (await wordProblem(form, given, call)) ?? (await foundElsewhere(form, given, call));
  if (problem !== undefined) return problem;
  if (form.needs && !given.some(word => form.needs?.test(word)))
    return 'a word is missing without which it does something else';
  return words[0] === 'npx' ? notInstalled(call.argv[1] ?? '', call) : undefined;
}

async function wordProblem(form: CommandForm, given: readonly string[], call: CommandCall) {
  const words = given[Symbol.iterator]();
  let part: Pick<CommandForm, 'options' | 'values' | 'operands' | 'rest' | 'most'> = form;
  let count = 0;
  for (const word of words) {
    const value = part.values?.[word];
    if (word === '--' && part.rest) part = part.rest;
    else if (value !== undefined) {
      const next = words.next().value ?? '';
      if (!(await kinds[value](next, call))) return `"${next}" is no value that is known for ${word}`;
    } else if (
      !part.options?.test(word) &&
      (!part.operands || ++count > (part.most ?? Infinity) || !(await kinds[part.operands](word, call)))
    ) {
      return `"${word}" is not known here`;
    }
  }
  return undefined;
}

/** A path that really leads into the project, whatever of it is there yet. */
async function isInProject(word: string, { cwd, project, sandbox }: CommandCall): Promise<boolean> {
  if (word === '' || /^[-@~+]|[*?[\]{}()!$`\\%=;&|<>^"'#]|:\/\/|(?:^|\/)\.\.(?:\/|$)/.test(word)) return false;
  for (let path = resolve(cwd, word); ; path = dirname(path)) {
    const located = await sandbox.locate(path);
    if (!isSkip(located)) return isIn(located.path, project);
    // What is not there lies where its folder really is; a link that leads to nothing lies nowhere. A secret file is no operand of a command that nobody is asked about.
    if (located.code !== 'not_found' || lstatSync(path, { throwIfNoEntry: false }) || dirname(path) === path)
      return false;
  }
}

async function isThere(word: string, call: CommandCall): Promise<boolean> {
  const located = await call.sandbox.locate(resolve(call.cwd, word));
  return !isSkip(located) && isIn(located.path, call.project);
}

/** A program that looks upwards for its configuration may find another project's. */
async function foundElsewhere(form: CommandForm, given: readonly string[], call: CommandCall) {
  const { finds, mayFind = [], findsAbove = [], values } = form;
  const isNamed = given.some(word => values?.[word] === 'tsconfig');
  if (!finds || isNamed) return undefined;
  let isFound = false;
  for (let at = call.cwd; isIn(at, call.project) && !isFound; at = dirname(at)) {
    for (const name of finds) isFound ||= await isThere(join(at, name), call);
    if (dirname(at) === at) return undefined;
  }
  const names = isFound ? findsAbove : [...finds, ...mayFind, ...findsAbove];
  for (const at of upwards(dirname(call.project))) {
    // The user's own settings, where the packages of all projects are kept.
    const isHome = existsSync(join(at, '.cargo/registry'));
    const found = names.find(name => existsSync(join(at, name)) && !(isHome && name.startsWith('.cargo/')));
    if (found !== undefined) return `it would use ${join(at, found)}, outside of the project`;
  }
  return undefined;
}

/** What is not installed in the project would be taken from a folder above it, or fetched. */
async function notInstalled(name: string, call: CommandCall): Promise<string | undefined> {
  for (const at of upwards(call.cwd)) if (await isThere(join(at, 'node_modules/.bin', name), call)) return undefined;
  return `"${name}" is not installed in the project`;
}
