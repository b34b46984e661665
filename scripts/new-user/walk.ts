import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startOpenAi } from '../../test/support/vendors/start-open-ai.ts';

/** One command of a new user, and what came of it. */
export interface Step {
  id: string;
  /** What the user is about to do, for the transcript. */
  title: string;
  /** As it would be typed. */
  line: string;
  code: number | null;
  out: string;
  err: string;
}

interface Plan {
  id: string;
  title: string;
  args: string[];
  key?: string;
  cwd?: string;
}

const rightKey = 'sk-the-right-key';
const question = 'What should I read first?';

const plans: readonly Plan[] = [
  { id: 'help', title: 'What is there?', args: ['ask', '--help'] },
  { id: 'no-key', title: 'An empty directory, no key', args: ['ask', question] },
  { id: 'doctor-no-key', title: 'What is missing?', args: ['doctor'] },
  { id: 'offline', title: 'A first look without a key', args: ['models', '--offline'] },
  { id: 'wrong-key', title: 'A wrong key', args: ['ask', question], key: 'sk-a-wrong-key' },
  { id: 'doctor-wrong-key', title: 'What is wrong with it?', args: ['doctor'], key: 'sk-a-wrong-key' },
  { id: 'doctor-right-key', title: 'The right key', args: ['doctor'], key: rightKey },
  { id: 'right-key', title: 'A question', args: ['ask', question], key: rightKey },
  { id: 'continue', title: 'Going on', args: ['ask', 'And then?', '--continue', 'last'], key: rightKey },
  { id: 'root', title: 'Started in /', args: ['search', 'hosts'], key: rightKey, cwd: '/' },
  { id: 'doctor-root', title: 'Why can nothing be read?', args: ['doctor'], key: rightKey, cwd: '/' },
  { id: 'init-no-host', title: 'Into a host', args: ['init'], key: rightKey },
  { id: 'init', title: 'Into Claude Code', args: ['init', '--client', 'claude'], key: rightKey },
];

/** Walks through the first minutes with Polylogue, in a home of its own, with a stand-in for the vendor. */
export async function walkAsNewUser(): Promise<Step[]> {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'polylogue-new-user-')));
  const folder = join(home, 'project');
  await mkdir(folder);
  const vendor = await startOpenAi({ keys: [rightKey] });
  vendor.byDefault({ answer: 'The README, then src/main.ts.' });
  try {
    const steps: Step[] = [];
    for (const { id, title, args, key, cwd = folder } of plans) {
      const env = { HOME: home, OPENAI_BASE_URL: vendor.url, ...(key && { OPENAI_API_KEY: key }) };
      const run = await runOnce(args, cwd, env);
      const typed = args.map(word => (/[^\w./-]/.test(word) ? `"${word}"` : word)).join(' ');
      const line = `${key ? `OPENAI_API_KEY=${key} ` : ''}polylogue ${typed}`;
      steps.push({ id, title, line, ...run, out: shortened(run.out, home), err: shortened(run.err, home) });
    }
    return steps;
  } finally {
    await vendor.close();
    await rm(home, { recursive: true, force: true });
  }
}

const program = join(import.meta.dirname, '../../dist/main.js');

function runOnce(
  args: string[],
  cwd: string,
  env: Record<string, string>,
): Promise<Pick<Step, 'code' | 'out' | 'err'>> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...args], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let [out, err] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
    });
    child.on('error', reject);
    child.on('close', code => resolve({ code, out, err }));
  });
}

/** Without what differs from machine to machine. */
function shortened(text: string, home: string): string {
  return text
    .replaceAll(home, '~')
    .replaceAll(program, '…/dist/main.js')
    .replaceAll(process.execPath, '…/node')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .replace(/\d+ ms/g, 'N ms')
    .replace(/[ \t]+$/gm, '');
}
