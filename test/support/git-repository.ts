import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface GitRepository {
  path: string;
  git(...args: string[]): Promise<string>;
  write(file: string, content: string | Uint8Array): Promise<void>;
  /** Stages everything and commits it. */
  commit(message?: string): Promise<void>;
}

/** A real repository, untouched by the settings of whoever runs the tests. */
export async function gitRepository(path: string): Promise<GitRepository> {
  const env = {
    PATH: process.env.PATH,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_AUTHOR_NAME: 'Ada',
    GIT_AUTHOR_EMAIL: 'ada@example.org',
    GIT_COMMITTER_NAME: 'Ada',
    GIT_COMMITTER_EMAIL: 'ada@example.org',
  };
  const git = async (...args: string[]) => (await run('git', args, { cwd: path, env })).stdout;
  await mkdir(path, { recursive: true });
  await git('init', '--quiet', '--initial-branch=main');
  return {
    path,
    git,
    async write(file, content) {
      await mkdir(dirname(join(path, file)), { recursive: true });
      await writeFile(join(path, file), content);
    },
    async commit(message = 'work') {
      await git('add', '--all');
      await git('commit', '--quiet', '--message', message);
    },
  };
}
