import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { createBus } from '../../src/observability/event-bus.ts';
import { createBreadcrumbs } from '../../src/observability/file-logs.ts';
import { createMask } from '../../src/observability/secret-masking.ts';
import { createStderr } from '../../src/observability/stderr-log.ts';
import { canaries } from '../support/canaries.ts';
import { manualClock } from '../support/clock.ts';
import { tempProject } from '../support/temp-project.ts';

const r = 'cAnArY7Zt9Kx2Bv4Lm8Np1Rw5Yc3Hd6Fg0Js9AeUi3Oo';

const project = await tempProject();
afterAll(project.dispose);
const { maskDeep } = createMask({ secret: 'pepper', keys: ['OPERATORCANARY'] });

function eventsWith(text: string): AppEvent[] {
  const call = { reqId: '6c1f4ab2', tool: 'chat' };
  return [
    { type: 'call.start', ...call, owner: text, client: text },
    {
      type: 'route.plan',
      ...call,
      class: text,
      reasons: [text],
      requested: text,
      chosen: [text],
      webSearch: false,
      classifier: { asked: text, failed: text },
    },
    { type: 'call.end', ...call, status: text, elapsedMs: 1, code: 'API_ERROR' },
    {
      type: 'model.attempt',
      ...call,
      attempt: 1,
      provider: text,
      model: text,
      elapsedMs: 1,
      outcome: 'failed',
      class: text,
      next: text,
    },
    {
      type: 'breaker.change',
      provider: text,
      model: text,
      scope: 'model',
      from: 'closed',
      to: 'open',
      class: text,
      calls: 1,
      failures: 1,
      consecutive: 1,
    },
    { type: 'files.read', ...call, embedded: [text], skipped: [{ path: text, code: 'secret' }] },
    { type: 'warning', where: text, message: JSON.stringify({ body: JSON.stringify({ text }) }) },
  ];
}

/** How errors and requests carry a text about. */
function wrappings(text: string): unknown[] {
  const error = new Error(`upstream: ${text}`, { cause: new AggregateError([new Error(text)], text) });
  return [
    error,
    Object.assign(new Error('upstream'), {
      responseBody: JSON.stringify({ error: { message: text } }),
      requestHeaders: { note: text },
    }),
    { argv: ['node', 'main.js', `--note=${text}`] },
    { headers: new Headers({ note: text.replaceAll('\n', ' ') }) },
    new Map([[text, new Set([text])]]),
    { [text]: { deep: [[text]] } },
  ];
}

describe('canary secrets', () => {
  it('appear nowhere in what the sinks write', async () => {
    const stderr: string[] = [];
    const problems: unknown[] = [];
    const bus = createBus({
      clock: manualClock(),
      mask: maskDeep,
      sinks: [
        createBreadcrumbs({ folder: project.path('logs') }),
        createStderr({ level: 'debug', write: line => void stderr.push(line) }),
      ],
      onSinkError: (...problem) => void problems.push(problem),
    });
    for (const [text] of canaries) for (const event of eventsWith(text)) bus.emit(event);
    await bus.close();

    expect(problems).toEqual([]);
    expect(stderr).toHaveLength(canaries.length * 7);
    const files = await readdir(project.path('logs'));
    const logs = await Promise.all(files.map(file => readFile(join(project.path('logs'), file), 'utf8')));
    const written = [...stderr, ...logs].join('');
    expect(written.match(/\[masked:/g)?.length).toBeGreaterThan(canaries.length * 12);
    for (const [, secret] of canaries) expect(written.includes(secret), secret).toBe(false);
  });

  it('appear nowhere in errors with causes, headers, arguments and maps', () => {
    for (const [text, secret] of canaries) {
      for (const wrapped of wrappings(text)) expect(JSON.stringify(maskDeep(wrapped))).not.toContain(secret);
    }
  });
});

describe('masking plain data', () => {
  it('keeps numbers, booleans, dates and the shape', () => {
    const value = { n: 1, yes: true, none: null, list: [1, 'a'], at: new Date(0), usage: { input: 5 } };
    expect(maskDeep(value)).toEqual({ ...value, at: '1970-01-01T00:00:00.000Z' });
  });

  it('hides whole what is named like a secret, whatever it looks like', () => {
    const masked = JSON.stringify(
      maskDeep({ authorization: 'Basic x', Cookie: ['a=b'], password: 'hunter2', 'x-api-key': 'short', tokens: '12' }),
    );
    expect(masked).not.toMatch(/Basic|a=b|hunter2|short/);
    expect(masked).toContain('"tokens":"12"');
  });

  it('is not troubled by circles, depth, getters that throw and values without a text', () => {
    const circle: Record<string, unknown> = { big: 1n, run: () => 1, bytes: new Uint8Array(3) };
    circle.self = circle;
    Object.defineProperty(circle, 'bad', {
      enumerable: true,
      get: () => {
        throw new Error('no');
      },
    });
    expect(maskDeep(circle)).toEqual({
      big: '1',
      run: '[function]',
      bytes: '[3 bytes]',
      self: '[circular]',
      bad: '[unreadable]',
    });
    let deep: unknown = 'end';
    for (let level = 0; level < 10_000; level++) deep = { deep };
    expect(JSON.stringify(maskDeep(deep))).toContain('[too deep]');
  });

  it('keeps the words of errors, and what addresses, sets, maps and headers hold', () => {
    const placeholder = expect.stringMatching(/^\[masked:secret:[0-9a-f]{8}\]$/);
    const cause = new AggregateError([new Error('inner')], 'several');
    const masked = maskDeep({
      error: new TypeError('no', { cause }),
      url: new URL('https://u:pw@host/x'),
      set: new Set(['a', 1]),
      map: new Map([['a', new Headers({ note: 'b', authorization: 'c' })]]),
      password: 'hunter2',
      cookie: ['a=b', '[masked:secret:01234567]', ''],
      secret: { inner: 1 },
    });
    expect(masked).toEqual({
      error: {
        ...{ name: 'TypeError', message: 'no', stack: expect.stringContaining('TypeError: no') },
        cause: expect.objectContaining({ message: 'several', errors: [expect.objectContaining({ message: 'inner' })] }),
      },
      url: expect.stringMatching(/^https:\/\/u:\[masked:url_password:\w+\]@host\/x$/),
      set: ['a', 1],
      map: { a: { note: 'b', authorization: placeholder } },
      password: placeholder,
      cookie: [placeholder, '[masked:secret:01234567]', ''],
      secret: { inner: 1 },
    });
    expect(Object.keys(maskDeep(new Error('no')) as object)).toEqual(['name', 'message', 'stack']);
    let deep: unknown = 'end';
    for (let level = 0; level < 12; level++) deep = { deep };
    expect(JSON.stringify(maskDeep(deep))).toContain('end');
    expect(JSON.stringify(maskDeep({ deep }))).toContain('[too deep]');
  });

  it('lifts bytes and texts that are longer than asked for, as they are', () => {
    const { maskLifting } = createMask({ secret: 'pepper', keys: ['OPERATORCANARY'] });
    const value = { short: 'OPERATORCANARY', long: 'OPERATORCANARY.', bytes: new Uint8Array(2) };
    expect(maskLifting(value, 14, part => ({ lifted: part }))).toEqual({
      short: expect.stringMatching(/^\[masked:own_key/),
      long: { lifted: 'OPERATORCANARY.' },
      bytes: { lifted: new Uint8Array(2) },
    });
  });

  it('does not touch what it was given', () => {
    const given = { note: `sk-proj-${r}` };
    maskDeep(given);
    expect(given.note).toContain(r);
  });
});
