import { type Dirent, existsSync, lstatSync } from 'node:fs';
import { chmod, readdir, readlink } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { errorCode } from '../core/errors.ts';
import { isRecord, parsedJson } from '../core/json.ts';
import { isIn, isSecretFile, leavesRoots, pathTest, readNames, realOf } from './paths.ts';
import type { Sandbox } from './sandbox.ts';

interface ProtectedGroup {
  title: string;
  /** Separated by blanks. */
  patterns: string;
  /** Who may write them by a command: package managers, which are asked about, or every command. Absent: none. */
  written?: 'asked' | 'always';
}

/**
 * Files that make other programs run or obey something although nobody starts them for it, as patterns at any depth of a
 * project: `name` is a file, `folder/` is all below it, `folder/name` is a file in it, `*` stands for any characters in one
 * name. Upper and lower case are the same. The project's own code (tests, build scripts, Makefiles, settings of test runners) is
 * not here: it runs when somebody runs the project. The list is part of the documentation.
 */
const protectedFiles: readonly ProtectedGroup[] = [
  {
    title: 'settings of an editor',
    patterns:
      '.vscode/ .vscode-insiders/ .idea/ .run/ .fleet/ .zed/ .nova/ .vs/ .settings/ .theia/ *.code-workspace *.sublime-project .devcontainer/ .devcontainer.json devcontainer.json .gitpod.yml .gitpod.dockerfile .exrc .vimrc .nvimrc .nvim.lua .lvimrc .vim/ .nvim/ .helix/ .lazy.lua .dir-locals.el .dir-locals-2.el .idx/ .replit .codesandbox/',
  },
  {
    title: 'settings or instructions of a coding agent',
    patterns:
      '.mcp.json mcp.json mcp_config.json .mcp/ claude_desktop_config.json .claude/ .claude-plugin/ .claude.json .codex/ .gemini/ .cursor/ .windsurf/ .codeium/ .continue/ .cline/ .clinerules/ .roo/ .roomodes .roorules .kilocode/ .kiro/ .trae/ .aider* .amazonq/ .opencode/ opencode.json opencode.jsonc .qwen/ .junie/ .goose/ .goosehints .crush.json crush.json .crush/ crush.md .grok/ .augment-guidelines .factory/ .augment/ .agents/ .agent/ .amp/ .zencoder/ .polylogue/ .cursorrules .windsurfrules agents.md agent.md agents.override.md .rules .continuerc.json .copilot/ copilot-instructions.md .openhands/ .devin/ .warp/ claude.md claude.local.md gemini.md qwen.md warp.md skill.md',
  },
  {
    title: 'hooks or settings of version control',
    patterns:
      '.git/ .hg/ .hgrc .jj/ .sl/ .bzr/ .svn/ .gitmodules .gitconfig .githooks/ .git-hooks/ .husky/ .huskyrc* .lefthook/ lefthook.* .lefthook.* lefthook-local.* .lefthook-local.* .pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml .overcommit.yml captainhook.json .simple-git-hooks.* simple-git-hooks.* .lintstagedrc* lint-staged.config.* prek.toml hk.pkl head',
  },
  {
    title: 'settings of continuous integration or deployment',
    patterns:
      '.github/ .gitlab/ .gitlab-ci.yml .gitlab-ci.yaml *.gitlab-ci.yml .circleci/ .travis.yml appveyor.yml .appveyor.yml azure-pipelines* .azure-pipelines/ .azuredevops/ bitbucket-pipelines.yml jenkinsfile jenkinsfile.* *.jenkinsfile .jenkins/ .drone.* .woodpecker/ .woodpecker.* .buildkite/ .teamcity/ .forgejo/ .gitea/ .cirrus.* buildspec.yml buildspec.yaml cloudbuild.yaml cloudbuild.yml cloudbuild.json .semaphore/ .ci/ codemagic.yaml .builds/ .build.yml wercker.yml .tekton/ .codebuild/ netlify.toml vercel.json .platform.app.yaml renovate.json renovate.json5 .renovaterc* .readthedocs.yml .readthedocs.yaml .zuul.yaml .zuul.d/ .harness/ amplify.yml render.yaml railway.json railway.toml .ebextensions/ bitrise.yml .screwdriver.yaml',
  },
  {
    title: 'what a package manager runs or installs',
    written: 'asked',
    patterns:
      'package.json package.json5 package.yaml node_modules/ bower_components/ .npmrc npmrc .yarnrc .yarnrc.yml .yarn/ .pnpmfile.* pnpmfile.js pnpm-workspace.yaml .pnp.* .corepack.env bunfig.toml .bunfig.toml deno.json deno.jsonc composer.json .bundle/ .gemrc pip.conf pip.ini .pip/ .pypirc .condarc .cargo/ rust-toolchain rust-toolchain.toml .mvn/ mvnw mvnw.cmd gradlew gradlew.bat gradle/wrapper/ nuget.config .config/dotnet-tools.json .venv/ venv/ site-packages/ pyvenv.cfg sitecustomize.py usercustomize.py *.pth',
  },
  {
    title: 'what a package manager installs',
    written: 'always',
    patterns:
      'package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock composer.lock gemfile.lock poetry.lock uv.lock pipfile.lock cargo.lock',
  },
  {
    title: 'what a shell, debugger or console runs automatically',
    patterns:
      '.envrc .direnv/ .tool-versions mise.toml .mise.toml mise.local.toml .mise.local.toml .mise/ mise/config.toml .config/mise/ .autoenv .autoenv.zsh .profile .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .zshrc .zshenv .zprofile .zlogin .zlogout .config/fish/ .inputrc .curlrc .wgetrc .ssh/ .docker/ .gdbinit .lldbinit .rprofile .irbrc .pryrc .ghci .ocamlinit .pdbrc .sqliterc .psqlrc .tmux.conf .screenrc',
  },
];

