import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { toRequest } from '../../../src/server/http/requests.ts';

it('tells who holds only the signal of a request that its client is gone, also after garbage was collected', async () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const { promise, resolve } = Promise.withResolvers<AbortSignal>();
  const server = createServer((incoming, outgoing) => {
    resolve(toRequest(incoming, outgoing, new URL('http://localhost/')).signal);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const client = connect(typeof address === 'object' && address ? address.port : 0, '127.0.0.1');
  client.on('error', () => undefined).write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const signal = await promise;
  for (let times = 0; times < 3; times++) {
    await wait(20);
    collect();
  }
  expect(signal.aborted).toBe(false);
  client.destroy();
  await expect.poll(() => signal.aborted, { timeout: 5_000 }).toBe(true);
  server.close();
});
