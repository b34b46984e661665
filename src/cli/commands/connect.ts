import { runProxy } from '../../app/app.ts';
import { defineCommand, isOn, textFlag } from '../command/command.ts';
import { serverEnvironment } from '../command/environment.ts';

export const connect = defineCommand({
  name: 'connect',
  summary: 'serve one MCP client over standard input and output by a daemon that many share; starts it when absent',
  usage: '',
  flags: [
    {
      name: 'url',
      value: 'address',
      doc: 'The daemon, as http://127.0.0.1:8765; the one of this machine unless told.',
    },
    { name: 'running', doc: 'Only by a daemon that runs already.' },
  ],
  examples: [
    ['polylogue connect', 'what hosts start in the place of polylogue'],
    ['polylogue connect --url https://models.example', 'by a daemon elsewhere; its token is in POLYLOGUE_TOKEN'],
  ],
  async run({ config, environment, env, flags, launch }) {
    const { args } = serverEnvironment({ config, env, copied: [], refers: true });
    const stop = new AbortController();
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => stop.abort());
    try {
      await runProxy(config, {
        ...environment,
        launch: { ...launch, args },
        url: textFlag(flags, 'url'),
        onlyRunning: isOn(flags, 'running'),
        onRemark: text => environment.writeError(`polylogue: ${text}\n`),
        input: process.stdin,
        output: process.stdout,
        stop: stop.signal,
      });
    } finally {
      // Its other end may be open still, and would keep this process.
      process.stdin.destroy();
    }
    return 0;
  },
});
