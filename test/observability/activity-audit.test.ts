import { readFile } from 'node:fs/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import type { Sink } from '../../src/observability/event-bus.ts';
import { createActivity, createAudit } from '../../src/observability/file-logs.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

const projects: TempProject[] = [];
afterEach(async () => {
  await Promise.all(projects.splice(0).map(project => project.dispose()));
});

async function folder(): Promise<string> {
  const project = await tempProject();
  projects.push(project);
  return project.path('logs');
}

const at = Date.UTC(2030, 0, 2);
const ts = '2030-01-02T00:00:00.000Z';

async function written(sink: Sink, events: AppEvent[], path: string): Promise<unknown[]> {
  for (const event of events) await sink.write([{ at, event }]);
  const text = await readFile(path, 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line));
}

const begin = (reqId: string, owner: string): AppEvent => ({
  type: 'call.start',
  reqId,
  tool: 'chat',
  owner,
  client: 'ide',
});
const end = (reqId: string, rest: Partial<Extract<AppEvent, { type: 'call.end' }>> = {}): AppEvent => ({
  type: 'call.end',
  reqId,
  tool: 'chat',
  status: 'success',
  elapsedMs: 12,
  ...rest,
});
const attempt = (reqId: string, rest: Partial<Extract<AppEvent, { type: 'model.attempt' }>>): AppEvent => ({
  type: 'model.attempt',
  reqId,
  attempt: 1,
  tool: 'chat',
  provider: 'openai',
  model: 'm',
  elapsedMs: 5,
  outcome: 'ok',
  ...rest,
});
const usage = { input: 100, output: 20, reasoning: 5, cacheRead: 60, cacheWrite: 0 };

describe('the activity log', () => {
  it('says when a call began and what it came to, each call by itself', async () => {
    const logs = await folder();
    const events: AppEvent[] = [
      begin('r1', 'ann'),
      begin('r2', 'bob'),
      attempt('r1', { outcome: 'retry', class: 'rate_limit' }),
      attempt('r2', { outcome: 'skipped', model: 'never-asked' }),
      attempt('r1', { usage, costUsd: 0.5 }),
      { type: 'files.read', reqId: 'r1', tool: 'chat', embedded: ['a.ts', 'b.ts'], skipped: [] },
      end('r1'),
      end('r2', { status: 'error', code: 'API_ERROR' }),
      end('unheard of'),
    ];
    const ended = { act: 'end', tool: 'chat', client: 'ide', elapsed_ms: 12 };
    const none = { input: 0, output: 0, reasoning: 0, cache_read: 0, cache_write: 0 };
    expect(
      await written(createActivity({ folder: logs }, { now: () => at }), events, `${logs}/activity.jsonl`),
    ).toEqual([
      { ts, act: 'begin', req_id: 'r1', tool: 'chat', owner: 'ann', client: 'ide' },
      { ts, act: 'begin', req_id: 'r2', tool: 'chat', owner: 'bob', client: 'ide' },
      {
        ts,
        ...ended,
        req_id: 'r1',
        owner: 'ann',
        status: 'success',
        models: ['openai:m'],
        attempts: 2,
        usage: { input: 100, output: 20, reasoning: 5, cache_read: 60, cache_write: 0 },
        cost_usd: 0.5,
        files_sent: 2,
      },
      {
        ts,
        ...ended,
        req_id: 'r2',
        owner: 'bob',
        status: 'error',
        code: 'API_ERROR',
        models: [],
        attempts: 0,
        usage: none,
        cost_usd: 0,
        files_sent: 0,
      },
    ]);
  });
});

describe('the audit log', () => {
  it('says who had which files read and written, and what was refused', async () => {
    const logs = await folder();
    const skipped = [
      { path: '.env', code: 'secret' },
      { path: 'big.bin', code: 'too_large' },
    ];
    const events: AppEvent[] = [
      begin('r1', 'ann'),
      { type: 'files.read', reqId: 'r1', tool: 'chat', embedded: ['a.ts', 'b.ts'], skipped },
      { type: 'files.written', reqId: 'r1', tool: 'chat', path: '/p/out.md' },
      { type: 'files.written', reqId: 'r1', tool: 'chat', path: '/etc/out.md', code: 'SECURITY' },
      end('r1'),
      begin('r2', 'bob'),
      end('r2', { status: 'error', code: 'SECURITY', reason: '/etc/passwd is outside.' }),
      begin('r3', 'bob'),
      end('r3', { status: 'error', code: 'API_ERROR', reason: 'The vendor is down.' }),
    ];
    const ann = { ts, req_id: 'r1', tool: 'chat', owner: 'ann', client: 'ide' };
    const bob = { ts, tool: 'chat', owner: 'bob', client: 'ide' };
    expect(await written(createAudit({ folder: logs }, { now: () => at }), events, `${logs}/audit.jsonl`)).toEqual([
      { ...ann, act: 'begin' },
      { ...ann, act: 'read', decision: 'allowed', files: ['a.ts', 'b.ts'] },
      { ...ann, act: 'read', decision: 'refused', files: ['.env'], reason: 'secret' },
      { ...ann, act: 'write', decision: 'allowed', files: ['/p/out.md'] },
      { ...ann, act: 'write', decision: 'refused', files: ['/etc/out.md'], reason: 'SECURITY' },
      { ...ann, act: 'call', decision: 'allowed', status: 'success' },
      { ...bob, req_id: 'r2', act: 'begin' },
      {
        ...bob,
        req_id: 'r2',
        act: 'call',
        decision: 'refused',
        status: 'error',
        code: 'SECURITY',
        reason: '/etc/passwd is outside.',
      },
      { ...bob, req_id: 'r3', act: 'begin' },
      {
        ...bob,
        req_id: 'r3',
        act: 'call',
        decision: 'allowed',
        status: 'error',
        code: 'API_ERROR',
        reason: 'The vendor is down.',
      },
    ]);
  });
});

describe('a call that never ended', () => {
  it('has a begin in both logs, and an end that says so when the process closed in good order', async () => {
    const logs = await folder();
    const clock = { now: () => at };
    for (const [sink, file] of [
      [createAudit({ folder: logs }, clock), 'audit.jsonl'],
      [createActivity({ folder: logs }, clock), 'activity.jsonl'],
    ] as const) {
      const before = await written(sink, [begin('r1', 'ann'), begin('r2', 'bob'), end('r2')], `${logs}/${file}`);
      expect(before.filter(line => JSON.stringify(line).includes('"r1"'))).toMatchObject([{ act: 'begin' }]);
      await sink.close?.();
      const after = await written(sink, [], `${logs}/${file}`);
      expect(after).toHaveLength(before.length + 1);
      expect(after.at(-1)).toMatchObject({ req_id: 'r1', owner: 'ann', tool: 'chat', status: 'unfinished' });
    }
  });
});
