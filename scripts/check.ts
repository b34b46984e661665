import { spawn } from 'node:child_process';
import { cpus } from 'node:os';
import { join } from 'node:path';

interface Check {
  name: string;
  command: string;
  args: string[];
}

const bin = (name: string): string => join('node_modules', '.bin', process.platform === 'win32' ? `${name}.cmd` : name);
const script = (name: string, ...args: string[]): string[] => [join('scripts', `${name}.ts`), ...args];

/** The slowest first, so that the others run beside it. */
const checks: Check[] = [
  { name: 'types', command: bin('tsc'), args: ['--noEmit', '-p', '.'] },
  { name: 'format and lint', command: bin('biome'), args: ['check', '.'] },
  { name: 'generated files', command: process.execPath, args: script('generate', '--check') },
  { name: 'structure', command: process.execPath, args: script('structure') },
  { name: 'call trace', command: process.execPath, args: script('trace-call') },
  { name: 'words', command: process.execPath, args: script('words') },
  { name: 'doc links', command: process.execPath, args: script('doc-links') },
];

function run({ name, command, args }: Check): Promise<boolean> {
  const started = performance.now();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], shell: command.endsWith('.cmd') });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  child.on('error', error => {
    output += `${command} cannot be started (${error.message}): run "npm ci" first\n`;
  });
  child.on('close', code => {
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${name.padEnd(16)} ${seconds} s`);
    if (code !== 0) console.log(output.trimEnd());
    resolve(code === 0);
  });
  return promise;
}

/** Runs the checks, as many at once as there are cores, and answers how many failed. */
async function runAll(): Promise<number> {
  const waiting = [...checks];
  let failed = 0;
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) if (!(await run(next))) failed++;
  };
  await Promise.all(Array.from({ length: Math.max(1, Math.min(4, cpus().length)) }, worker));
  return failed;
}

const failed = await runAll();
if (failed > 0) {
  console.error(`${failed} of ${checks.length} checks failed`);
  process.exit(1);
}
