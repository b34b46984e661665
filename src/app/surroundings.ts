import { randomUUID } from 'node:crypto';
import { homedir } from 'node:os';
import type { Clock } from '../core/ports.ts';
import type { Surroundings } from './app.ts';

const clock: Clock = {
  now: () => Date.now(),
  // `performance` would tell the same, and is loaded with all that measures programs.
  monotonic() {
    const [seconds, nanoseconds] = process.hrtime();
    return seconds * 1_000 + nanoseconds / 1_000_000;
  },
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      }, ms);
      signal?.addEventListener('abort', onAbort, { once: true });
    }),
  after(ms, run) {
    const timer = setTimeout(run, ms).unref();
    return () => clearTimeout(timer);
  },
};

/** The machine as this process finds it. */
export function realSurroundings(): Surroundings {
  return {
    cwd: process.cwd(),
    homeDir: homedir(),
    platform: process.platform,
    nodeVersion: process.versions.node,
    clock,
    programEnv: process.env,
    random: { uuid: randomUUID, fraction: Math.random },
    writeError: line => void process.stderr.write(line),
  };
}
