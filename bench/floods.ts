import { execFile } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { BenchFolder } from './measure/bench-folder.ts';
import { type Figures, inRounds, ratio, typical } from './measure/rounds.ts';
import { openSession, type Session } from './measure/session.ts';
import { figure, type Table, times } from './measure/table.ts';
import { product } from './product.ts';
import { openFloodVendor } from './yardsticks/flood-vendor.ts';

const roundCount = Number(process.env.BENCH_ROUNDS ?? 3);
const pieces = Number(process.env.BENCH_PIECES ?? 1_000_000);
/** Streams of 100 MB each. */
const floods = { count: 30, pieces: 600_000 };
const everyMs = 100;
const patienceMs = 300_000;

const byHand = fileURLToPath(new URL('./yardsticks/read-by-hand.ts', import.meta.url));

/** Model and path of each dialect. */
const dialects = {
  'OpenAI Responses': ['gpt-5', '/v1/responses'],
  'OpenAI chat': ['custom:many', '/v1/chat/completions'],
  Anthropic: ['claude-sonnet-4-5', '/v1/messages'],
  Gemini: ['gemini-2.5-flash', '/v1beta/models/x:streamGenerateContent'],
  Ollama: ['ollama:many', '/api/chat'],
} as const;

/** Answers of many tiny pieces beside the same bytes read by hand, and what other calls notice of many long ones at once. */
export async function floodsOf(folder: BenchFolder): Promise<Table> {
  const vendor = await openFloodVendor();
  const { session } = await openSession(
    product(folder, `${vendor.url}/v1`, {
      ANTHROPIC_API_KEY: 'test-key',
      ANTHROPIC_BASE_URL: `${vendor.url}/v1`,
      GEMINI_API_KEY: 'test-key',
      GEMINI_BASE_URL: `${vendor.url}/v1beta`,
      CUSTOM_API_URL: `${vendor.url}/v1`,
      CUSTOM_MODEL_NAME: 'many',
      OLLAMA_HOST: vendor.url,
    }),
    patienceMs,
  );
  try {
    const contenders: Record<string, () => Promise<Figures>> = {};
    for (const [name, [model, path]] of Object.entries(dialects)) {
      contenders[`${name} by hand`] = async () => {
        const { stdout } = await promisify(execFile)(process.execPath, [byHand, vendor.url + path, `${pieces}`]);
        return { cpu: Number(stdout) };
      };
      contenders[name] = async () => {
        const before = session.cpuMs();
        await ask(session, model, pieces);
        return { cpu: session.cpuMs() - before };
      };
    }
    const rounds = await inRounds(roundCount, contenders);
    const rows = Object.keys(dialects).map(name => {
      const hand = `${name} by hand`;
      const beside = ratio(rounds, 'cpu', name, hand);
      const [own, floor] = [typical(rounds, name, 'cpu'), typical(rounds, hand, 'cpu')];
      return [name, figure(floor, 0), figure(own, 0), times(beside), '≤ 4', beside <= 4 ? 'yes' : 'no'];
    });
    const { slowest, calls, megabytes } = await amongFloods(session);
    return {
      title: `floods: an answer of ${pieces} pieces of one character (${roundCount} rounds), processor ms`,
      columns: ['dialect', 'by hand', 'ours', 'ratio', 'line', 'crossed'],
      rows,
      notes: [
        `Among ${floods.count} streams of 100 MB at once, ${calls} other calls took ${figure(slowest, 0)} ms at most; ${figure(megabytes, 0)} MB were held.`,
      ],
    };
  } finally {
    await session.close();
    await vendor.close();
  }
}

async function ask(session: Session, model: string, count: number): Promise<void> {
  // Each question is another one, so that no call repeats an earlier one.
  await session.call('chat', { prompt: `${crypto.randomUUID()}: many pieces: ${count}`, model });
}

async function amongFloods(session: Session) {
  let [slowest, calls, megabytes, over] = [0, 0, 0, false];
  const all = Array.from({ length: floods.count }, () => ask(session, 'gpt-5', floods.pieces).catch(() => undefined));
  const flooding = Promise.all(all).then(() => {
    over = true;
  });
  for (; !over; await wait(everyMs)) {
    const begun = performance.now();
    await ask(session, 'claude-sonnet-4-5', 1);
    slowest = Math.max(slowest, performance.now() - begun);
    calls += 1;
    megabytes = Math.max(megabytes, session.residentMb());
  }
  await flooding;
  return { slowest, calls, megabytes };
}
