import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../src/core/ports.ts';
import type { ToolHost } from '../../src/core/tool-host.ts';
import { createAddressGuard } from '../../src/server/access/addresses.ts';
import { createAdmission } from '../../src/server/access/admission.ts';
import { type Refusal, refusalResponse } from '../../src/server/access/caller.ts';
import { type CapacityRules, createCapacity } from '../../src/server/access/limits.ts';
import { createIdentify, createTokens, digestOf, type TokenEntry } from '../../src/server/access/tokens.ts';
import { openWebSockets, type WebSocketOptions, type WebSocketRules } from '../../src/server/websocket/websocket.ts';
import { realClock } from './clock.ts';
import { seededRandom } from './random.ts';

export interface TestDoorOptions {
  host: ToolHost;
  root: string;
  /** Token → its owner; the owner is the token's name too. */
  tokens?: Record<string, string>;
  clock?: Clock;
  capacity?: Partial<CapacityRules>;
  rules?: Partial<Omit<WebSocketRules, 'frames'>> & { frames?: Partial<WebSocketRules['frames']> };
  options?: Partial<WebSocketOptions>;
}

/** The WebSocket door on a port of its own, behind guards as the daemon has them. */
export async function startWsDoor({ host, root, tokens = {}, clock = realClock(), ...given }: TestDoorOptions) {
  const entries: TokenEntry[] = Object.entries(tokens).map(([token, owner]) => ({
    digest: digestOf(token),
    caller: { name: owner, owner, permissions: { readOnly: false } },
  }));
  const known = createTokens(entries);
  const identify = createIdentify(known, clock);
  const capacity = createCapacity({ perCaller: 32, inAll: 128, queued: 256, ...given.capacity });
  const admission = createAdmission(capacity, clock);
  const errors: Error[] = [];
  const door = openWebSockets({
    version: '0.0.0-test',
    clock,
    random: seededRandom(7),
    tokens: known,
    identify,
    admission,
    productOf: async () => ({ host, root, instructions: 'Ask away.' }),
    admit: () => undefined,
    maxBodyBytes: 33_554_432,
    stallMs: 30_000,
    requestMs: 600_000,
    onError: error => errors.push(error),
    ceilings: { quick: 90_000, files: 300_000, reasoning: 1_200_000 },
    kindOf: async () => 'quick',
    ...given.options,
    rules: {
      pingMs: 45_000,
      silenceMs: 120_000,
      maxBytes: 1_048_576,
      maxKept: 134_217_728,
      maxConnections: 1_024,
      ...given.rules,
      frames: {
        helloMs: 15_000,
        progressMs: 8_000,
        resultMs: 600_000,
        maxCharacters: 8_388_608,
        maxAsked: 67_108_864,
        compatText: true,
        notJoined: [],
        ...given.rules?.frames,
      },
    },
  });
  const server = createServer((_request, response) => response.writeHead(404).end());
  server.on('upgrade', async (incoming, socket, head) => {
    const { authorization } = incoming.headers;
    const caller = known.count() > 0 && authorization === undefined ? undefined : identify(authorization, '127.0.0.1');
    const bad: Refusal | undefined =
      guard(incoming.headersDistinct) ?? (caller && 'status' in caller ? caller : undefined);
    if (bad) {
      const response = refusalResponse(bad);
      socket.end(`HTTP/1.1 ${bad.status} no\r\nConnection: close\r\n\r\n${await response.text()}`);
    } else if (!caller || !('status' in caller)) door.accept({ incoming, socket, head, caller });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port }: AddressInfo = JSON.parse(JSON.stringify(server.address()));
  const guard = createAddressGuard({ bind: '127.0.0.1', address: '127.0.0.1', port, hosts: [], origins: [] });
  return {
    url: `ws://127.0.0.1:${port}/ws`,
    port,
    door,
    admission,
    capacity,
    tokens: known,
    errors,
    async close() {
      await door.close();
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

export type TestDoor = Awaited<ReturnType<typeof startWsDoor>>;
