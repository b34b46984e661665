import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { configError, errorCode } from '../../../../core/errors.ts';
import { parsedJson } from '../../../../core/json.ts';
import { isIn, realOf, upwards } from '../../../../workspace/paths.ts';
import { type ChildEnv, findProgram, programFolders } from '../../../../workspace/programs.ts';
import { type ProtectedPlace, placesIn } from '../../../../workspace/protected-files.ts';
import { makeOwnFolder } from '../../../../workspace/write-file.ts';

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
  /** This process, and whether another one is still there, by its mark. */
  marks: { own: string | undefined; stateOf(mark: string): 'running' | 'gone' | 'unknown' };
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
  /** Whether secret files have for it what is in them. */
  seesSecrets: boolean;
  /** No other command's; a part of a file name. */
  id: string;
  /** When it begins, epoch milliseconds, and how long it may take. */
  from: number;
  timeMs: number;
}

/** What is kept while a command runs, so that another process can take away what it made, should this one be killed. */
const journalSchema = z.object({
  ...{ project: z.string(), isAsked: z.boolean(), by: z.string(), until: z.number() },
  before: z.array(z.object({ path: z.string(), link: z.string().optional() })),
});

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

/** Where systems keep programs, and the folders right in there. What else is around a project holds other projects. */
const systemFolder =
  /^\/(?:$|(?:dev|etc|lib\w*|nix|opt|snap|usr|var|System|Library|Applications|private)(?:\/[^/]*)?$)/;

/** Where build tools and test runners write between installed packages. */
const scratchFolders = ['.cache', '.vite', '.vite-temp', '.vitest', '.tmp'] as const;
const run = promisify(execFile);
const probeMs = 5_000;

