import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AgentInput, AgentParts } from '../../../../src/engine/modes/agent/agent.ts';
import { runUntilStopped } from '../../../../src/engine/modes/agent/run-agent.ts';
import { asMessage } from '../../../../src/threads/transcript.ts';
import { realClock } from '../../../support/clock.ts';
import { agentOn, callLook, look, loopVendors, type VendorRun } from './agent-on-vendor.ts';

describe.each(loopVendors)('the agent loop on $id', vendor => {
  let on: VendorRun;
  beforeEach(async () => {
    on = await agentOn(vendor);
  });
  afterEach(async () => {
    // Whatever happened in a run, no request of it was one that the vendor refuses.
    expect(on.fake.violations).toEqual([]);
    await on.close();
  });

  it('ends when nothing is called any more, with every call answered', async () => {
    on.fake.script(
      { calls: [callLook('gate')], reasoning: 'The gate first.', answer: 'I look.' },
      { calls: [callLook('wall'), callLook('roof')], reasoning: 'Now the rest.' },
      { answer: 'All is well.', reasoning: 'So it is.' },
    );
    const result = await on.run({});
    expect(result).toMatchObject({ text: 'All is well.', rounds: 3, stopReason: 'done' });
    expect(result.toolCalls.map(({ name, result: text, round }) => [round, name, text])).toEqual([
      [1, 'look', 'seen gate'],
      [2, 'look', 'seen wall'],
      [2, 'look', 'seen roof'],
    ]);
    expect(result.usage.output).toBeGreaterThan(0);
    const last =
      on.fake.requests
        .at(-1)
        ?.messages.map(({ text }) => text)
        .join('\n') ?? '';
    expect(last).toContain('seen gate');
    expect(last.indexOf('seen wall')).toBeLessThan(last.indexOf('seen roof'));
  });

  it('has ten rounds when the model calls twelve times, and then a closing answer without tools', async () => {
    on.fake.byDefault({
      calls: request => (request.messages.at(-1)?.text.includes('no tool can be called') ? [] : [callLook('gate')]),
      reasoning: 'Once more.',
      answer: request => (request.messages.at(-1)?.text.includes('no tool can be called') ? 'Enough.' : ''),
    });
    const result = await on.run({});
    expect(result).toMatchObject({ text: 'Enough.', rounds: 11, stopReason: 'max_rounds' });
    expect(result.toolCalls).toHaveLength(10);
    expect(on.fake.requests).toHaveLength(11);
    expect(on.fake.requests.at(-1)?.parameters).toMatch(/none/i);
  });

  it('tells the model of a call that is refused, of another tool or with wrong arguments, and goes on', async () => {
    on.fake.script(
      {
        calls: [callLook('gate'), { name: 'jump', args: { at: 'x' } }, { name: 'look', args: { at: 7 } }],
        reasoning: 'Three at once.',
      },
      { answer: 'I see.' },
    );
    const seen: string[] = [];
    const result = await on.run({
      tools: [look({ run: async ({ at }) => String(seen.push(String(at))) })],
      onToolCall: ({ args }) =>
        args.at === 'gate' ? { action: 'deny', reason: 'The gate is private.' } : { action: 'allow' },
    });
    expect(seen).toEqual([]);
    expect(result.toolCalls.map(({ outcome }) => outcome)).toEqual(['refused', 'invalid', 'invalid']);
    const told =
      on.fake.requests
        .at(-1)
        ?.messages.map(({ text }) => text)
        .join('\n') ?? '';
    expect(told).toContain('The gate is private.');
    expect(told).toMatch(/Unknown tool .{1,4}jump/);
    expect(told).toMatch(/at.{1,4} must be a text/);
    expect(result.text).toBe('I see.');
    const audited = on.events.filter(event => event.type === 'agent.call');
    expect(audited.map(({ name, outcome }) => `${name} ${outcome}`).sort()).toEqual([
      'jump invalid',
      'look invalid',
      'look refused',
    ]);
    expect(audited.find(({ outcome }) => outcome === 'refused')?.reason).toContain('private');
  });

  it('runs a call as the gate edited it, and refuses an edit that does not fit', async () => {
    on.fake.script({ calls: [callLook('gate'), callLook('wall')], reasoning: 'Both.' }, { answer: 'Done.' });
    const seen: unknown[] = [];
    const result = await on.run({
      tools: [
        look({
          run: async args => {
            seen.push(args);
            return 'fine';
          },
        }),
      ],
      onToolCall: ({ args }) => ({ action: 'allow', args: args.at === 'gate' ? { at: 'the front gate' } : { at: 1 } }),
    });
    expect(seen).toEqual([{ at: 'the front gate' }]);
    expect(result.toolCalls).toMatchObject([
      { outcome: 'ok', args: { at: 'the front gate' } },
      { outcome: 'invalid', result: expect.stringContaining('must be a text') },
    ]);
  });

  it('goes on when a tool throws, hangs, or brings nothing', async () => {
    on.fake.script(
      { calls: ['throws', 'hangs', 'blank'].map(callLook), reasoning: 'Try.' },
      { answer: 'Then without.' },
    );
    const signals: AbortSignal[] = [];
    const result = await on.run({
      limits: { toolMs: 40 },
      tools: [
        look({
          run: ({ at }, { signal }) => {
            signals.push(signal);
            if (at === 'throws') throw new Error('The lamp is broken.');
            return at === 'hangs' ? new Promise(() => {}) : Promise.resolve('');
          },
        }),
      ],
    });
    expect(result.text).toBe('Then without.');
    expect(result.toolCalls).toMatchObject([
      { outcome: 'failed', result: 'It failed: The lamp is broken.' },
      { outcome: 'failed', result: expect.stringContaining('took longer') },
      { outcome: 'ok', result: '' },
    ]);
    expect(signals[1]?.aborted).toBe(true);
  });

  it('shows as much of 5 MB as a request can hold, less of it later, and keeps calls in order', async () => {
    const big = `${'x'.repeat(5_000_000)} the end`;
    on.fake.script(
      { calls: [callLook('big'), callLook('small')], reasoning: 'Both.' },
      { calls: [callLook('small')], reasoning: 'Again.' },
      { answer: 'Read.' },
    );
    const result = await on.run({ tools: [look({ run: async ({ at }) => (at === 'big' ? big : 'little') })] });
    const [, second, third] = on.fake.requests.map(({ messages }) => messages.map(({ text }) => text).join('\n'));
    expect(second?.length).toBeGreaterThan(90_000);
    expect(second?.length).toBeLessThan(110_000);
    expect(second).toMatch(/\d+ characters left out[\s\S]*x the end/);
    expect(third?.length).toBeLessThan(12_000);
    expect(result.toolCalls.map(({ result: text }) => text.length)).toEqual([2_000_000, 6, 6]);
  });

  it('keeps the end of a long text from a line on: half a line may be half a secret, which nobody masks', async () => {
    const lines = 'password = "abcdEFGH1234ijkl5678mnop"\n'.repeat(60_000);
    on.fake.script({ calls: [callLook('big')], reasoning: 'All.' }, { answer: 'Read.' });
    const { toolCalls } = await on.run({ tools: [look({ run: async () => lines })] });
    expect(toolCalls[0]?.result).toMatch(/\d+ characters left out …\]\npassword = /);
  });

  it('is told to conclude once the conversation has 500,000 bytes', async () => {
    let round = 0;
    on.fake.byDefault({
      calls: request => (/too long; no tool/.test(request.messages.at(-1)?.text ?? '') ? [] : [callLook(`${round++}`)]),
      answer: request => (/too long; no tool/.test(request.messages.at(-1)?.text ?? '') ? 'In short.' : ''),
      reasoning: 'More.',
    });
    const calls = Array.from({ length: 6 }, (_, index) => callLook(`${index}`));
    on.fake.script({ calls, reasoning: 'Much.' });
    const result = await on.run({
      limits: { truncLimit: 90_000, bytes: 500_000 },
      tools: [look({ run: async () => 'y'.repeat(60_000) })],
    });
    expect(result).toMatchObject({ stopReason: 'max_bytes', text: 'In short.' });
    expect(result.rounds).toBeLessThan(8);
    expect(Math.max(...on.fake.requests.map(({ body }) => JSON.stringify(body).length))).toBeLessThan(650_000);
  });

  it('ends at once when it is aborted: while a model is asked or answers, at the gate, and in a tool', async () => {
    const states: [name: string, abortAt: (abort: () => void) => Promise<unknown>][] = [
      [
        'before',
        abort => {
          abort();
          return Promise.resolve();
        },
      ],
      [
        'asking',
        abort => {
          on.fake.script({ fault: 'hang_before_headers' });
          setTimeout(abort, 60);
          return Promise.resolve();
        },
      ],
      [
        'answering',
        abort => {
          on.fake.script({ fault: 'hang_mid_stream' });
          setTimeout(abort, 90);
          return Promise.resolve();
        },
      ],
    ];
    for (const [name, prepare] of states) {
      const stop = new AbortController();
      await prepare(() => stop.abort());
      await expect(on.run({ signal: stop.signal }), name).rejects.toMatchObject({ kind: 'cancelled' });
    }
    on.fake.byDefault({ calls: [callLook('gate')], reasoning: 'On.' });
    const atGate = new AbortController();
    const onToolCall = () => {
      atGate.abort();
      return { action: 'allow' as const };
    };
    const gate = on.run({ signal: atGate.signal, onToolCall });
    await expect(gate).rejects.toMatchObject({ kind: 'cancelled' });
    const inTool = new AbortController();
    let heard = false;
    const tools = [
      look({
        run: (_args, { signal }) => {
          signal.addEventListener('abort', () => (heard = true));
          inTool.abort();
          return new Promise<string>(() => {});
        },
      }),
    ];
    await expect(on.run({ signal: inTool.signal, tools })).rejects.toMatchObject({ kind: 'cancelled' });
    expect(heard).toBe(true);
    await expect.poll(() => on.fake.openSockets()).toBe(0);
  });

  it('streams what is said, and goes on in a later run from where it was', async () => {
    on.fake.script({ calls: [callLook('gate')], answer: 'I look.', reasoning: 'So.' }, { answer: 'It is shut.' });
    const heard: string[] = [];
    const first = await on.run({ onText: delta => void heard.push(delta) });
    expect(heard.join('')).toContain('It is shut.');
    on.fake.script({ answer: 'As I said.' });
    const second = await on.run({ message: 'And now?', history: first.turns });
    expect(second.text).toBe('As I said.');
    const told =
      on.fake.requests
        .at(-1)
        ?.messages.map(({ text }) => text)
        .join('\n') ?? '';
    for (const part of ['Look at the gate.', 'seen gate', 'It is shut.', 'And now?']) expect(told).toContain(part);
  });

  it('takes a history with calls where no tools are offered', async () => {
    on.fake.script({ calls: [callLook('gate')], reasoning: 'So.' }, { answer: 'It is shut.' }, { answer: 'Yes.' });
    const first = await on.run({});
    const second = await on.run({ message: 'Sure?', history: first.turns, tools: [] });
    expect(second.text).toBe('Yes.');
  });

  it('tells the model of arguments that are no JSON object, and sends none of them back', async () => {
    // On Gemini's wire arguments are always an object.
    const args = vendor.id === 'google' ? {} : '{"at": "gate';
    on.fake.script({ calls: [{ name: 'look', args }], reasoning: 'So.' }, { answer: 'Sorry.' });
    const result = await on.run({});
    expect(result.text).toBe('Sorry.');
    expect(result.toolCalls).toMatchObject([{ outcome: 'invalid' }]);
    const told =
      on.fake.requests
        .at(-1)
        ?.messages.map(({ text }) => text)
        .join('\n') ?? '';
    expect(told).toMatch(vendor.id === 'google' ? /must be a text/ : /were no JSON object/);
  });

  it('has at most four marks for the cache where the vendor wants them, on the newest rounds', async () => {
    on.fake.script(...Array.from({ length: 8 }, (_, index) => ({ calls: [callLook(`${index}`)], reasoning: 'On.' })), {
      answer: 'Done.',
    });
    await on.run({});
    const marks = on.fake.requests.map(({ body }) => JSON.stringify(body).split('"cache_control"').length - 1);
    expect(Math.max(...marks)).toBe(vendor.id === 'anthropic' ? 4 : 0);
  });
});

