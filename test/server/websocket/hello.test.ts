import { afterEach, describe, expect, it } from 'vitest';
import { manualClock } from '../../support/clock.ts';
import { codeOf, helloFrames, openFrames } from '../../support/frame-client.ts';
import { scriptedHost } from '../../support/scripted-host.ts';
import { startWsDoor, type TestDoor } from '../../support/ws-door.ts';

let door: TestDoor;

afterEach(async () => {
  await door.close();
  expect(door.errors).toEqual([]);
});

const token = 'a-token-of-alice-0001';
const start = (given: Partial<Parameters<typeof startWsDoor>[0]> = {}) =>
  startWsDoor({ host: scriptedHost(), root: '/tmp', tokens: { [token]: 'alice' }, ...given });

describe('a hello', () => {
  it('opens a session under the id that was asked for, or mints one', async () => {
    door = await start();
    const named = await helloFrames(door.url, { token, session: 'editor-1' });
    expect(named.ack).toEqual({ op: 'hello_ack', ok: true, session_id: 'editor-1', resumed: false });
    const minted = await helloFrames(door.url, { token, session: 'no id!' });
    expect(minted.ack).toMatchObject({ ok: true, session_id: expect.stringMatching(/^[A-Za-z0-9_-]{20,}$/) });
    expect(door.door.connections()).toBe(2);
    expect(door.door.sessions()).toBe(2);
    await Promise.all([named.close(), minted.close()]);
  });

  it.each([
    ['no JSON', '{"op": hello', 'invalid_hello', 4000],
    ['no object', '[]', 'invalid_hello', 4000],
    ['no op', '{"token": "x"}', 'invalid_hello', 4000],
    ['a session id of another type', '{"op":"hello","session_id":7}', 'invalid_hello', 4000],
    ['JSON that is nested 100,000 deep', '['.repeat(30_000), 'invalid_hello', 4000],
    ['a call before it', '{"op":"call_tool","name":"version","request_id":"1"}', 'missing_hello', 4001],
    ['an op that is none before it', '{"op":"dance"}', 'missing_hello', 4001],
    ['no token', '{"op":"hello"}', 'unauthorized', 4003],
    ['an empty token', '{"op":"hello","token":""}', 'unauthorized', 4003],
    ['a wrong token', '{"op":"hello","token":"a-token-of-alice-0002"}', 'unauthorized', 4003],
    ['a token with a list behind it', `{"op":"hello","token":"${token}, ${token}"}`, 'unauthorized', 4003],
  ])('refuses %s, and closes', async (_what, text, error, code) => {
    door = await start();
    const client = await openFrames(door.url);
    client.raw(text);
    expect(await client.closed).toMatchObject({ code });
    expect(client.frames).toEqual([expect.objectContaining({ op: 'hello_ack', ok: false, error })]);
    expect(JSON.stringify(client.frames)).not.toContain(token);
    expect(door.door.sessions()).toBe(0);
  });

  it('is waited for 15 seconds', async () => {
    const clock = manualClock();
    door = await start({ clock });
    const client = await openFrames(door.url);
    await clock.advance(14_999);
    expect(client.socket.readyState).toBe(client.socket.OPEN);
    await clock.advance(1);
    expect(await client.closed).toMatchObject({ code: 4002 });
    await expect.poll(() => clock.pending()).toBe(0);
  });

  it('may be said once', async () => {
    door = await start();
    const client = await helloFrames(door.url, { token, session: 'editor-1' });
    client.send({ op: 'hello', token, session_id: 'editor-2' });
    const refused = await client.next('error');
    expect(codeOf(refused)).toBe('INVALID_REQUEST');
    client.send({ op: 'ping', request_id: 'still-here' });
    await client.next('pong', 'still-here');
    await client.close();
  });

  it('is short: who sends more before it is closed with 1009, however large a message may be later', async () => {
    door = await start();
    const client = await openFrames(door.url);
    client.raw(JSON.stringify({ op: 'hello', token, padding: 'x'.repeat(200_000) }));
    expect(await client.closed).toMatchObject({ code: 1009 });
    const known = await helloFrames(door.url, { token });
    known.send({ op: 'ping', request_id: 'big', padding: 'x'.repeat(2_000_000) });
    await known.next('pong', 'big');
    await known.close();
  });

  it('needs no token where the connection brought one, and may not name another caller', async () => {
    const other = 'a-token-of-bob-000001';
    door = await start({ tokens: { [token]: 'alice', [other]: 'bob' } });
    const headers = { authorization: `Bearer ${token}` };
    const known = await helloFrames(door.url, { headers });
    expect(known.ack).toMatchObject({ ok: true });
    const torn = await openFrames(door.url, { headers });
    torn.send({ op: 'hello', token: other });
    expect(await torn.closed).toMatchObject({ code: 4003 });
    await known.close();
  });

  it('takes any token where none is set, for there is one caller', async () => {
    door = await start({ tokens: {} });
    const client = await helloFrames(door.url, { token: 'whatever' });
    expect(client.ack.ok).toBe(true);
    await client.close();
  });
});

describe('before a hello', () => {
  it.each([
    ['a web page of another site', { origin: 'https://evil.example' }, '403'],
    ['a name that was pointed at this machine', { host: 'evil.example' }, '403'],
    ['a wrong token in the header', { authorization: 'Bearer a-token-of-alice-0002' }, '401'],
  ])('turns away %s, without a WebSocket', async (_what, headers, status) => {
    door = await start();
    await expect(openFrames(door.url, { headers })).rejects.toThrow(status);
    expect(door.door.connections()).toBe(0);
  });
});
