import { runProxy } from '../../app/app.ts';
import { defineCommand, flag, isOn, textFlag } from '../command/command.ts';
import { serverEnvironment } from '../command/environment.ts';

export const connect = defineCommand({
  name: 'connect',
  group: 'Server',
  summary: 'Connect one MCP client to the daemon, started if needed',
  flags: [
    flag('url <address>', 'Daemon URL, such as http://127.0.0.1:8765 (default: the local daemon)'),
    flag('running', 'Connect only if a daemon is already running'),
  ],
  examples: [
    ['polylogue connect', "Command for a host's configuration"],
    ['polylogue connect --url https://models.example', 'Use a daemon elsewhere; POLYLOGUE_TOKEN holds its token'],
  ],
  async run({ config, environment, env, flags, launch, out }) {
    const { args } = serverEnvironment({ config, env, copied: [], refers: true });
    const stop = new AbortController();
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => stop.abort());
    // Whoever reads no answers is gone; the daemon knows what becomes of his calls.
    process.stdout.on('error', () => process.exit(0));
    try {
      await runProxy(config, {
        ...environment,
        launch: { ...launch, args },
        url: textFlag(flags, 'url'),
        onlyRunning: isOn(flags, 'running'),
        onRemark: out.warn,
        input: process.stdin,
        output: process.stdout,
        stop: stop.signal,
      });
    } finally {
      // Its other end may be open still, and would keep this process.
      process.stdin.destroy();
    }
  },
});