describe('the calls of one round', () => {
  it('run at the same time where they only read, four at once, and alone and in order where they do more', async () => {
    const on = await agentOn(loopVendors[0]!);
    try {
      const kinds = ['look', 'look', 'look', 'look', 'look', 'change', 'look', 'change'];
      on.fake.script(
        { calls: kinds.map((name, index) => ({ name, args: { at: `${index}` } })), reasoning: 'All.' },
        {},
      );
      const running = new Set<string>();
      const seen: string[] = [];
      let most = 0;
      const tool = (name: string, effect: 'read' | 'write') =>
        look({
          name,
          effect,
          run: async ({ at }) => {
            running.add(String(at));
            most = Math.max(most, running.size);
            if (name === 'change') expect([...running]).toEqual([String(at)]);
            await new Promise(resolve => setTimeout(resolve, 5));
            running.delete(String(at));
            seen.push(String(at));
            return `did ${String(at)}`;
          },
        });
      const result = await on.run({ tools: [tool('look', 'read'), tool('change', 'write')] });
      expect(most).toBe(4);
      expect(seen.slice(-4)).toEqual(['4', '5', '6', '7']);
      expect(result.toolCalls.map(({ result: text }) => text)).toEqual(kinds.map((_, index) => `did ${index}`));
    } finally {
      await on.close();
    }
  });

  it('count for the end of a run, and what was said before it does not', async () => {
    const on = await agentOn(loopVendors[1]!);
    try {
      on.fake.script({ calls: [callLook('gate')] }, { answer: 'Done.' });
      const history = [asMessage('user', 'turn', 'x '.repeat(260_000)), asMessage('assistant', 'turn', 'Long.')];
      expect(await on.run({ history, limits: { bytes: 1_000 } })).toMatchObject({ text: 'Done.', stopReason: 'done' });
    } finally {
      await on.close();
    }
  });

  it('are asked for again when the answer with them broke off, and refused beyond thirty-two', async () => {
    const on = await agentOn(loopVendors[1]!);
    try {
      on.fake.script(
        { fault: 'error_in_stream', after: 0 },
        { calls: Array.from({ length: 40 }, (_, index) => callLook(`${index}`)), reasoning: 'Many.' },
        { answer: 'Done.' },
      );
      const result = await on.run({});
      expect(result.text).toBe('Done.');
      const outcomes = result.toolCalls.map(({ outcome }) => outcome);
      expect(outcomes.filter(outcome => outcome === 'ok')).toHaveLength(32);
      expect(outcomes.slice(32)).toEqual(Array(8).fill('refused'));
      expect(on.fake.violations).toEqual([]);
    } finally {
      await on.close();
    }
  });
});

