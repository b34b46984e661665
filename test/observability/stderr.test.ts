import { describe, expect, it } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { createStderr, type LogLevel } from '../../src/observability/stderr-log.ts';

const at = Date.UTC(2030, 0, 2, 3, 4, 5);
const call = { reqId: '6c1f4ab2-0000-4000-8000-000000000000', tool: 'chat' };
const events: AppEvent[] = [
  { type: 'call.start', ...call, owner: 'local', client: 'claude-code' },
  {
    type: 'route.plan',
    ...call,
    class: 'code',
    reasons: ['it names files'],
    requested: 'auto',
    chosen: ['openai:m'],
    webSearch: false,
  },
  { type: 'files.read', ...call, embedded: ['a.ts'], skipped: [{ path: '.env', code: 'secret' }] },
  {
    type: 'model.attempt',
    ...call,
    attempt: 1,
    provider: 'openai',
    model: 'm',
    elapsedMs: 1_234,
    outcome: 'retry',
    class: 'rate_limit',
    status: 429,
    nextInMs: 500,
    next: 'retry',
  },
  {
    type: 'model.attempt',
    ...call,
    attempt: 2,
    provider: 'openai',
    model: 'm',
    elapsedMs: 20_000,
    outcome: 'ok',
    usage: { input: 10, output: 20, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
  },
  { type: 'thread.compacted', reqId: call.reqId, thread: 't1', upToSeq: 12, window: 128_000 },
  { type: 'call.end', ...call, status: 'success', elapsedMs: 21_000 },
  { type: 'call.end', ...call, status: 'error', elapsedMs: 10, code: 'API_ERROR' },
  { type: 'call.end', ...call, status: 'error', elapsedMs: 10, code: 'INTERNAL_SERVER_ERROR' },
  { type: 'warning', where: 'config', message: 'something odd' },
  {
    type: 'breaker.change',
    provider: 'openai',
    model: 'm',
    scope: 'model',
    from: 'closed',
    to: 'open',
    class: 'bad_upstream',
    calls: 9,
    failures: 6,
    consecutive: 5,
    retryInMs: 30_000,
  },
  {
    type: 'breaker.change',
    provider: 'openai',
    scope: 'key',
    from: 'half_open',
    to: 'closed',
    calls: 0,
    failures: 0,
    consecutive: 0,
  },
];

function linesAt(level: LogLevel, told: AppEvent[] = events): string[] {
  const lines: string[] = [];
  const sink = createStderr({ level, write: line => void lines.push(line) });
  void sink.write(told.map(event => ({ at, event })));
  return lines;
}

describe('lines on stderr', () => {
  it('say when, how important, which call, and what', () => {
    expect(linesAt('debug')).toEqual(
      [
        'debug   [6c1f4ab2] chat: called by claude-code',
        'debug   [6c1f4ab2] chat: code → openai:m (it names files)',
        'info    [6c1f4ab2] chat: files read: 1, skipped: 1 (.env secret)',
        'warning [6c1f4ab2] chat: attempt 1 at openai:m retry (rate_limit 429) after 1.2 s, next attempt in 0.5 s',
        'debug   [6c1f4ab2] chat: attempt 2 at openai:m ok after 20 s, 10 tokens in, 20 out',
        'info    [6c1f4ab2] thread t1: turns up to 12 summarized for a window of 128000 tokens',
        'info    [6c1f4ab2] chat: success after 21 s',
        'warning [6c1f4ab2] chat: error (API_ERROR) after 0.0 s',
        'error   [6c1f4ab2] chat: error (INTERNAL_SERVER_ERROR) after 0.0 s',
        'warning config: something odd',
        'warning breaker of openai:m (model): closed to open for 30 s (bad_upstream); 6 of 9 failed, 5 in a row',
        'info    breaker of openai (key): half_open to closed; 0 of 0 failed, 0 in a row',
      ].map(line => `2030-01-02T03:04:05.000Z ${line}\n`),
    );
  });

  it.each([
    ['debug', 12],
    ['info', 9],
    ['warning', 5],
    ['error', 1],
    ['silent', 0],
  ] as const)('at %s are %i of twelve', (level, count) => {
    expect(linesAt(level)).toHaveLength(count);
  });

  it('cannot be forged, and cannot steer the terminal', () => {
    const message = 'a\n2030 error b\r\u001b[2J\u2028\u202eevil\u009b31m';
    const [line, ...others] = linesAt('debug', [{ type: 'warning', where: 'x', message }]);
    expect(others).toEqual([]);
    expect(line?.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Zl}\u202e]/u);
  });
});
