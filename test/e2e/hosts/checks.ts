import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { hostClis } from '../../../scripts/test-needs/host-clis.ts';
import type { RecordedRequest } from '../../support/vendors/fake-vendor.ts';
import { type TestHost, testHosts } from './hosts.ts';
import { type HostRig, openRig, signal } from './rig.ts';
import type { Move, ToolCall } from './scripted-model.ts';

const core = ['analyze', 'chat', 'codereview', 'consensus', 'debug', 'planner', 'threads'];

/** An id as a reply has it, however often the host put it into quotes. */
const idIn = (text: string | undefined, key: string) =>
  new RegExp(`${key}\\\\*"\\s*:\\s*\\\\*"([0-9a-z-]{16,})`).exec(text ?? '')?.[1];

/** The way to the next page, in the words of a reply. */
function nextPageIn(text: string | undefined): { job_id: string; page: number } | undefined {
  const [, job_id, page] = /job_id \\*"([0-9a-z-]{16,})\\*" and page (\d+)/.exec(text ?? '') ?? [];
  return job_id === undefined ? undefined : { job_id, page: Number(page) };
}

export const chat = (prompt: string): ToolCall => ({ tool: 'chat', args: { prompt, model: 'gpt-5-mini' } });

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

const lines = Array.from({ length: 900 }, (_, at) => `Line ${at + 1} of the long answer, which reads to its very end.`);

/** The numbers of those lines that are whole. */
const linesIn = (text: string) =>
  [...text.matchAll(/Line (\d+) of the long answer, which reads to its very end\./g)].map(([, number]) =>
    Number(number),
  );

/** All that a host has to do. */
export function checkHost(client: keyof typeof hostClis): void {
  for (const host of testHosts.filter(each => each.client === client))
    describe(`${host.title} ${host.cli.version}`, () => checks(host));
}

function checks(host: TestHost): void {
  let rig: HostRig;
  beforeAll(async () => {
    rig = await openRig(host);
  });
  // Not a queue: what a test that failed left over would be another one's answer.
  beforeEach(() => rig.vendor.byDefault({}));
  afterAll(() => rig.close());

  it('starts the server as init wrote it, lists its tools, and goes from tool to tool in one thread', async () => {
    const { model, vendor } = rig;
    let thread: string | undefined;
    const before = vendor.requests.length;
    const results = await rig.session(
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
            // Some hosts check a call against the schema before they send it: both forms have to pass.
            models: ['gpt-5-mini:against', { model: 'gpt-5-nano' }],
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
    expect(results[4]).toContain('against');
    expect(vendor.requests.length - before).toBeGreaterThanOrEqual(4);
  });

  it('gets the answers of three chats that it asked for at once', async () => {
    const { vendor } = rig;
    const before = vendor.requests.length;
    const all = Promise.withResolvers<void>();
    // Nobody is answered before all have asked: one after the other they would never end.
    const answer = ({ messages }: RecordedRequest) =>
      `Answer to ${/(First|Second|Third)\?/.exec(messages.map(({ text }) => text).join('\n'))?.[1]}.`;
    vendor.byDefault({ answer, when: all.promise });
    const session = rig.session('Ask three.', () => ['First?', 'Second?', 'Third?'].map(chat));
    try {
      await expect.poll(() => vendor.requests.length - before, { timeout: 60_000 }).toBe(3);
    } finally {
      all.resolve();
    }
    const results = await session;
    expect(results.length).toBe(3);
    for (const which of ['First', 'Second', 'Third']) expect(results.join('\n')).toContain(`Answer to ${which}.`);
  });

  it('reads a long answer page by page to its end', async () => {
    rig.vendor.byDefault({ answer: lines.join('\n') });
    const pages: string[] = [];
    const turn: Move = ({ results }) => {
      const page = results.at(-1) ?? '';
      pages.push(page);
      const next = nextPageIn(page);
      return next ? [{ tool: 'job', args: next }] : [];
    };
    await rig.session('Ask at length.', () => [chat('All of it?')], ...lines.map(() => turn));
    expect(pages.length).toBeGreaterThan(1);
    expect(pages[0]).toMatch(new RegExp(`1 of ${pages.length}\\b`));
    expect(linesIn(pages.join('\n'))).toEqual(lines.map((_, at) => at + 1));
  });

  it('comes back for a call that goes on as a job', async () => {
    const over = Promise.withResolvers<void>();
    await rig.configure({ CALL_PATIENCE_SECONDS: '2' });
    rig.vendor.byDefault({ answer: 'At long last.', when: over.promise });
    const onceMore: Move = ({ results }) => {
      if (results.length > 0) over.resolve();
      const job_id = idIn(results[0], 'job_id');
      const isOver = results.at(-1)?.includes('At long last.') ?? false;
      return isOver ? [] : [{ tool: 'job', args: { job_id, wait_ms: 45_000 } }];
    };
    const results = await rig.session(
      'Ask slowly.',
      () => [chat('Slowly?')],
      ...Array.from({ length: 6 }, () => onceMore),
    );
    expect(results[0]).toContain('running');
    expect(results.at(-1)).toContain('At long last.');
    await rig.configure();
  });

  it('is stopped in its terminal in mid-call: the vendor hears of it, and a new session is answered the same question', async () => {
    const { vendor, model } = rig;
    const before = vendor.requests.length;
    vendor.byDefault({ fault: 'hang_after_headers' });
    model.play('Ask and leave.', () => [chat('Will you answer?')]);
    const { child, ended } = rig.start(host.args('Ask and leave.', model.url));
    await expect.poll(() => vendor.requests.length, { timeout: 60_000 }).toBe(before + 1);
    signal(child, 'SIGINT');
    await ended;
    await vendor.requests[before]?.aborted;
    vendor.byDefault({ answer: 'Asked anew.' });
    const results = await rig.session('Ask again.', () => [chat('Will you answer?')]);
    expect(results).toEqual([expect.stringContaining('Asked anew.')]);
    expect(vendor.requests.length).toBe(before + 2);
  });

  it('is stopped alone, as by a script, in mid-call: a new session is answered the same question', async () => {
    const { vendor, model } = rig;
    const before = vendor.requests.length;
    // Whether the work for the first session ended with it, goes on or is over: the answer is the same.
    vendor.byDefault({ answer: 'Answered in the end.', delayMs: 4_000 });
    model.play('Ask and leave.', () => [chat('Do you answer everybody?')]);
    const { child } = rig.start(host.args('Ask and leave.', model.url));
    await expect.poll(() => vendor.requests.length, { timeout: 60_000 }).toBe(before + 1);
    const gone = once(child, 'exit');
    child.kill('SIGINT');
    await gone;
    const results = await rig.session('Ask again.', () => [chat('Do you answer everybody?')]);
    expect(results).toEqual([expect.stringContaining('Answered in the end.')]);
  });

  if (host.slash) {
    const { slash } = host;
    it('takes a slash command with words behind it', async () => {
      rig.model.play('');
      const { code, out } = await rig.start(slash('debug', 'why does the cart throw')).ended;
      expect(code, out).toBe(0);
      const said = rig.model.asked.at(-1)?.said ?? out;
      expect(said).toMatch(/Use the Polylogue tool [\\"]+debug/);
      expect(said).toContain('why does the cart throw');
      // No word of it became another argument.
      expect(said).not.toMatch(/Use the Polylogue tool [\\"]+debug[\\"]+, and give it/);
    });
  }
}
