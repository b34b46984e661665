import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('./storm-child.ts', import.meta.url));

export interface StormProcessOptions {
  file: string;
  alphaUrl: string;
  betaUrl: string;
  seed: number;
  factor: number;
  origin: number;
}

/** How a call of another process ended. */
export interface ChildEnding {
  text?: string;
  error?: string;
  breaker?: string;
}

export interface StormProcess {
  /** One call to the first vendor alone. */
  ask(): Promise<ChildEnding>;
  end(): Promise<void>;
}

/** Another process that asks the same vendors and keeps its state in the same database. */
export function startStormProcess(options: StormProcessOptions): StormProcess {
  const child = spawn(process.execPath, [script, JSON.stringify(options)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting = new Map<number, (ending: ChildEnding) => void>();
  let last = 0;
  createInterface({ input: child.stdout }).on('line', line => {
    const { id, ...ending } = JSON.parse(line);
    waiting.get(id)?.(ending);
    waiting.delete(id);
  });
  return {
    ask: () =>
      new Promise(resolve => {
        waiting.set(++last, resolve);
        child.stdin.write(`${last}\n`);
      }),
    async end() {
      if (child.exitCode !== null) return;
      const ended = once(child, 'close');
      child.stdin.end();
      await ended;
    },
  };
}