const compile = () =>
  protectedFiles.flatMap(({ patterns, ...group }) =>
    patterns.split(' ').map(pattern => ({ ...group, isFolder: pattern.endsWith('/'), test: pathTest(pattern) })),
  );

let compiled: ReturnType<typeof compile> | undefined;

/** What a path from the project on is, where it is on the list. */
const protectionOf = (relativePath: string): string | undefined => patternOf(relativePath)?.title;

/** A folder that is there is none of the files of the list. */
function patternOf(relativePath: string, isThereAsFolder = false) {
  compiled ??= compile();
  for (const names of readNames(relativePath)) {
    const found = compiled.find(({ isFolder, test }) => (isFolder || !isThereAsFolder) && test(names));
    if (found) return found;
  }
  return undefined;
}

/** What git keeps in its folder that names no program, file of settings, or other folder. */
const dataOfGit =
  /^(?:objects|refs|logs|index|packed-refs|shallow|lost-found|rr-cache|gc\.\w+|HEAD|[A-Z]+_[A-Z_]+|.+\.lock)$/;

/** What an approved command of git keeps there until it is continued. */
const workOfGit = /^(?:rebase-merge|rebase-apply|sequencer)$/;

const statsOf = (path: string) => (existsSync(path) ? lstatSync(path, { throwIfNoEntry: false }) : undefined);

/** Their keys and certificates are those of tests, and of the whole world. */
const packageFolders = /^(?:node_modules|bower_components|site-packages|\.?venv)$/i;

/** A protected file or folder that is there; from the project on. */
export interface ProtectedPlace {
  path: string;
  /** What it leads to, where it is a link. */
  link?: string | undefined;
  /** It is protected only because it runs with the rights of its owner or group. */
  isPrivileged?: boolean;
}

/**
 * The files and folders of a project that are there and that a command may not change, the nearest first, and the files that hold
 * credentials (absolute). What package managers write is among the former where nobody was asked about the command.
 */
