import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

export interface TempProject {
  /** Absolute, with every symbolic link resolved. */
  root: string;
  /** Absolute path of a file or directory of the project. */
  path(file: string): string;
  /** Writes a file and the directories above it. */
  write(file: string, content: string | Uint8Array): Promise<void>;
  /** Removes a file or a directory with all that is in it; one that is not there is no error. */
  remove(file: string): Promise<void>;
  /** Removes the whole project. */
  dispose(): Promise<void>;
}

/** A directory of its own under the system's temporary directory, with these files in it. */
export async function tempProject(files: Record<string, string | Uint8Array> = {}): Promise<TempProject> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'polylogue-project-')));

  const path = (file: string): string => {
    const absolute = join(root, file);
    if (relative(root, absolute).startsWith('..')) throw new Error(`${file} is outside of the project`);
    return absolute;
  };
  const write = async (file: string, content: string | Uint8Array): Promise<void> => {
    await mkdir(dirname(path(file)), { recursive: true });
    await writeFile(path(file), content);
  };

  for (const [file, content] of Object.entries(files)) await write(file, content);
  return {
    root,
    path,
    write,
    remove: file => rm(path(file), { recursive: true, force: true }),
    dispose: () => rm(root, { recursive: true, force: true }),
  };
}
