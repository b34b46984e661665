import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { configError } from '../../../src/core/errors.ts';
import { MessageForwarder } from '../../../src/server/proxy/relay.ts';
import type { Link, LinkListener } from '../../../src/server/proxy/websocket-link.ts';
import { type ManualClock, manualClock } from '../../support/clock.ts';

/** A connection whose other end is the test. */
interface TestLink extends Link {
  sent: string[];
  listener: LinkListener;
  again: boolean;
  isPaused: boolean;
  isClosed: boolean;
}

let clock: ManualClock;
let links: TestLink[];
let client: string[];
let remarks: string[];
let relay: MessageForwarder;
let refusal: Error | undefined;

beforeEach(() => {
  clock = manualClock();
  [links, client, remarks, refusal] = [[], [], [], undefined];
  relay = new MessageForwarder({
    async open(listener, again) {
      if (refusal) throw refusal;
      const link: TestLink = {
        sent: [],
        listener,
        again,
        isPaused: false,
        isClosed: false,
        send: text => void link.sent.push(text),
        unsent: () => 0,
        pause() {
          link.isPaused = true;
        },
        resume() {
          link.isPaused = false;
        },
        close() {
          link.isClosed = true;
        },
      };
      links.push(link);
      return link;
    },
    toClient: line => void client.push(line),
    onRemark: text => void remarks.push(text),
    clock,
  });
});

const request = (id: number | string, method: string, params: object = {}) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });
const notification = (method: string, params: object = {}) => JSON.stringify({ jsonrpc: '2.0', method, params });
const answer = (id: number | string, result: object = {}) => JSON.stringify({ jsonrpc: '2.0', id, result });
const call = (id: number) => request(id, 'tools/call', { name: 'chat' });
const hello = request(0, 'initialize', { protocolVersion: '2025-11-25' });
const ready = notification('notifications/initialized');

async function lose(refused = false): Promise<void> {
  links.at(-1)!.listener.onLost({ why: 'gone', refused });
  await turn();
}

/** A 2025 client that has shaken hands. */
async function greeted(): Promise<void> {
  await relay.start();
  relay.take(hello);
  links[0]!.listener.onText(answer(0));
  relay.take(ready);
}

