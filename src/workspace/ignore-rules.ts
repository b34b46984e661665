import { dirname, join, relative, resolve, sep } from 'node:path';
import createIgnore, { type Ignore } from 'ignore';
import type { Skip } from '../core/file.ts';
import { isSkip, skip, upwards } from './paths.ts';
import { readWhole } from './read-file.ts';
import type { Sandbox } from './sandbox.ts';

/** The rules of one file, for what lies below its directory. */
interface Level {
  directory: string;
  rules: Ignore;
  /** How many there are, at most. */
  count: number;
}

/**
 * The ignore rules that hold in one directory, the outermost first. Rules of `.polylogueignore` files win over git's; within
 * each kind the deepest file that says something about a path decides. Entering a directory makes a new chain.
 */
export interface IgnoreChain {
  git: readonly Level[];
  own: readonly Level[];
}

export interface IgnoreContext {
  sandbox: Sandbox;
  /** Gets rule files that could not be used, whole or in part. */
  report: (problem: Skip) => void;
  signal?: AbortSignal;
  /** Rule files as they were read before, by their paths and the folders they hold for: the same bytes give the same rules, not equal ones. */
  before?: Map<string, { bytes: Buffer; level: Level }>;
}

const noRules: IgnoreChain = { git: [], own: [] };
const maxRuleBytes = 128 * 1024;
// The matcher tries every way to spread `**` over a path: with four of them a hostile pattern already takes 40 ms a path.
const maxDoubleStars = 2;
const maxPatternChars = 1_000;

/**
 * The rules from above a directory: from the top of its git work tree or, outside one, from its root. A directory that is itself
 * ignored was named on purpose, so what ignores it does not count below it.
 */
export async function chainAbove(context: IgnoreContext, directory: string): Promise<IgnoreChain> {
  let chain = noRules;
  const base = await ruleBase(context.sandbox, directory);
  const below = relative(base, directory).split(sep).filter(Boolean);
  let at = base;
  for (const name of below) {
    chain = await enterDirectory(context, chain, at);
    at = join(at, name);
    if (isIgnored(chain, at, true)) chain = noRules;
  }
  return chain;
}

/** The rules inside a directory. `names` are its entries; without them every rule file is looked for. */
export async function enterDirectory(
  context: IgnoreContext,
  chain: IgnoreChain,
  directory: string,
  names?: ReadonlySet<string>,
): Promise<IgnoreChain> {
  const has = (name: string) => names === undefined || names.has(name);
  const load = (name: string) => (has(name) ? loadRules(context, join(directory, name), directory) : []);
  // a repository within a repository starts anew, as it does for git
  const exclude = has('.git') ? await gitExclude(context, directory) : undefined;
  const git = exclude ?? chain.git.map(level => reopened(level, directory));
  const own = chain.own.map(level => reopened(level, directory));
  return { git: [...git, ...(await load('.gitignore'))], own: [...own, ...(await load('.polylogueignore'))] };
}

/** Whether an entry of the directory that the chain was made for is ignored. */
export const isIgnored = (chain: IgnoreChain, path: string, directory: boolean): boolean =>
  decide(chain.own, path, directory) ?? decide(chain.git, path, directory) ?? false;

export function isSameChain(a: IgnoreChain, b: IgnoreChain): boolean {
  const isSame = (kind: 'git' | 'own') =>
    a[kind].length === b[kind].length && a[kind].every((level, at) => level === b[kind][at]);
  return isSame('git') && isSame('own');
}

/** About how many rules a path is held against. */
export const chainWeight = ({ git, own }: IgnoreChain): number =>
  [...git, ...own].reduce((sum, level) => sum + level.count, 0);

function decide(levels: readonly Level[], path: string, directory: boolean): boolean | undefined {
  for (const level of levels.toReversed()) {
    const { ignored, unignored } = level.rules.test(pathBelow(level, path, directory));
    if (ignored) return true;
    if (unignored) return false;
  }
  return undefined;
}

