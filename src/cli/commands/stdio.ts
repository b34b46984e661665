import { serveStdio } from '../../app/app.ts';
import { defineCommand } from '../command/command.ts';

/** Milliseconds without progress after which output that the client does not read is given up: after the end of its input, and after a signal. */
const unreadMs = { ended: 5_000, asked: 500 };

export const stdio = defineCommand({
  name: 'stdio',
  group: 'Server',
  summary: 'Serve one MCP client over stdio (default)',
  examples: [
    ['polylogue', 'Command that hosts start'],
    ['polylogue stdio --offline', 'Use built-in models; no key needed'],
  ],
  async run({ config, environment, out }) {
    const streams = { input: process.stdin, output: process.stdout };
    const served = await serveStdio(config, environment, streams, ({ message }) => out.warn(message));
    const asked = Promise.withResolvers<void>();
    // A client that left may come back for its jobs; who sends a signal wants the end now, and kills before long.
    const hurry = new AbortController();
    asked.promise.then(() => hurry.abort());
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => asked.resolve());
    try {
      await Promise.race([served.closed, asked.promise]);
    } finally {
      // A connection that is left open would keep a process that can serve nobody.
      await served.close(hurry.signal);
    }
    // Nothing else keeps the process by now: a pipe that is full would keep it for ever.
    const leaveIn = (ms: number) => {
      let left = process.stdout.writableLength;
      const look = () => {
        if (process.stdout.writableLength === left) process.exit(0);
        left = process.stdout.writableLength;
      };
      setInterval(look, ms).unref();
    };
    leaveIn(unreadMs.ended);
    asked.promise.then(() => leaveIn(unreadMs.asked));
  },
});
