import { createServer, type ServerResponse } from 'node:http';
import { serveRequest, type VendorState } from './exchange.ts';
import type { FakeVendor, FakeVendorOptions } from './fake-vendor.ts';
import { createSteps } from './steps.ts';
import type { VendorKind } from './vendor-kind.ts';

/** A vendor on a free port of this machine. */
export async function startVendor(
  kind: VendorKind,
  tokenize: (text: string) => readonly number[],
  options: FakeVendorOptions,
): Promise<FakeVendor> {
  const busy = new Set<ServerResponse>();
  const state: VendorState = {
    kind,
    options,
    tokenize,
    steps: createSteps(),
    requests: [],
    violations: [],
    arrived: 0,
    answered: 0,
    closing: false,
    broken: new WeakSet(),
  };

  const server = createServer((request, response) => {
    busy.add(response);
    response.once('close', () => busy.delete(response));
    serveRequest(state, request, response).catch((error: unknown) => {
      // A client that went away in the middle of its own request broke no rule; a test's answer function that threw did.
      if (request.complete) state.violations.push(`the fake failed: ${String(error)}`);
      response.destroy();
    });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('the fake vendor has no port');

  return {
    url: `http://127.0.0.1:${address.port}${kind.root ?? '/v1'}`,
    requests: state.requests,
    violations: state.violations,
    script: (...steps) => state.steps.queue(steps),
    byDefault: step => state.steps.setDefault(step),
    openSockets: () => busy.size,
    async close() {
      state.closing = true;
      const closed = new Promise(resolve => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
