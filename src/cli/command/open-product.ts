import { createProduct } from '../../app/app.ts';
import type { Product } from '../../app/compose-product.ts';
import { type AppConfig, withValues } from '../../app/settings.ts';
import { cancelledError } from '../../core/errors.ts';
import { recordIn, textIn } from '../../core/json.ts';
import type { ToolReply, ToolRequest } from '../../core/tool-host.ts';
import { type CommandContext, type ExitCode, exitCodeOf } from './command.ts';
import { tellFailure } from './output.ts';

/** The product as a command uses it. */
export interface OpenProduct {
  product: Product;
  /** Whose threads a command works on, and in which project. */
  place: { owner: string; workspace: string };
  /** Aborted by the interrupt key. */
  signal: AbortSignal;
  /** Calls a tool as the operator of this machine; the interrupt key cancels it. */
  call(
    name: string,
    args: Record<string, unknown>,
    watch?: Pick<ToolRequest, 'onProgress' | 'onText' | 'ask'> & { signal?: AbortSignal },
  ): Promise<ToolReply>;
}

/** Starts the product for one command, with the tools that it needs, and closes it. `namedPaths` may be read outside the project. */
export async function openProduct(
  { config, environment, out }: CommandContext,
  work: (open: OpenProduct) => ExitCode,
  toolset?: string,
  namedPaths: readonly string[] = [],
): Promise<number> {
  const product = await createProduct(ofCommand(config, toolset), { ...environment, namedPaths });
  const interrupt = new AbortController();
  // A second signal exits immediately.
  const onSignal = () =>
    interrupt.signal.aborted ? process.exit(130) : interrupt.abort(cancelledError('Interrupted.'));
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal).on('SIGHUP', onSignal);
  const principal = { owner: 'local', root: product.root, client: 'polylogue command line' };
  try {
    const code = await work({
      product,
      place: { owner: principal.owner, workspace: product.root },
      signal: interrupt.signal,
      call: (name, args, { signal = interrupt.signal, ...watch } = {}) =>
        product.host.call({ name, arguments: args, principal, paged: true, ...watch }, signal),
    });
    return code ?? 0;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal).off('SIGHUP', onSignal);
    await product.close();
    // Where nobody asked for a log, what was lost or ignored is told all the same.
    const untold = product.warned.filter(({ where }) => isQuiet(config) && ['store', 'configuration'].includes(where));
    for (const { message } of untold) out.warn(message);
  }
}

const isQuiet = ({ sourceOf }: AppConfig): boolean => sourceOf('app', 'logLevel') === 'default';

/** As a command uses it, whatever MCP clients are offered; tools that the operator disabled stay so. */
function ofCommand(config: AppConfig, toolset: string | undefined): AppConfig {
  const { toolsets } = config.values.app;
  return withValues(config, {
    ...(toolset !== undefined && { toolsets: [...toolsets, toolset] }),
    // A command tells its own errors; the log is there for who asked for it.
    ...(isQuiet(config) && { logLevel: 'silent' }),
  });
}

/** What to do about a tool's error: its own advice speaks to an agent, here a person gives flags. `file`: what names a file. */
function adviceOf({ class: kind, data, next }: Record<string, unknown>, file: string): string {
  if (kind === 'confirmation') return 'Repeat the command with --yes to delete it.';
  if (recordIn(data).prompt_size !== undefined)
    return `Save the text as a file of the project, and send it with ${file}.`;
  return textIn(next).replaceAll('continuation_id', '--continue').replaceAll('absolute_file_paths', file);
}

/** Tells why a tool's call failed and what to do next; answers the exit code. */
export function showFailure({ out }: CommandContext, { document }: ToolReply, file = '--file'): number {
  const error = recordIn(document.error);
  tellFailure(out, { ...document, error: { ...error, next: adviceOf(error, file) } });
  return exitCodeOf(textIn(error.code));
}
