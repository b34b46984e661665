import { describe, expect, it } from 'vitest';
import { patientResponse } from '../../../src/server/mcp-http/mcp-http.ts';
import { manualClock } from '../../support/clock.ts';

const rpc = { jsonrpc: '2.0', id: 1, error: { code: -32_021, message: 'no' } };

describe('an answer', () => {
  it('that is there soon is itself, status and all', async () => {
    const clock = manualClock();
    const answer = Response.json(rpc, { status: 400 });
    expect(await patientResponse(Promise.resolve(answer), clock)).toBe(answer);
    expect(clock.pending()).toBe(0);
  });

  it.each([
    ['one document', () => Response.json(rpc), `event: message\ndata: ${JSON.stringify(rpc)}\n\n`],
    [
      'a stream',
      () => new Response('data: 1\n\n', { headers: { 'Content-Type': 'text/event-stream' } }),
      'data: 1\n\n',
    ],
    ['nothing at all', () => new Response(null, { status: 202 }), ''],
  ])('that takes long begins with signs of life and ends with %s', async (_what, late, end) => {
    const clock = manualClock();
    const { promise, resolve } = Promise.withResolvers<Response>();
    const waiting = patientResponse(promise, clock);
    await clock.advance(5_000);
    const response = await waiting;
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    await clock.advance(31_000);
    resolve(late());
    expect(await response.text()).toBe(`${': keepalive\n\n'.repeat(3)}${end}`);
    expect(clock.pending()).toBe(0);
  });

  it('that fails late breaks its stream, and one that nobody waits for is told to nobody', async () => {
    const clock = manualClock();
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const [failing, left] = [patientResponse(promise, clock), patientResponse(promise, clock)];
    await clock.advance(5_000);
    await (await left).body?.cancel();
    reject(new Error('gone'));
    await expect((await failing).text()).rejects.toThrow('gone');
    resolve(Response.json(rpc));
    expect(clock.pending()).toBe(0);
  });

  it('that fails at once fails', async () => {
    await expect(patientResponse(Promise.reject(new Error('no')), manualClock())).rejects.toThrow('no');
  });
});
