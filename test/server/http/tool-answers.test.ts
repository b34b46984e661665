import { afterEach, describe, expect, it } from 'vitest';
import type { Daemon, DaemonOptions } from '../../../src/server/daemon/daemon.ts';
import { bareDaemon } from '../../support/bare-daemon.ts';
import { manualClock } from '../../support/clock.ts';
import { failureOf, replyOf, type ScriptedCall, scriptedHost } from '../../support/scripted-host.ts';

let daemon: Daemon;
afterEach(() => daemon.close());

async function start(call: ScriptedCall, options: Partial<DaemonOptions> = {}): Promise<void> {
  daemon = await bareDaemon(scriptedHost(call), options);
}

const ask = (path: string, init: RequestInit = {}) => fetch(`${daemon.url}${path}`, init);
const post = (headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json', ...headers },
  body: '{}',
});

describe('a failed call is told by a status', () => {
  it.each([
    // Clients that send 5xx again by themselves would pay twice.
    ['INTERRUPTED', 'interrupted', 409],
    ['CANCELLED', 'cancelled', 409],
    // What is too large stays so, however often it is sent.
    ['LIMIT', 'size', 413],
    ['LIMIT', 'tokens', 413],
    ['LIMIT', 'files', 413],
    ['LIMIT', 'rate', 429],
    ['LIMIT', 'over_capacity', 503],
    ['API_ERROR', 'size', 502],
    ['INTERNAL_SERVER_ERROR', 'bug', 500],
  ])('%s of class %s: %i', async (code, kind, status) => {
    await start(async () => failureOf(code, kind));
    expect((await ask('/api/tools/echo', post())).status).toBe(status);
  });
});

it('a stream of a call that says nothing for long says every 15 s that it lives', async () => {
  const clock = manualClock();
  let end = () => {};
  const over = new Promise<void>(resolve => {
    end = resolve;
  });
  await start(() => over.then(() => replyOf({ content: 'At last.' })), { clock });
  const response = await ask('/api/tools/echo', post({ Accept: 'text/event-stream' }));
  await clock.advance(15_000);
  await clock.advance(15_000);
  end();
  const text = await response.text();
  expect(text.match(/^: keepalive$/gm)).toHaveLength(2);
  expect(text).toContain('event: result\ndata: {"is_error":false,"reply":{"content":"At last."}}');
});

it('a key that is empty names no call: its client is gone when it is gone', async () => {
  const keys: unknown[] = [];
  await start(async ({ session }) => {
    keys.push(session?.idempotencyKey);
    return replyOf({});
  });
  await ask('/api/tools/echo', post({ 'Idempotency-Key': '' }));
  await ask('/api/tools/echo', post({ 'Idempotency-Key': 'mine' }));
  expect(keys).toEqual([undefined, 'mine']);
});

it('an answer of three megabytes comes whole, in a stream and out of one', async () => {
  const said = 'x'.repeat(3_000_000);
  await start(async () => replyOf({ said }));
  for (const accept of ['text/event-stream', 'application/json']) {
    const answer = await (await ask('/api/tools/echo', post({ Accept: accept }))).text();
    expect(answer.includes(said), accept).toBe(true);
  }
});
