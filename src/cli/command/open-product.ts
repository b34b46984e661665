import { type AppConfig, createProduct, type Product } from '../../app/app.ts';
import { cancelledError } from '../../core/errors.ts';
import type { ToolReply, ToolRequest } from '../../core/tool-host.ts';
import type { CommandContext } from './command.ts';

/** The product as a command uses it. */
export interface OpenProduct {
  product: Product;
  /** Aborted by the interrupt key. */
  signal: AbortSignal;
  /** Calls a tool as the operator of this machine; the interrupt key cancels it. */
  call(
    name: string,
    args: Record<string, unknown>,
    watch?: Pick<ToolRequest, 'onProgress' | 'onText' | 'ask'>,
  ): Promise<ToolReply>;
}

/** Starts the product for one command, with one more group of tools if the command needs it, and closes it afterwards. */
export async function openProduct<Result>(
  { config, around }: CommandContext,
  work: (open: OpenProduct) => Promise<Result>,
  toolset?: string,
): Promise<Result> {
  const product = await createProduct(withToolset(quietly(config), toolset), around);
  const interrupt = new AbortController();
  const onSignal = () => interrupt.abort(cancelledError('It was interrupted.'));
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  const principal = { owner: 'local', root: product.root, client: 'polylogue command line' };
  try {
    return await work({
      product,
      signal: interrupt.signal,
      call: (name, args, watch = {}) =>
        product.host.call({ name, arguments: args, principal, ...watch }, interrupt.signal),
    });
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    await product.close();
  }
}

/** What MCP clients are offered says nothing of what the operator may do; tools that he disabled stay so. */
function withToolset(config: AppConfig, toolset: string | undefined): AppConfig {
  const { app } = config.values;
  if (toolset === undefined) return config;
  return { ...config, values: { ...config.values, app: { ...app, toolsets: [...app.toolsets, toolset] } } };
}

/** A command tells its own errors; the log is there for who asked for it. */
function quietly(config: AppConfig): AppConfig {
  if (config.sourceOf('app', 'logLevel') !== 'default') return config;
  return { ...config, values: { ...config.values, app: { ...config.values.app, logLevel: 'silent' } } };
}
