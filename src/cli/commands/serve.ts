import { closeSync, openSync } from 'node:fs';
import { createProduct } from '../../app/app.ts';
import { type AppConfig, withValues } from '../../app/settings.ts';
import { inputError } from '../../core/errors.ts';
import { type CommandContext, defineCommand, flag, isOn, numberFlag, textFlag } from '../command/command.ts';

export const serve = defineCommand({
  name: 'serve',
  group: 'Server',
  summary: 'Run a daemon for many clients: HTTP, WebSocket, dashboard',
  flags: [
    flag('host <address>', 'Address to listen on (default: POLYLOGUE_HOST, else 127.0.0.1)'),
    flag('port <number>', 'Port to listen on; 0 picks a free one (default: POLYLOGUE_PORT, else 8765)'),
    flag('token <token>', 'Operator token, for testing only: visible in the process list'),
    flag('no-token', 'Let every program of this machine in, without a token'),
  ],
  examples: [
    ['polylogue serve', 'MCP at http://127.0.0.1:8765/mcp, dashboard at http://127.0.0.1:8765/'],
    ['POLYLOGUE_TOKEN=… polylogue serve --host 0.0.0.0', 'Serve other machines too; requires a token'],
    ['polylogue serve --port 0 --offline', 'Use a free port and built-in models, to try it'],
  ],
  async run(context) {
    const { environment, out } = context;
    const settings = settingsOf(context);
    const product = await createProduct(asDaemon(context.config), environment);
    const asked = Promise.withResolvers<void>();
    const onSignal = () => asked.resolve();
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, onSignal);
    let reload = async () => {};
    process.on('SIGHUP', () => (isTerminalGone() ? onSignal() : void reload()));
    try {
      const daemon = await product.openDaemon({ ...settings, log: out.warn });
      reload = daemon.reload;
      out.warn(`listening on ${daemon.url} (dashboard: ${daemon.url}/, MCP: ${daemon.url}/mcp)`);
      void product.warm();
      await asked.promise;
      // Who asks twice wants the end now.
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1));
      const hurry = new AbortController();
      const drainMs = context.config.values.app.drainSeconds * 1_000;
      const stopTimer = environment.clock.after(drainMs, () => hurry.abort());
      out.warn('stopping; waiting for running calls');
      await daemon.drain(drainMs);
      await daemon.close();
      await product.close(hurry.signal);
      stopTimer();
    } catch (error) {
      await product.close(AbortSignal.abort());
      throw error;
    }
  },
});

/** A terminal that is closed sends the signal for reading again, too: a daemon that was started in it ends with it. */
function isTerminalGone(): boolean {
  if (!process.stdin.isTTY && !process.stderr.isTTY) return false;
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return false;
  } catch {
    return true;
  }
}

function settingsOf({ flags, config }: CommandContext) {
  const isOpen = isOn(flags, 'no-token');
  const token = textFlag(flags, 'token') || undefined;
  if (isOpen && (token ?? config.values.app.token) !== undefined)
    throw inputError('--no-token contradicts the token that is set by --token or POLYLOGUE_TOKEN.', {
      next: 'Leave out --no-token to keep the token, or unset the token.',
    });
  const port = numberFlag(flags, 'port', { min: 0, max: 65_535 });
  return { host: textFlag(flags, 'host'), port, token, keepsToken: !isOpen };
}

/** Vendors that answer few at a time get no more of one daemon, unless the operator said how many. */
function asDaemon(config: AppConfig): AppConfig {
  const { app } = config.values;
  const overrides = app.maxConcurrentPerProvider ?? [];
  const isSet = (provider: string) => overrides.some(entry => entry.trim().toLowerCase().startsWith(provider));
  const usual = [`moonshot=${app.kimiCalls}`, `zhipu=${app.glmCalls}`].filter(
    entry => !isSet(entry.split('=')[0] ?? ''),
  );
  return withValues(config, { maxConcurrentPerProvider: [...usual, ...overrides] });
}
