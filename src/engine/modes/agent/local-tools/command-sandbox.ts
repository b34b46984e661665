import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { configError, errorCode } from '../../../../core/errors.ts';
import { isIn, realOf } from '../../../../workspace/paths.ts';
import { type ChildEnv, findProgram, programFolders } from '../../../../workspace/programs.ts';
import { type ProtectedPlace, protectedPlaces } from '../../../../workspace/protected-files.ts';

export interface CommandSandboxOptions {
  /** `require`: without a sandbox nothing is run. */
  mode: 'auto' | 'require' | 'off';
  /** Whether commands reach the network. */
  network: boolean;
  childEnv: ChildEnv;
  platform: string;
  /** Projects that are served; absolute. */
  projects: readonly string[];
  /** The user's home folder; absolute. */
  home: string;
  /** This program's own data folder, which no command sees; absolute. */
  own: string;
  /** Folder for files that commands may not make, and for what toolchains keep between commands; absolute. */
  kept: string;
}

/** A program to be run in the project. */
export interface SandboxedCommand {
  /** The program's absolute path first. */
  argv: readonly [string, ...string[]];
  /** Absolute and real; `cwd` lies in it. */
  project: string;
  cwd: string;
  env: Readonly<Record<string, string>>;
  /** Somebody approved these very words. */
  isAsked: boolean;
}

/** Runs commands where they change the project and nothing else. */
export type CommandSandbox = ReturnType<typeof createCommandSandbox>;

/** Folders of a home folder that hold programs and packages of the usual toolchains, and no keys. */
const toolchains = [
  ...['.nvm', '.volta', '.fnm', '.asdf', '.pyenv', '.rbenv', '.goenv', '.jenv', '.sdkman', '.rustup', '.jdks'],
  ...['.cargo/bin', '.cargo/registry', '.cargo/git', '.bun/bin', '.bun/install', '.deno/bin', 'go/bin', 'go/pkg'],
  ...['.local/bin', '.local/lib', '.local/share/mise', '.local/share/pnpm', '.local/share/uv', '.local/share/fnm'],
  ...['.m2/repository', '.npm/_cacache'],
] as const;

/** Where users and services keep what no test needs: files, sockets, temporary files. */
const hiddenFolders = ['/home', '/root', '/Users', '/tmp', '/var/tmp', '/run', '/mnt', '/media', '/srv'] as const;

/** Where build tools and test runners write between installed packages. */
const scratchFolders = ['.cache', '.vite', '.vite-temp', '.vitest', '.tmp'] as const;

const run = promisify(execFile);

const probeMs = 5_000;

export function createCommandSandbox(options: CommandSandboxOptions) {
  const { mode, platform } = options;
  /** By project: one that stands in a project is not for it. */
  const probed = new Map<string, ReturnType<typeof probe>>();

  async function available(project: string): ReturnType<typeof probe> {
    if (mode === 'off') return { why: 'AGENT_SANDBOX is off' };
    const probing = probed.get(project) ?? probe(options, project);
    probed.set(project, probing);
    const found = await probing;
    const holds = isIn(await realOf(options.home), project);
    const result = holds ? { why: `the project ${project} holds the home directory` } : found;
    if ('why' in result && mode === 'require') throw unavailable(result.why);
    return result;
  }

  return {
    /** What commands of a project run in: `bubblewrap`, `sandbox-exec`, or `none: ` and why. Throws where one is required. */
    async describe(project: string): Promise<string> {
      const found = await available(await realOf(project));
      if ('why' in found) return `none: ${found.why}`;
      return platform === 'darwin' ? 'sandbox-exec' : 'bubblewrap';
    },
    /** `end` is called when it has ended: removes what it may not leave behind, and answers a sentence for each of these. */
    async prepare(command: SandboxedCommand) {
      const { argv, env, project } = command;
      const found = await available(project);
      if ('why' in found) return { argv, env, end: async (): Promise<string[]> => [] };
      const watched = await protectedPlaces(project, command.isAsked);
      const cache = join(options.kept, 'caches', project.replace(/[^\w.-]+/g, '_').slice(-150));
      await mkdir(cache, { recursive: true, mode: 0o700 });
      const isMac = platform === 'darwin';
      const temporary = isMac ? await realOf(await mkdtemp(join(tmpdir(), 'polylogue-command-'))) : '/tmp';
      const isOfGit = makesRepository(command);
      const isIts = ({ path }: ProtectedPlace) => isOfGit && /(?:^|\/)\.git(?:\/|$|modules$)/.test(path);
      const fixed = watched.filter(place => !isIts(place));
      const places = { ...(await placesOf(options, command, fixed)), cache, temporary };
      const args = isMac ? ['-p', macProfile(options, command, places)] : bubblewrapArgs(options, command, places);
      const wrapped: SandboxedCommand['argv'] = [found.file, ...args, ...(isMac ? [] : ['--']), ...argv];
      return {
        argv: wrapped,
        env: { ...env, TMPDIR: temporary, TEMP: temporary, TMP: temporary },
        async end() {
          if (isMac) await rm(temporary, { recursive: true, force: true });
          return isOfGit ? [] : removeMade(command, watched, options.kept);
        },
      };
    },
  };
}

