import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Written } from './session.ts';

const calls = 'write,writev,pwrite64,pwritev';

/**
 * What a process writes into files below a folder while `work` runs, as strace counts it; undefined where strace is missing or
 * may not look. It slows the process down, so nothing else is measured meanwhile.
 */
export async function fileWrites(
  pid: number,
  folder: string,
  trace: string,
  work: () => Promise<unknown>,
): Promise<Written | undefined> {
  const args = ['-f', '-qq', '-y', '-s', '0', '-e', `trace=${calls}`, '-e', 'signal=none', '-o', trace, '-p', `${pid}`];
  const tracer = spawn('strace', args, { stdio: 'ignore' });
  const ended = once(tracer, 'close').catch(() => undefined);
  try {
    if (!(await isTraced(pid, ended))) return undefined;
    await work();
  } finally {
    tracer.kill('SIGINT');
    await ended;
  }
  return sumOf(readFileSync(trace, 'utf8'), folder);
}

/** Once the system names somebody who traces the process; false when the tracer ended before. */
async function isTraced(pid: number, ended: Promise<unknown>): Promise<boolean> {
  let gone = false;
  void ended.then(() => {
    gone = true;
  });
  while (!gone) {
    if (/^TracerPid:\s+[1-9]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) {
      // The other threads are taken one after the other.
      await new Promise(resolve => setTimeout(resolve, 200));
      return !gone;
    }
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  return false;
}

function sumOf(trace: string, folder: string): Written {
  const sum = { bytes: 0, calls: 0 };
  // A call that another thread interrupted is told in two lines, of which the second has the result.
  const begun = new Map<string, boolean>();
  for (const line of trace.split('\n')) {
    const thread = line.slice(0, line.indexOf(' '));
    const inFolder = line.includes('resumed>') ? begun.get(thread) === true : line.includes(`<${folder}/`);
    if (line.endsWith('<unfinished ...>')) begun.set(thread, inFolder);
    const bytes = Number(/\) = (\d+)$/.exec(line)?.[1] ?? Number.NaN);
    if (!inFolder || Number.isNaN(bytes)) continue;
    sum.bytes += bytes;
    sum.calls++;
  }
  return sum;
}
