import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostCommand } from '../../../scripts/test-needs/host-clis.ts';
import { runProgram } from '../../cli/run-program.ts';
import { vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { type TestHost, testHosts } from './hosts.ts';
import { type Move, type ScriptedModel, startScriptedModel, type ToolCall } from './scripted-model.ts';

const core = ['analyze', 'chat', 'codereview', 'consensus', 'debug', 'planner', 'threads'];

/** An id as a reply has it, however often the host put it into quotes. */
const idIn = (text: string | undefined, key: string) =>
  new RegExp(`${key}\\\\*"\\s*:\\s*\\\\*"([0-9a-z-]{16,})`).exec(text ?? '')?.[1];

const chat = (prompt: string): ToolCall => ({ tool: 'chat', args: { prompt, model: 'gpt-5-mini' } });

function step(tool: string, step_number: number, last: boolean, continuation_id?: string): ToolCall {
  const findings = `What step ${step_number} found.`;
  return {
    tool,
    args: {
      step: `Step ${step_number}`,
      step_number,
      total_steps: last ? step_number : step_number + 1,
      next_step_required: !last,
      findings,
      model: 'gpt-5-mini',
      relevant_files: ['a.ts'],
      ...(continuation_id !== undefined && { continuation_id }),
    },
  };
}

/** Why a host can't be tested here; undefined: it can. */
function reasonAgainst(host: TestHost): string | undefined {
  const [program, ...first] = hostCommand(host.cli);
  const { status, error, stderr } = spawnSync(program, [...first, '--version'], { encoding: 'utf8', timeout: 60_000 });
  if (status === 0) return undefined;
  return error ? error.message : `--version ended with ${status}: ${stderr.slice(0, 200)}`;
}

for (const host of testHosts) {
  const reason = reasonAgainst(host);
  const name = `${host.title} ${host.cli.version}`;
  if (reason !== undefined) console.log(`skipped: ${name}: ${reason}`);
  describe.skipIf(reason !== undefined)(name, () => checks(host));
}

/** To the whole group, as a terminal does. */
function signal({ pid }: ChildProcess, name: NodeJS.Signals): void {
  if (pid !== undefined) process.kill(-pid, name);
}

function checks(host: TestHost): void {
  let project: TempProject;
  let vendor: FakeVendor;
  let model: ScriptedModel;
  const running = new Set<ChildProcess>();

  const serverEnv = () => ({ ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' });

  async function configure(env: Record<string, string> = {}): Promise<void> {
    const { code, out, err } = await runProgram(['init', '--client', host.client], {
      cwd: project.path('home'),
      env: { ...serverEnv(), ...env },
    });
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('polylogue');
    const { settings, lines } = host;
    if (lines) await appendFile(project.path(`home/${lines.file}`), lines.text);
    if (!settings) return;
    const path = project.path(`home/${settings.file}`);
    await writeFile(path, JSON.stringify(settings.amend(JSON.parse(await readFile(path, 'utf8')), model.url)));
  }

  function start(args: string[]): { child: ChildProcess; ended: Promise<{ code: number | null; out: string }> } {
    const [program, ...first] = hostCommand(host.cli);
    const child = spawn(program, [...first, ...args], {
      cwd: project.path('work'),
      env: {
        HOME: project.path('home'),
        PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
        OPENAI_API_KEY: 'test-key',
        ...host.env(model.url),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own, as a terminal gives it: some hosts work in a child of theirs.
      detached: true,
    });
    running.add(child);
    let out = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => (out += text.toString()));
    const ended = once(child, 'close').then(([code]) => {
      running.delete(child);
      return { code, out };
    });
    return { child, ended };
  }

  /** One session of the host to its end; what our tools answered in it. */
  async function session(prompt: string, ...moves: Move[]): Promise<string[]> {
    model.play(...moves);
    const { code, out } = await start(host.args(prompt, model.url)).ended;
    expect({ code, unknown: model.unknown }, out).toEqual({ code: 0, unknown: [] });
    return model.asked.at(-1)?.results ?? [];
  }

  beforeAll(async () => {
    [vendor, model] = await Promise.all([startOpenAi(), startScriptedModel()]);
    project = await tempProject({ 'work/a.ts': 'export const a = 1;\n', 'home/.keep': '' });
    // What it may read is found by the repository around it.
    expect(spawnSync('git', ['init', '-q'], { cwd: project.path('work') }).status).toBe(0);
    await configure();
  });
  afterAll(async () => {
    for (const child of running) signal(child, 'SIGKILL');
    await Promise.all([vendor.close(), model.close()]);
    expect(vendor.violations).toEqual([]);
    await project.dispose();
  });

  it('starts the server as init wrote it, lists its tools, and goes from tool to tool in one thread', async () => {
    let thread: string | undefined;
    const results = await session(
      'Ask the team.',
      () => [chat('What is a door?')],
      ({ results: [first] }) => {
        thread = idIn(first, 'continuation_id');
        return [step('debug', 1, false, thread)];
      },
      () => [step('debug', 2, true, thread)],
      () => [step('codereview', 1, true, thread)],
      () => [
        {
          tool: 'consensus',
          args: {
            prompt: 'A door?',
            models: [{ model: 'gpt-5-mini' }, { model: 'gpt-5-nano' }],
            continuation_id: thread,
          },
        },
      ],
    );
    for (const tool of core) {
      expect(
        model.asked[0]?.tools.some(offered => offered.endsWith(tool)),
        tool,
      ).toBe(true);
    }
    expect(thread).toBeDefined();
    expect(results.length).toBe(5);
    for (const [at, result] of results.entries())
      expect(idIn(result, 'continuation_id'), `${at}: ${result}`).toBe(thread);
    expect(results[1]).toContain('pause_for_investigation');
    expect(results[4]).toContain('gpt-5-nano');
    expect(vendor.requests.length).toBeGreaterThanOrEqual(4);
  });

  it('gets the answers of three chats that it asked for at once', async () => {
    const before = vendor.requests.length;
    vendor.script(...['One.', 'Two.', 'Three.'].map(answer => ({ answer, delayMs: 2_000 })));
    const results = await session('Ask three.', () => ['First?', 'Second?', 'Third?'].map(chat));
    expect(results.length).toBe(3);
    for (const answer of ['One.', 'Two.', 'Three.']) expect(results.join('\n')).toContain(answer);
    const times = vendor.requests.slice(before).map(({ at }) => at);
    // One after the other they would begin at least two seconds apart.
    expect(Math.max(...times) - Math.min(...times)).toBeLessThan(2_000);
  });

  it('comes back for a call that goes on as a job', async () => {
    await configure({ CALL_PATIENCE_SECONDS: '2' });
    vendor.script({ answer: 'At long last.', delayMs: 6_000 });
    const onceMore: Move = ({ results }) => {
      const job_id = idIn(results[0], 'job_id');
      const isOver = results.at(-1)?.includes('At long last.') ?? false;
      return isOver ? [] : [{ tool: 'job', args: { job_id, wait_ms: 45_000 } }];
    };
    const results = await session('Ask slowly.', () => [chat('Slowly?')], ...Array.from({ length: 6 }, () => onceMore));
    expect(results[0]).toContain('running');
    expect(results.at(-1)).toContain('At long last.');
    await configure();
  });

  it('is stopped in mid-call: the vendor hears of it', async () => {
    const before = vendor.requests.length;
    vendor.script({ fault: 'hang_after_headers' });
    model.play(() => [chat('Will you answer?')]);
    const { child, ended } = start(host.args('Ask and leave.', model.url));
    await expect.poll(() => vendor.requests.length, { timeout: 60_000 }).toBe(before + 1);
    signal(child, 'SIGINT');
    await ended;
    await vendor.requests[before]?.aborted;
  });

  if (host.slash) {
    const { slash } = host;
    it('takes a slash command with words behind it', async () => {
      model.play();
      const { code, out } = await start(slash('debug', 'why does the cart throw')).ended;
      expect(code, out).toBe(0);
      expect(model.asked.at(-1)?.said).toMatch(/Use the Polylogue tool [\\"]+debug/);
    });
  }
}