function pathBelow(level: Level, path: string, directory: boolean): string {
  const start = level.directory.endsWith(sep) ? level.directory.length : level.directory.length + 1;
  const way = `${path.slice(start).replaceAll(sep, '/')}${directory ? '/' : ''}`;
  // git matches bytes, so `?` is half an umlaut: each byte becomes one character, in patterns and paths alike.
  return isAscii.test(way) ? way : Buffer.from(way, 'utf8').toString('latin1');
}

const isAscii = /^[\0-\x7f]*$/;

/**
 * The matcher holds everything below an ignored directory for ignored. Where a deeper file has taken the directory back, the
 * outer rules must look at what is in it afresh.
 */
function reopened(level: Level, directory: string): Level {
  if (level.directory === directory || !level.rules.test(pathBelow(level, directory, true)).ignored) return level;
  const literal = pathBelow(level, directory, true).replace(/[\\*?[\] ]/g, '\\$&');
  const rules = createIgnore({ ignorecase: false })
    .add(level.rules)
    .add({ pattern: `!/${literal}` });
  return { ...level, rules };
}

async function ruleBase(sandbox: Sandbox, directory: string): Promise<string> {
  for (const at of upwards(directory)) {
    if (!isSkip(await sandbox.locate(join(at, '.git'))) || sandbox.roots.includes(at)) return at;
  }
  return directory;
}

/** None when there is no such file (git does not follow a rule file that is a link either). */
async function loadRules(context: IgnoreContext, path: string, directory: string): Promise<Level[]> {
  const bytes = await readSmall(context, path);
  if (bytes === undefined) return [];
  // Work trees of one repository share a file of rules, each for its own folder.
  const key = `${path}\0${directory}`;
  const before = context.before?.get(key);
  if (before?.bytes.equals(bytes)) return [before.level];
  const start = bytes.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf])) ? 3 : 0;
  const lines = bytes.toString('latin1', start).split('\n');
  const usable = lines.filter(line => line.length <= maxPatternChars && line.split('**').length - 1 <= maxDoubleStars);
  if (usable.length < lines.length) {
    const left = lines.length - usable.length;
    const reason = `${left} of its patterns are too long or have more than two ** and were left out.`;
    context.report(skip(path, 'unreadable', reason));
  }
  const level = { directory, rules: createIgnore({ ignorecase: false }).add(usable.join('\n')), count: usable.length };
  context.before?.set(key, { bytes, level });
  return [level];
}

async function readSmall(context: IgnoreContext, path: string): Promise<Buffer | undefined> {
  const located = await context.sandbox.locate(path);
  if (isSkip(located) || located.kind !== 'file' || located.path !== path) return undefined;
  const read = await readWhole(context.sandbox, path, { maxBytes: maxRuleBytes, signal: context.signal });
  if (!isSkip(read)) return read.bytes;
  context.report(skip(path, read.code, `Its ignore rules were not used. ${read.reason}`));
  return undefined;
}

/** `info/exclude` of the repository at `directory`; no levels when it has none, undefined when there is no repository. */
async function gitExclude(context: IgnoreContext, directory: string): Promise<Level[] | undefined> {
  const found = await context.sandbox.locate(join(directory, '.git'));
  if (isSkip(found)) return undefined;
  const folder = found.kind === 'directory' ? found.path : await linkedGitFolder(context, found.path);
  return folder === undefined ? [] : loadRules(context, join(folder, 'info', 'exclude'), directory);
}

/** A work tree of its own has a `.git` file that names its folder; what all work trees share is named in there. */
async function linkedGitFolder(context: IgnoreContext, file: string): Promise<string | undefined> {
  const link = /^gitdir: (.+)$/m.exec((await readSmall(context, file))?.toString() ?? '')?.[1];
  if (link === undefined) return undefined;
  const folder = resolve(dirname(file), link.trim());
  const common = (await readSmall(context, join(folder, 'commondir')))?.toString().trim();
  return common ? resolve(folder, common) : folder;
}
