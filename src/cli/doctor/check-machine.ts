import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { homeAdvice, homeProblem } from '../../config/home.ts';
import type { CommandContext } from '../command/command.ts';
import type { Finding } from './doctor-checks.ts';

/** Node, the program, the data folder. */
export async function checkMachine({ around, config, launch }: CommandContext): Promise<Finding[]> {
  const { nodeVersion, platform } = around;
  return [
    { state: 'ok', what: 'node', text: `${nodeVersion} on ${platform} (${launch.node})` },
    { state: 'note', what: 'program', text: launch.program },
    await dataFolder(config.home),
  ];
}

async function dataFolder(home: string): Promise<Finding> {
  const what = 'data folder';
  const problem = homeProblem(home);
  if (problem !== undefined) return { state: 'fail', what, text: `${home}: ${problem}`, next: homeAdvice };
  const isThere = await stat(home).then(
    () => true,
    () => false,
  );
  if (!isThere) return { state: 'ok', what, text: `${home} (made when the first thread is stored)` };
  return { state: 'ok', what, text: `${home}, ${sizeText(await sizeOf(home))}` };
}

async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const sizes = entries.map(async entry => {
    if (!entry.isFile()) return 0;
    // A file may go while we look.
    const stats = await stat(join(entry.parentPath, entry.name)).catch(() => undefined);
    return stats?.size ?? 0;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

function sizeText(bytes: number): string {
  return bytes < 1_048_576 ? `${Math.ceil(bytes / 1_024)} KiB` : `${(bytes / 1_048_576).toFixed(1)} MiB`;
}