const unavailable = (why: string): Error =>
  configError(`Cannot run an agent: AGENT_SANDBOX is "require", and no sandbox is available: ${why}.`, {
    next: 'Install bubblewrap (Linux) and see "polylogue doctor", or set AGENT_SANDBOX to "auto".',
  });

/** Whether the system lets this user make one: user namespaces may be switched off. */
async function probe(
  { platform, childEnv, projects }: CommandSandboxOptions,
  project: string,
): Promise<{ file: string } | { why: string }> {
  if (platform !== 'linux' && platform !== 'darwin') return { why: `there is none for ${platform}` };
  const name = platform === 'linux' ? 'bwrap' : 'sandbox-exec';
  const file = await findProgram(name, { env: childEnv, projects: [...projects, project], platform });
  if (file === undefined) return { why: `${name} is not installed` };
  const args =
    platform === 'linux'
      ? [...isolation, '--unshare-net', '--ro-bind', '/', '/', '--']
      : ['-p', '(version 1)(allow default)'];
  try {
    await run(file, [...args, '/bin/sh', '-c', 'exit 0'], { timeout: probeMs, env: {} });
    return { file };
  } catch (error) {
    const said = error instanceof Error ? error.message.trim().split('\n').at(-1) : '';
    return { why: `${file} does not work here (${said})` };
  }
}

/** `cache` lasts from command to command. */
type Places = Awaited<ReturnType<typeof placesOf>> & { cache: string; temporary: string };

/** Folders that a command sees otherwise than the rest of the system, which it only reads. */
async function placesOf(
  { home, own, childEnv }: CommandSandboxOptions,
  { project, argv, env }: SandboxedCommand,
  places: readonly ProtectedPlace[],
) {
  const known = await Promise.all([...hiddenFolders, home].map(realOf));
  const hidden = [...new Set(known)].filter(folder => existsSync(folder) && folder !== '/');
  const isHidden = (path: string) => hidden.some(folder => isIn(path, folder));
  const folders = await programFolders({ env: { ...childEnv, ...env }, projects: [] });
  const used = await Promise.all([...folders, process.execPath, argv[0]].map(realOf));
  const visible = [...toolchains.map(name => join(home, name)), ...folders, ...used.map(path => prefixOf(path, home))];
  const real = await Promise.all(places.map(({ path }) => realOf(join(project, path))));
  const fixed = real.filter(path => isIn(path, project) && existsSync(path));
  const links = places.flatMap(({ path, link }) => (link === undefined ? [] : [join(project, path)]));
  const around = [...new Set([...fixed, ...links].flatMap(path => foldersBetween(project, path)))];
  const packages = fixed.filter(path => basename(path) === 'node_modules');
  const scratch = packages.flatMap(folder => scratchFolders.map(name => join(folder, name)));
  for (const folder of scratch) await mkdir(folder, { recursive: true });
  return {
    /** Empty for it. */
    hidden: [...hidden, await realOf(own)].filter(folder => existsSync(folder)),
    /** In hidden folders, and read all the same. */
    visible: [...new Set(visible)].filter(path => isHidden(path) && !hidden.includes(path) && existsSync(path)),
    /** In the project, and only read. */
    fixed,
    /** In the project, with protected files in them: not renamed, so that nothing protected is moved away with its folder. */
    around,
    /** In these, and empty: what programs write between their packages and need no more afterwards. */
    scratch,
  };
}

/** What a program is installed with: `node_modules`, or the folder around its `bin`. A home folder and what is right in it are more. */
function prefixOf(path: string, home: string): string {
  const packages = path.lastIndexOf('/node_modules/');
  if (packages !== -1) return path.slice(0, packages + '/node_modules'.length);
  const folder = basename(path) === 'bin' ? path : dirname(path);
  const prefix = dirname(folder);
  return basename(folder) === 'bin' && !isIn(home, dirname(prefix)) ? prefix : path;
}

const isolation = [
  ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--die-with-parent', '--new-session'],
  ...['--cap-drop', 'ALL'],
] as const;

function bubblewrapArgs({ network, home }: CommandSandboxOptions, { project, cwd }: SandboxedCommand, places: Places) {
  const { hidden, visible, fixed, around, scratch, cache } = places;
  return [
    ...isolation,
    ...(network ? [] : ['--unshare-net']),
    ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
    ...hidden.filter(folder => !isIn(folder, project)).flatMap(folder => ['--tmpfs', folder]),
    ...['--dir', home],
    ...visible.flatMap(path => ['--ro-bind-try', path, path]),
    ...(network ? ['--ro-bind-try', '/run/systemd/resolve', '/run/systemd/resolve'] : []),
    ...['--bind', cache, join(home, '.cache')],
    ...['--bind', project, project],
    // What something is mounted on can't be renamed.
    ...around.flatMap(path => ['--bind', path, path]),
    ...fixed.flatMap(path => ['--ro-bind', path, path]),
    ...scratch.flatMap(path => ['--tmpfs', path]),
    ...hidden.filter(folder => isIn(folder, project)).flatMap(folder => ['--tmpfs', folder]),
    ...['--chdir', cwd],
  ];
}

