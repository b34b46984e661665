import { loadConfig } from '../config/load.ts';
import type { Clock } from '../core/ports.ts';
import type { ToolHost } from '../core/tool-host.ts';
import { version } from '../core/version.ts';
import type { Gate } from '../server/access/admission.ts';
import type { FoundDaemon } from '../server/daemon/health-file.ts';
import { createEarlyAnswers } from '../server/mcp/early-answers.ts';
import type { StdioStreams } from '../server/mcp/stdio.ts';
import { openStdio } from '../server/mcp/stdio.ts';
import { composeFront, type Front, followsClientRoots, type ProcessEnvironment } from './compose-front.ts';
import type { Product } from './compose-product.ts';
import type { Extensions } from './extensions.ts';
import { type AppConfig, loadAppConfig, tables } from './settings.ts';

export { runProxy } from './compose-proxy.ts';
export {
  type AppConfig,
  type Extensions,
  type FoundDaemon,
  loadAppConfig,
  loadConfig,
  type ProcessEnvironment,
  type Product,
  tables,
  version,
};

/** The daemons that run on a data folder, as far as they told. */
export async function findDaemons({ home }: AppConfig, clock: Clock): Promise<FoundDaemon[]> {
  const daemons = await import('../server/daemon/health-file.ts');
  return daemons.findDaemons(daemons.healthFolder(home), clock);
}

/** Configuration → running parts. Opens nothing: databases, connections and logs come with their first use. */
export const createProduct = async (config: AppConfig, environment: ProcessEnvironment): Promise<Product> =>
  productBehind(await composeFront(config, environment), config, environment);

async function productBehind(
  front: Front,
  config: AppConfig,
  environment: ProcessEnvironment,
  isCalled = false,
): Promise<Product> {
  const { composeProduct } = await import('./compose-product.ts');
  return composeProduct(config, environment, front, isCalled);
}

/** A product that serves one client. */
export type ServedStdio = Awaited<ReturnType<typeof serveStdio>>;

/** Serves one MCP client over standard input and output. Tools are listed at once; the product is loaded by who wants more. */
export async function serveStdio(
  config: AppConfig,
  environment: ProcessEnvironment,
  streams: Pick<StdioStreams, 'input' | 'output'>,
  onError: (error: Error) => void,
) {
  const front = await composeFront(config, environment);
  const { offer, place, root, telemetry, found } = front;
  const { promise: failed, reject: fail } = Promise.withResolvers<never>();
  // Whoever waits for `closed` hears of it; before anybody can, the caller of this does.
  failed.catch(() => undefined);
  let product: Promise<Product> | undefined;
  const open = (isCalled = false) => {
    product ??= productBehind(front, config, environment, isCalled);
    product.catch(fail);
    return product;
  };
  // Stores with an address or from outside can be set up badly, which is to be told at the start.
  if (place.redis || place.own) await open();
  let gate: Gate | undefined;
  const serve = async (isCalled: boolean) => {
    const { host, instructions, projectOf } = await open(isCalled);
    const { clock, parentProcess: clientId } = environment;
    const admission = await import('../server/access/admission.ts');
    gate ??= admission.createGate(admission.memoryAlone(), clock);
    const gated = (each: ToolHost) => gate?.before(each, 'stdio') ?? each;
    const productOf = async (addresses: readonly string[]) => {
      const { host, root } = await projectOf(addresses);
      return { host: gated(host), root };
    };
    const listed = followsClientRoots(config, found) ? { clock, productOf } : undefined;
    return { host: gated(host), version, instructions, principal: { owner: 'local', root }, clientId, listed };
  };
  const early = offer && createEarlyAnswers({ ...offer, version });
  const warm = async () => (await open()).warm();
  const connection = openStdio(serve, { ...streams, early, warm, maxBytes: config.values.app.maxBodyBytes }, onError);
  return {
    /** Resolves when the connection is over; rejects where the product can't run. */
    closed: Promise.race([connection.closed, failed]),
    /** Ends the connection, and the product as its own `close` does. */
    async close(hurry?: AbortSignal) {
      if (hurry?.aborted) await gate?.shut(0);
      await connection.close();
      // A product that could not be made is told of by `closed`, and leaves nothing else to close.
      const made = await product?.catch(() => undefined);
      await (made ? made.close(hurry) : telemetry.close());
    },
  };
}