describe('messages', () => {
  it('pass to the byte in both directions', async () => {
    await relay.start();
    const odd = '{ "jsonrpc":"2.0",  "id":"\\u0041-1" ,"method":"tools/list", "x":1.0 }';
    relay.take(odd);
    expect(links[0]!.sent).toEqual([odd]);
    const told = '{"result":{ "n":1e2 },"jsonrpc":"2.0","id":"A-1"}';
    links[0]!.listener.onText(told);
    expect(client).toEqual([told]);
  });

  it('are one line each for the client, whatever a daemon sends', async () => {
    await relay.start();
    links[0]!.listener.onText('{\n"jsonrpc": "2.0",\r\n"method": "notifications/message"}');
    expect(client).toEqual(['{"jsonrpc":"2.0","method":"notifications/message"}']);
  });

  it('of a daemon that are none never reach the client', async () => {
    await relay.start();
    const deep = `{"method":"x",\n"params":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    for (const text of ['no JSON', 'no\nJSON', '7', '{}', '{"id":{},"method":"x"}', deep])
      links[0]!.listener.onText(text);
    expect(client).toEqual([]);
    expect(remarks).toHaveLength(6);
    const nobodys = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}';
    links[0]!.listener.onText(nobodys);
    expect(client).toEqual([nobodys]);
  });

  it('that are none are answered here', async () => {
    await relay.start();
    for (const line of ['not JSON', '[1]', 'not JSON', '{"id":1.5,"method":"x"}']) relay.take(line);
    expect(client.splice(0).map(line => JSON.parse(line))).toMatchObject(
      [-32_700, -32_600, -32_700, -32_600].map(code => ({ id: null, error: { code } })),
    );
    expect(remarks).toHaveLength(2);
    expect(links[0]!.sent).toEqual([]);
  });
});

it('carries the members of an array one by one where the revision has arrays', async () => {
  await relay.start();
  relay.take(request(1, 'initialize'));
  links[0]!.listener.onText('{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26"}}');
  const members = [request(2, 'ping'), request(3, 'ping')];
  relay.take(`[${members.join()}, ${'['.repeat(50)}${']'.repeat(50)}]`);
  expect(links[0]!.sent.slice(1)).toEqual(members);
  relay.take(`[${'['.repeat(100_000)}${']'.repeat(100_000)}]`);
  expect(client.slice(1).map(line => JSON.parse(line).error.code)).toEqual([-32_600, -32_600]);
});

describe('after the connection is lost', () => {
  it('a request without an answer goes over the next one, as it was', async () => {
    await relay.start();
    relay.take(call(1));
    relay.take(call(2));
    links[0]!.listener.onText(answer(1));
    await clock.advance(6_000);
    await lose();
    expect(links).toHaveLength(2);
    expect(links[1]!.again).toBe(true);
    expect(links[1]!.sent).toEqual([call(2)]);
    links[1]!.listener.onText(answer(2));
    expect(client).toEqual([answer(1), answer(2)]);
  });

  it('a 2025 client is introduced again, unseen, before anything else', async () => {
    await greeted();
    relay.take(request('s', 'resources/subscribe', { uri: 'polylogue://threads/1' }));
    links[0]!.listener.onText(answer('s'));
    relay.take(call(1));
    client.length = 0;
    await clock.advance(6_000);
    await lose();
    expect(links[1]!.sent).toEqual([hello]);
    relay.take(call(2));
    links[1]!.listener.onText(answer(0, { protocolVersion: '2025-11-25' }));
    await turn();
    expect(links[1]!.sent.slice(1, 3)).toEqual([
      ready,
      request('s', 'resources/subscribe', { uri: 'polylogue://threads/1' }),
    ]);
    links[1]!.listener.onText(answer('s'));
    await turn();
    expect(links[1]!.sent.slice(3)).toEqual([call(1), call(2)]);
    expect(client).toEqual([]);
  });

  it('what was unsubscribed, cancelled or answered is not said again', async () => {
    await greeted();
    relay.take(request('s', 'resources/subscribe', { uri: 'polylogue://threads/1' }));
    links[0]!.listener.onText(answer('s'));
    relay.take(request('u', 'resources/unsubscribe', { uri: 'polylogue://threads/1' }));
    links[0]!.listener.onText(answer('u'));
    relay.take(call(1));
    relay.take(notification('notifications/cancelled', { requestId: 1 }));
    await clock.advance(6_000);
    await lose();
    expect(links).toHaveLength(1);
    relay.take(call(2));
    await turn();
    links[1]!.listener.onText(answer(0));
    await turn();
    expect(links[1]!.sent).toEqual([hello, ready, call(2)]);
  });

  it('questions of the daemon are taken back, and late answers to them go nowhere', async () => {
    await relay.start();
    relay.take(call(1));
    links[0]!.listener.onText(request(5, 'elicitation/create'));
    await clock.advance(6_000);
    await lose();
    expect(client.map(line => JSON.parse(line)).at(-1)).toMatchObject({
      method: 'notifications/cancelled',
      params: { requestId: 5 },
    });
    relay.take(answer(5, { action: 'accept' }));
    expect(links[1]!.sent).toEqual([call(1)]);
    links[1]!.listener.onText(request(6, 'elicitation/create'));
    relay.take(answer(6, { action: 'accept' }));
    expect(links[1]!.sent).toEqual([call(1), answer(6, { action: 'accept' })]);
  });

  it('nobody is called while the client wants nothing', async () => {
    await greeted();
    await clock.advance(6_000);
    await lose();
    await clock.advance(60_000);
    expect(links).toHaveLength(1);
  });

  it('a request that ends every connection is answered in the end', async () => {
    await relay.start();
    relay.take(call(1));
    for (let round = 0; round < 3; round++) {
      await lose();
      await clock.advance(10_000);
    }
    expect(links).toHaveLength(3);
    expect(client.map(line => JSON.parse(line))).toMatchObject([{ id: 1, error: { code: -32_000 } }]);
    relay.take(call(2));
    await clock.advance(10_000);
    expect(links.at(-1)!.sent).toEqual([call(2)]);
  });

  it('what listens for as long as its client is there survives many daemons', async () => {
    await relay.start();
    const listen = request('l', 'subscriptions/listen', { notifications: {} });
    relay.take(listen);
    for (let round = 1; round < 8; round++) {
      await clock.advance(6_000);
      await lose();
      expect(links).toHaveLength(round + 1);
      expect(links.at(-1)!.sent).toEqual([listen]);
    }
    expect(client).toEqual([]);
  });

  it('a request that the daemon refused for what it is is not sent again', async () => {
    await relay.start();
    relay.take(call(1));
    await lose(true);
    expect(JSON.parse(client[0]!)).toMatchObject({ id: 1, error: { code: -32_000 } });
    expect(links).toHaveLength(1);
  });

  it('requests are answered with what to do where no daemon can be had, and the next one tries anew', async () => {
    await relay.start();
    relay.take(call(1));
    refusal = configError('No daemon.', { next: 'Start one.' });
    await clock.advance(6_000);
    await lose();
    expect(JSON.parse(client[0]!).error.message).toBe('No daemon. Start one.');
    refusal = undefined;
    relay.take(call(2));
    await clock.advance(6_000);
    expect(links.at(-1)!.sent).toEqual([call(2)]);
  });
});

it('a connection that is lost while a client is introduced is tried again', async () => {
  await greeted();
  relay.take(call(1));
  await clock.advance(6_000);
  await lose();
  expect(links[1]!.sent).toEqual([hello]);
  links[1]!.listener.onLost({ why: 'gone again', refused: false });
  await clock.advance(1_000);
  links[2]!.listener.onText(answer(0));
  await turn();
  expect(links[2]!.sent).toEqual([hello, ready, call(1)]);
});

it('a connection over which the client is refused is closed, and the client hears why', async () => {
  await greeted();
  await clock.advance(6_000);
  await lose();
  relay.take(call(1));
  await turn();
  const { id } = JSON.parse(links[1]!.sent[0]!);
  links[1]!.listener.onText(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32602, message: 'no such client' } }));
  await turn();
  expect(links).toHaveLength(2);
  expect(links[1]!.isClosed).toBe(true);
  expect(client.at(-1)).toContain('it refuses the client');
});

it('a daemon is read as fast as the client reads, over the next connection too', async () => {
  await relay.start();
  relay.pause();
  expect(links[0]!.isPaused).toBe(true);
  relay.take(call(1));
  await clock.advance(6_000);
  await lose();
  expect(links[1]!.isPaused).toBe(true);
  relay.resume();
  expect(links[1]!.isPaused).toBe(false);
});

it('closes its connection when the client is gone, and opens no other', async () => {
  await relay.start();
  relay.take(call(1));
  relay.close();
  expect(links[0]!.isClosed).toBe(true);
  await lose();
  await clock.advance(60_000);
  expect(links).toHaveLength(1);
  expect(client).toEqual([]);
});