function foldersBetween(project: string, path: string): string[] {
  const folder = dirname(path);
  return folder === project || !isIn(folder, project) ? [] : [...foldersBetween(project, folder), folder];
}

function macProfile({ network }: CommandSandboxOptions, { project }: SandboxedCommand, places: Places): string {
  const { hidden, visible, fixed, around, scratch, cache, temporary } = places;
  const folders = (paths: readonly string[]) => paths.map(path => `(subpath ${JSON.stringify(path)})`).join(' ');
  const outer = hidden.filter(folder => !isIn(folder, project));
  const inner = hidden.filter(folder => isIn(folder, project));
  const without = (what: string, paths: readonly string[]) =>
    paths.length > 0 ? [`(deny ${what} ${folders(paths)})`] : [];
  return [
    '(version 1)(allow default)',
    '(deny appleevent-send)(deny signal)(allow signal (target same-sandbox))',
    '(deny mach-lookup (global-name "com.apple.SecurityServer") (global-name "com.apple.securityd.xpc") (global-name "com.apple.coreservices.launchservicesd") (global-name "com.apple.pasteboard.1"))',
    ...(network ? [] : ['(deny network*)']),
    '(deny file-write*)(allow file-write* (literal "/dev/null") (literal "/dev/tty"))',
    ...without('file-read-data', outer),
    `(allow file-read* ${folders([...visible, project, cache, temporary])})`,
    `(allow file-write* ${folders([project, cache, temporary])})`,
    ...without('file-write*', fixed),
    ...(scratch.length > 0 ? [`(allow file-write* ${folders(scratch)})`] : []),
    ...around.map(path => `(deny file-write-unlink (literal ${JSON.stringify(path)}))`),
    ...without('file-read* file-write*', inner),
  ].join('\n');
}

/** Git itself, approved as it is shown, which makes and sets up repositories: with words that start nothing else. */
function makesRepository({ argv: [file, what = '', ...others], isAsked, project }: SandboxedCommand): boolean {
  const plain = /^(?:[^-].*|-q|--quiet|--bare|-b|--(?:initial-branch|branch|depth)=[\w./-]+|--single-branch)$/;
  const isGit = basename(file) === 'git' && !isIn(file, project);
  return isAsked && isGit && /^(?:init|clone)$/.test(what) && others.every(word => plain.test(word));
}

/** Takes away protected files that were not there before, and puts back links: nothing can be mounted on either. */
async function removeMade({ project, isAsked }: SandboxedCommand, before: readonly ProtectedPlace[], kept: string) {
  const told: string[] = [];
  const known = new Map(before.map(place => [place.path, place]));
  for (const { path, link } of await protectedPlaces(project, isAsked)) {
    const place = join(project, path);
    const old = known.get(path);
    // Builds make manifests; those that were there are not changed.
    if (old ? old.link === link : basename(path) === 'package.json') continue;
    // An empty folder, such as git makes with a new repository, starts nothing.
    const entries = link === undefined ? await readdir(place).catch(() => [path]) : [path];
    if (!old && entries.every(name => scratchFolders.some(each => each === name))) continue;
    const why = 'a command may not make files that make other programs run things.';
    try {
      const target = await putAway(place, kept);
      const where = target === undefined ? 'It could not be kept.' : `It was moved to ${target}.`;
      told.push(`${path} was removed: ${why} ${where}`);
    } catch (error) {
      told.push(`${path} has to be removed: ${why} That failed: ${errorCode(error)}.`);
    }
  }
  for (const { path, link } of before) {
    const place = join(project, path);
    // Its folder may be a link by now, to where nothing is to be made.
    if (link !== undefined && (await realOf(dirname(place))) === dirname(place))
      await symlink(link, place).catch(() => undefined);
  }
  return told;
}

/** Moves a file or folder of whatever kind to where it starts nothing, and answers where; removes it where it can't be kept. */
async function putAway(place: string, kept: string): Promise<string | undefined> {
  // A folder that its user may not write to can't be moved.
  if ((await lstat(place)).isDirectory()) await chmod(place, 0o700);
  try {
    await mkdir(kept, { recursive: true, mode: 0o700 });
    const target = join(await mkdtemp(join(kept, 'command-')), basename(place));
    // On another disk it is copied; what is no file, such as a pipe, is not.
    const filter = async (path: string) => {
      const found = await lstat(path);
      return found.isFile() || found.isDirectory() || found.isSymbolicLink();
    };
    await rename(place, target).catch(() => cp(place, target, { recursive: true, verbatimSymlinks: true, filter }));
    return existsSync(target) ? target : undefined;
  } catch {
    // What can't be read, or for which there is no room.
    return undefined;
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}
