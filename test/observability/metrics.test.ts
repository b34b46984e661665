import { describe, expect, it } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { createMask } from '../../src/observability/secret-masking.ts';
import { canaries } from '../support/canaries.ts';

function shown(events: readonly AppEvent[]): string[] {
  const metrics = createMetrics();
  void metrics.write(events.map(event => ({ at: 0, event })));
  return metrics.render().split('\n');
}

const end = (tool: string, rest: Partial<Extract<AppEvent, { type: 'call.end' }>> = {}): AppEvent => ({
  type: 'call.end',
  reqId: 'r',
  tool,
  status: 'success',
  elapsedMs: 300,
  ...rest,
});
const attempt = (rest: Partial<Extract<AppEvent, { type: 'model.attempt' }>> = {}): AppEvent => ({
  type: 'model.attempt',
  reqId: 'r',
  attempt: 1,
  tool: 'chat',
  provider: 'openai',
  model: 'm',
  elapsedMs: 2_000,
  outcome: 'ok',
  ...rest,
});

describe('metrics', () => {
  it('count calls by tool and status, with cumulative buckets of their time', () => {
    const lines = shown([end('chat'), end('chat', { elapsedMs: 40 }), end('chat', { status: 'error', code: 'LIMIT' })]);
    expect(lines).toContain('# TYPE polylogue_calls_total counter');
    expect(lines).toContain('polylogue_calls_total{tool="chat",status="success",code=""} 2');
    expect(lines).toContain('polylogue_calls_total{tool="chat",status="error",code="LIMIT"} 1');
    const bucket = (le: string) => `polylogue_call_duration_seconds_bucket{tool="chat",le="${le}"}`;
    expect(lines).toEqual(expect.arrayContaining([`${bucket('0.05')} 1`, `${bucket('0.25')} 1`, `${bucket('0.5')} 3`]));
    expect(lines).toContain(`${bucket('+Inf')} 3`);
    expect(lines).toContain('polylogue_call_duration_seconds_sum{tool="chat"} 0.64');
    expect(lines).toContain('polylogue_call_duration_seconds_count{tool="chat"} 3');
  });

  it('add up tokens, reads of caches and costs; what was not asked took no time', () => {
    const usage = { input: 100, output: 20, reasoning: 5, cacheRead: 60, cacheWrite: 0 };
    const lines = shown([
      attempt({ usage, costUsd: 0.25 }),
      attempt({ usage, costUsd: 0.25 }),
      attempt({ outcome: 'skipped', class: 'rate_limit' }),
    ]);
    const who = 'provider="openai",model="m"';
    expect(lines).toContain(`polylogue_tokens_total{${who},kind="input"} 200`);
    expect(lines).toContain(`polylogue_tokens_total{${who},kind="cache_read"} 120`);
    expect(lines).toContain(`polylogue_cost_usd_total{${who}} 0.5`);
    expect(lines).toContain(`polylogue_model_attempts_total{${who},outcome="skipped",class="rate_limit"} 1`);
    expect(lines).toContain(`polylogue_model_attempt_duration_seconds_count{${who}} 2`);
  });

  it('show calls that run and the state that each breaker is in now', () => {
    const start = (reqId: string): AppEvent => ({ type: 'call.start', reqId, tool: 'chat', owner: 'local' });
    const breaker = (to: string): AppEvent => ({
      type: 'breaker.change',
      provider: 'openai',
      scope: 'key',
      from: 'closed',
      to,
      calls: 1,
      failures: 1,
      consecutive: 1,
    });
    const lines = shown([start('r'), start('s'), end('chat'), breaker('open'), breaker('half_open')]);
    expect(lines).toContain('polylogue_calls_running{tool="chat"} 1');
    const states = lines.filter(line => line.startsWith('polylogue_breaker_state'));
    expect(states).toEqual(['polylogue_breaker_state{provider="openai",model="",scope="key",state="half_open"} 1']);
  });

  it('escape what stands in labels, and keep no series for a tool that is not there', () => {
    const lines = shown([
      attempt({ model: 'a"b\\c\nd' }),
      end('x'.repeat(90), { status: 'error', code: 'TOOL_NOT_FOUND' }),
    ]);
    expect(lines).toContain(
      'polylogue_model_attempts_total{provider="openai",model="a\\"b\\\\c\\nd",outcome="ok",class=""} 1',
    );
    expect(lines.join('\n')).not.toContain('xxx');
    expect(lines).toContain('polylogue_calls_total{tool="unknown",status="error",code="TOOL_NOT_FOUND"} 1');
  });

  it('stay small however many models are named', () => {
    const lines = shown(Array.from({ length: 3_000 }, (_, index) => attempt({ model: `m${index}` })));
    const series = lines.filter(line => line.startsWith('polylogue_model_attempts_total{'));
    expect(series).toHaveLength(501);
    expect(series.at(-1)).toBe(
      'polylogue_model_attempts_total{provider="other",model="other",outcome="other",class="other"} 2500',
    );
  });

  it('show no secret that came in a name', () => {
    const { maskDeep } = createMask({ secret: 'pepper', keys: ['OPERATORCANARY'] });
    const events = canaries.flatMap(([text]) => [maskDeep(attempt({ model: text, class: text })), maskDeep(end(text))]);
    const text = shown(events).join('\n');
    expect(text).toContain('[masked:');
    for (const [, secret] of canaries) expect(text.includes(secret), secret).toBe(false);
  });
});