export function createCommandSandbox(options: CommandSandboxOptions) {
  const { mode, platform } = options;
  /** By project: one that stands in a project is not for it. */
  const probed = new Map<string, ReturnType<typeof probe>>();

  const holdsHome = async (project: string) => isIn(await realOf(options.home), project);

  async function available(project: string): ReturnType<typeof probe> {
    if (mode === 'off') return { why: 'AGENT_SANDBOX is off' };
    const probing = probed.get(project) ?? probe(options, project);
    probed.set(project, probing);
    const found = await probing;
    const result = (await holdsHome(project)) ? { why: `the project ${project} holds the home directory` } : found;
    if ('why' in result && mode === 'require')
      throw configError(
        `Cannot run an agent: AGENT_SANDBOX is "require", and no sandbox is available: ${result.why}.`,
        { next: 'Install bubblewrap (Linux) and see "polylogue doctor", or set AGENT_SANDBOX to "auto".' },
      );
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
      const { argv, env, project, isAsked, from, timeMs } = command;
      const found = await available(project);
      const told = 'why' in found ? [] : await endForOthers(options, from);
      const none = { fixed: [], secrets: [] };
      const { fixed: before, secrets } = (await holdsHome(project)) ? none : await placesIn(project, isAsked);
      if ('why' in found) return { argv, env, secrets, end: async () => told };
      const cache = join(options.kept, 'caches', project.replace(/[^\w.-]+/g, '_').slice(-150));
      await mkdir(cache, { recursive: true, mode: 0o700 });
      const isMac = platform === 'darwin';
      const temporary = isMac ? await realOf(await mkdtemp(join(tmpdir(), 'polylogue-command-'))) : '/tmp';
      const isOfGit = makesRepository(command);
      const isIts = ({ path }: ProtectedPlace) => isOfGit && /(?:^|\/)\.git(?:\/|$|modules$)/.test(path);
      const fixed = before.filter(place => !isIts(place));
      const closed = command.seesSecrets ? [] : secrets;
      const places = { ...(await placesOf(options, command, fixed, closed)), cache, temporary };
      const args = isMac ? ['-p', macProfile(options, command, places)] : bubblewrapArgs(options, command, places);
      const journal = { project, isAsked, before, by: options.marks.own ?? '', until: from + timeMs + 5_000 };
      const file = join(pendingIn(options.kept), `${command.id}.json`);
      await writeFile(join(options.kept, 'empty'), '');
      if (!isOfGit) await writeFile(file, JSON.stringify(journal));
      const wrapped: SandboxedCommand['argv'] = [found.file, ...args, ...(isMac ? [] : ['--']), ...argv];
      return {
        argv: wrapped,
        env: { ...env, TMPDIR: temporary, TEMP: temporary, TMP: temporary },
        /** Files of the project that hold credentials; absolute. */
        secrets,
        async end() {
          if (isMac) await rm(temporary, { recursive: true, force: true });
          if (!isOfGit) told.push(...(await removeMade({ ...journal, until: Infinity }, options.kept)));
          await rm(file, { force: true });
          return told;
        },
      };
    },
  };
}

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
  secrets: readonly string[],
) {
  const besides = [...upwards(dirname(project))].filter(folder => !systemFolder.test(folder)).slice(-1);
  const known = await Promise.all([...hiddenFolders, ...besides, home].map(realOf));
  const hidden = [...new Set(known)].filter(folder => existsSync(folder) && folder !== '/');
  const all = [...hidden, await realOf(own)].filter(folder => existsSync(folder));
  const isHidden = (path: string) => hidden.some(folder => isIn(path, folder));
  const folders = await programFolders({ env: { ...childEnv, ...env }, projects: [] });
  const used = await Promise.all([...folders, process.execPath, argv[0]].map(realOf));
  // As they are written as well: in a folder behind a link, programs are links to what is beside it.
  const prefixes = [...folders, ...used].map(path => prefixOf(path, home));
  const visible = [...toolchains.map(name => join(home, name)), ...folders, ...prefixes];
  const real = await Promise.all(places.map(({ path }) => realOf(join(project, path))));
  const fixed = real.filter(path => isIn(path, project) && existsSync(path));
  const links = places.flatMap(({ path, link }) => (link === undefined ? [] : [join(project, path)]));
  const above = [...fixed, ...links, ...secrets].flatMap(path => [...upwards(dirname(path))].reverse());
  const around = [...new Set(above)].filter(folder => folder !== project && isIn(folder, project));
  const packages = fixed.filter(path => basename(path) === 'node_modules');
  const scratch = packages.flatMap(folder => scratchFolders.map(name => join(folder, name)));
  for (const folder of scratch) await mkdir(folder, { recursive: true });
  return {
    /** Empty for it, outside of the project and in it. */
    outer: all.filter(folder => !isIn(folder, project)),
    inner: all.filter(folder => isIn(folder, project)),
    /** In hidden folders, and read all the same. */
    visible: [...new Set(visible)].filter(path => isHidden(path) && !hidden.includes(path) && existsSync(path)),
    /** In the project, and only read. */
    fixed,
    /** In the project, and closed or empty. */
    secrets,
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

function bubblewrapArgs(options: CommandSandboxOptions, { project, cwd }: SandboxedCommand, places: Places) {
  const { network, home, kept } = options;
  const { outer, inner, visible, fixed, secrets, around, scratch, cache } = places;
  return [
    ...isolation,
    ...(network ? [] : ['--unshare-net']),
    ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
    // Settings of the system in it are written by whoever has this user id, without any capability.
    ...(process.getuid?.() === 0 ? ['--remount-ro', '/proc'] : []),
    ...outer.flatMap(folder => ['--tmpfs', folder]),
    ...['--dir', home],
    ...visible.flatMap(path => ['--ro-bind-try', path, path]),
    ...(network ? ['--ro-bind-try', '/run/systemd/resolve', '/run/systemd/resolve'] : []),
    ...['--bind', cache, join(home, '.cache')],
    ...['--bind', project, project],
    // What something is mounted on can't be renamed.
    ...around.flatMap(path => ['--bind', path, path]),
    ...fixed.flatMap(path => ['--ro-bind', path, path]),
    ...secrets.flatMap(path => ['--ro-bind', join(kept, 'empty'), path]),
    ...scratch.flatMap(path => ['--tmpfs', path]),
    ...inner.flatMap(folder => ['--tmpfs', folder]),
    ...['--chdir', cwd],
  ];
}

function macProfile({ network }: CommandSandboxOptions, { project }: SandboxedCommand, places: Places): string {
  const { outer, inner, visible, fixed, secrets, around, scratch, cache, temporary } = places;
  const folders = (paths: readonly string[]) => paths.map(path => `(subpath ${JSON.stringify(path)})`).join(' ');
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
    ...without('file-read-data file-write*', secrets),
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

const pendingIn = (kept: string): string => join(kept, 'pending');

/** Takes away what commands made whose process was killed before it could. */
async function endForOthers({ kept, marks }: CommandSandboxOptions, now: number): Promise<string[]> {
  const told: string[] = [];
  const folder = pendingIn(kept);
  await makeOwnFolder(kept);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of await readdir(folder)) {
    const { data } = journalSchema.safeParse(parsedJson(await readFile(join(folder, name), 'utf8').catch(() => '')));
    const state = data && marks.stateOf(data.by);
    if (!data || state === 'running' || (state === 'unknown' && now <= data.until)) continue;
    told.push(...(await removeMade(data, kept)));
    await rm(join(folder, name), { force: true });
  }
  return told;
}

/** Takes away protected files that are new, but none from after `until`, and puts back links: nothing can be mounted on either. */
async function removeMade({ project, isAsked, before, until }: z.output<typeof journalSchema>, kept: string) {
  const told: string[] = [];
  const known = new Map(before.map(place => [place.path, place]));
  for (const { path, link, isPrivileged } of (await placesIn(project, isAsked)).fixed) {
    const place = join(project, path);
    const old = known.get(path);
    // Builds make manifests; those that were there are not changed.
    if (old ? old.link === link : basename(path) === 'package.json') continue;
    // An empty folder, such as git makes with a new repository, starts nothing.
    const entries = link === undefined ? await readdir(place).catch(() => [path]) : [path];
    if (!old && entries.every(name => scratchFolders.some(each => each === name))) continue;
    if (((await lstat(place).catch(() => undefined))?.birthtimeMs ?? Infinity) > until) continue;
    const why = 'a command may not make files that make other programs run things.';
    try {
      if (isPrivileged) {
        // Should a link be there by now, nobody gets at more by it.
        await chmod(place, 0o700);
        told.push(`${path} no longer runs with the rights of its owner or group.`);
        continue;
      }
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
