import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const script = resolve('test/fixtures/stand-in-cli/stand-in.mjs');

/** What the stand-in does, one after the other. See test/fixtures/stand-in-cli. */
export interface StandInStep {
  /** One object as a line. */
  event?: unknown;
  out?: string;
  err?: string;
  /** Bytes, written by themselves. */
  base64?: string;
  /** So many bytes, in lines; with `line` without an end. */
  flood?: number;
  line?: boolean;
  child?: 'plain' | 'deaf' | 'daemon';
  /** Ignores signals that ask it to end. */
  deaf?: boolean;
  ms?: number;
  hang?: boolean;
  crash?: boolean;
  code?: number;
}

export interface StandInCall {
  args: string[];
  prompt: string;
  cwd: string;
  env: Record<string, string>;
  pid: number;
}

export interface StandIn {
  /** The environment in which they are found. */
  env: Record<string, string>;
  /** What all of them do from now on. */
  script(steps: readonly StandInStep[]): void;
  calls(): StandInCall[];
  /** Processes that bear the mark of a run and have not ended. */
  left(): Promise<string[]>;
  dispose(): Promise<void>;
}

/** Executables of these names, all of them the scripted stand-in. */
export async function standIn(...names: string[]): Promise<StandIn> {
  const folder = await mkdtemp(join(tmpdir(), 'polylogue-clis-'));
  const record = join(folder, 'calls.jsonl');
  chmodSync(script, 0o755);
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  for (const name of names) symlinkSync(script, join(bin, name));
  symlinkSync(process.execPath, join(bin, 'node'));
  return {
    env: { PATH: `${bin}:/usr/bin:/bin`, HOME: folder },
    script: steps => writeFileSync(join(folder, 'steps.json'), JSON.stringify(steps)),
    calls: () =>
      existsSync(record)
        ? readFileSync(record, 'utf8')
            .trim()
            .split('\n')
            .map((line): StandInCall => JSON.parse(line))
        : [],
    left: () => markedProcesses(`HOME=${folder}\0`),
    dispose: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Command lines of running processes whose environment holds a text. */
export async function markedProcesses(text: string): Promise<string[]> {
  const names = (await readdir('/proc')).filter(name => /^\d+$/.test(name) && Number(name) !== process.pid);
  return names.flatMap(name => {
    // This is asked again and again, and such a file is read in a fraction of what it costs to have it read elsewhere.
    const read = (file: string) => readFileSync(`/proc/${name}/${file}`, 'latin1');
    try {
      if (!read('environ').includes(text) || /\) [ZX] /.test(read('stat'))) return [];
      return [`${name} ${read('cmdline').replaceAll('\0', ' ').trim()}`];
    } catch {
      // It has ended meanwhile.
      return [];
    }
  });
}

/** What Gemini CLI prints when it answers one text. */
export const geminiAnswers = (text: string, session = 'aaaa-1'): StandInStep[] => [
  { event: { type: 'init', timestamp: 't', session_id: session, model: 'gemini-3-pro' } },
  { event: { type: 'message', role: 'user', content: 'what it was asked' } },
  { event: { type: 'message', role: 'assistant', content: text, delta: true } },
  {
    event: {
      type: 'result',
      status: 'success',
      stats: { total_tokens: 120, input_tokens: 100, output_tokens: 20, cached: 40, models: { 'gemini-3-pro': {} } },
    },
  },
];
