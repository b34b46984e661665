import { spawnSync } from 'node:child_process';
import { cp, mkdir, readFile, symlink } from 'node:fs/promises';
import { basename, join, posix } from 'node:path';

export interface Instruction {
  word: string;
  rest: string;
}

/** One `FROM` with what follows it. */
export interface Stage {
  name: string;
  base: string;
  instructions: Instruction[];
}

/** Takes a Dockerfile apart; comments between continued lines are not in ours. */
export async function readStages(path: string): Promise<Stage[]> {
  const text = (await readFile(path, 'utf8')).replace(/\\\n/g, ' ').replace(/^#.*$/gm, '');
  const stages: Stage[] = [];
  for (const line of text.split('\n').filter(each => each.trim() !== '')) {
    const [, word = '', rest = ''] = /^(\w+)\s+(.*)$/.exec(line.trim()) ?? [];
    if (word === 'FROM') {
      const [base = '', , name = `stage-${stages.length}`] = rest.split(/\s+/);
      stages.push({ name, base, instructions: [] });
    } else {
      stages.at(-1)!.instructions.push({ word, rest });
    }
  }
  return stages;
}

export interface FollowOptions {
  /** What the build is given: the repository. */
  context: string;
  /** Where the file system of each stage is made. */
  folder: string;
  /** What to do in the place of a command that cannot be run outside of a container; true where it did that. */
  instead(command: string, at: string): Promise<boolean>;
}

/** Follows a stage's instructions in a folder that stands for its file system; throws where one of them fails. */
export async function follow(
  { name, instructions }: Stage,
  { context, folder, instead }: FollowOptions,
): Promise<void> {
  const root = join(folder, name);
  let at = '/';
  await mkdir(root, { recursive: true });
  for (const { word, rest } of instructions) {
    if (word === 'WORKDIR') {
      at = posix.resolve(at, rest);
      await mkdir(join(root, at), { recursive: true });
    } else if (word === 'COPY') {
      const words = rest.split(/\s+/);
      const from = words[0]?.startsWith('--from=') ? join(folder, words.shift()!.slice('--from='.length)) : context;
      const to = words.pop()!;
      for (const source of words) {
        const target = posix.resolve(at, to.endsWith('/') ? join(to, basename(source)) : to);
        await cp(join(from, source), join(root, target), { recursive: true });
      }
    } else if (word === 'RUN' && !(await instead(rest, join(root, at)))) {
      // Absolute paths are those of the stage.
      const command = rest.replace(/(?<=\s)\/(?=[a-z])/g, `${root}/`);
      const { status, stderr } = spawnSync('sh', ['-ec', command], {
        cwd: join(root, at),
        encoding: 'utf8',
        env: npmEnv(folder),
      });
      if (status !== 0) throw new Error(`RUN ${rest}: ${stderr}`);
    }
  }
}

/** npm without a network: what it installs has to carry all that it needs. */
function npmEnv(folder: string) {
  return {
    ...process.env,
    npm_config_offline: 'true',
    npm_config_cache: join(folder, 'npm-cache'),
    npm_config_update_notifier: 'false',
  };
}

/** The value of the last instruction of that kind; a JSON array as its words. */
export function lastOf({ instructions }: Stage, word: string): string[] {
  const rest = instructions.findLast(each => each.word === word)?.rest ?? '';
  const array = /\[.*\]$/.exec(rest)?.[0];
  return array === undefined ? rest.split(/\s+/) : JSON.parse(array);
}

/** What `npm ci` would leave: the packages, and what its lifecycle script builds. */
export async function installed(at: string, nodeModules: string): Promise<void> {
  await symlink(nodeModules, join(at, 'node_modules'));
  const { status, stderr } = spawnSync(process.execPath, ['scripts/prepare.mjs'], { cwd: at, encoding: 'utf8' });
  if (status !== 0) throw new Error(`the build failed: ${stderr}`);
}