it('a run tells a warning once, however many rounds it comes with and however often the run stops', async () => {
  const on = await agentOn(loopVendors[1]!);
  try {
    on.fake.script({ calls: [callLook('gate')] }, { calls: [callLook('wall')] }, { answer: 'Done.' });
    const ask: AgentParts['ask'] = async question => ({ ...(await on.team.ask(question)), warnings: ['Mind.'] });
    const parts: AgentParts = { ask, clock: realClock(), emit() {}, mask: async text => ({ text, found: {} }) };
    const input = (waitsAt: string): AgentInput => ({
      ...{ reqId: 'run-1', tool: 'agent', mark: '0123456789ab', candidates: [on.candidates[0]!], preamble: [] },
      ...{ message: 'Look.', tools: [look()], signal: new AbortController().signal },
      onToolCall: ({ args }) => ({ action: args.at === waitsAt ? 'wait' : 'allow' }),
    });
    const first = await runUntilStopped(parts, input('wall'));
    if (!('stopped' in first)) throw new TypeError('it did not stop');
    expect(first.stopped.warnings).toEqual(['Mind.']);
    const last = await runUntilStopped(parts, input(''), structuredClone(first.stopped));
    expect(last).toMatchObject({ text: 'Done.', rounds: 3, warnings: ['Mind.'] });
  } finally {
    await on.close();
  }
});