export async function placesIn(project: string, isAsked: boolean) {
  const found: { fixed: ProtectedPlace[]; secrets: string[] } = { fixed: [], secrets: [] };
  const open = [{ folder: '', isFixed: false }];
  for (const { folder, isFixed } of open) {
    const isGit = /(?:^|[\\/])\.git$/.test(folder);
    for (const entry of await entriesOf(join(project, folder))) {
      const path = join(folder, entry.name);
      const isFolder = entry.isDirectory();
      const pattern = isGit || isFixed ? undefined : patternOf(path, isFolder);
      const isWritten = pattern?.written === 'always' || (isAsked && pattern?.written === 'asked');
      const isOpen = isFolder && !isGit && !isFixed && (!pattern || entry.name === '.git');
      if (isOpen || (isFolder && !isGit && !packageFolders.test(entry.name)))
        open.push({ folder: path, isFixed: !isOpen });
      const secret = !isFolder && isSecretFile(path) ? await realOf(join(project, path)) : '/';
      if (isIn(secret, project) && statsOf(secret)?.isFile()) found.secrets.push(secret);
      const isData = dataOfGit.test(entry.name) || (isAsked && workOfGit.test(entry.name));
      const isOrdinary = isFixed || isWritten || (isGit ? isData : !pattern);
      const mode = isOrdinary && entry.isFile() ? statsOf(join(project, path))?.mode : 0;
      const isPrivileged = ((mode ?? 0) & 0o6000) > 0;
      if (isOpen || (isOrdinary && !isPrivileged)) continue;
      const link = entry.isSymbolicLink() ? await readlink(join(project, path)).catch(() => '') : undefined;
      found.fixed.push({ path, link, isPrivileged });
    }
  }
  return found;
}

/**
 * A folder of this user's that may not be read is opened for its user: a command of the same user could do that, too, and what is in
 * it must not go unseen. One that is another user's can't be changed by a command either.
 */
async function entriesOf(folder: string): Promise<Dirent[]> {
  const read = () => readdir(folder, { withFileTypes: true });
  try {
    return await read();
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return [];
    if (errorCode(error) !== 'EACCES') throw error;
    return chmod(folder, 0o700).then(read, () => []);
  }
}

/** What a text would make of a file; undefined: it is not there before, or not any more. */
export type ProtectedChange = { [Side in 'before' | 'after']?: string | undefined };

/** Of package.json: what says something about a package, and nothing that is run, loaded or installed. */
const describing = new Set(
  'name version description keywords homepage bugs license author contributors maintainers funding repository private files types typings sideEffects'.split(
    ' ',
  ),
);

/** Why a change of a file needs an approval of its own: what the file is, or undefined. */
export async function reasonToProtect({ roots }: Pick<Sandbox, 'roots'>, path: string, change: ProtectedChange = {}) {
  for (const root of roots) {
    if (path === root || !isIn(path, root)) continue;
    const inside = relative(root, path);
    const reason = protectionOf(inside) ?? (await behindLink(root, path));
    if (reason === undefined) continue;
    const isManifest =
      readNames(inside).every(names => names.at(-1) === 'package.json') &&
      protectionOf(join(inside, '..')) === undefined;
    if (!isManifest || !onlyDescribes(change)) return reason;
  }
  return undefined;
}

/** A link of the project with a name of the list makes a file of what it leads to, under any name. */
async function behindLink(root: string, path: string): Promise<string | undefined> {
  const entries = await readdir(root, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const reason = entry.isSymbolicLink() ? protectionOf(entry.name) : undefined;
    if (reason === undefined) continue;
    const link = join(root, entry.name);
    if (!leavesRoots(link, [root]) && isIn(path, await realOf(link))) return reason;
  }
  return undefined;
}

function onlyDescribes({ before = '{}', after = '' }: ProtectedChange): boolean {
  const [old, now] = [parsedJson(before), parsedJson(after)];
  if (!isRecord(old) || !isRecord(now)) return false;
  const same = (key: string) => JSON.stringify(old[key]) === JSON.stringify(now[key]);
  return [...Object.keys(old), ...Object.keys(now)].every(key => describing.has(key) || same(key));
}
