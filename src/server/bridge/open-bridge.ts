import { once } from 'node:events';
import type { Writable } from 'node:stream';
import type { Clock } from '../../domain/ports.ts';
import { isLoopback } from '../guards/loopback.ts';
import { createKeptToken } from './kept-token.ts';
import { linesOf } from './lines.ts';
import { failureAnswer } from './message.ts';
import { reachDaemon } from './reach-daemon.ts';
import { createRelay, type RelayOptions } from './relay.ts';
import { type DaemonCommand, startDaemon } from './start-daemon.ts';
import { takeStartLock } from './start-lock.ts';
import { openWebSocketLink } from './web-socket-link.ts';

export interface BridgeOptions {
  /** Of the daemon, as `http://127.0.0.1:8765`. */
  url: string;
  /** The operator's word; absent: the token of daemons that bridges start, for one on this machine. */
  token: string | undefined;
  /** The client's project; absent: he is in none. */
  root: string | undefined;
  /** Folder in which this user's bridges keep the token and agree on who starts a daemon. */
  home: string;
  /** How to start a daemon where there is none; absent: none is started. Its token is added to the environment. */
  daemon: DaemonCommand | undefined;
  /** Bytes of the longest message. */
  maxBytes: number;
  clock: Clock;
  onRemark(text: string): void;
}

export interface Bridge {
  /** Carries messages until the client ends its side, or `stop` is aborted. */
  run(input: AsyncIterable<Buffer | string>, output: Writable, stop: AbortSignal): Promise<void>;
}

/** What the daemon has not taken yet may fill so much memory. */
const mostUnsent = 1_048_576;
const pauseMs = 20;

/** One client's way to a daemon that many share. */
export function openBridge(options: BridgeOptions): Bridge {
  const { clock, maxBytes, onRemark } = options;
  return {
    async run(input, output, stop) {
      let isFull = false;
      const write = (line: string) => {
        if (output.write(`${line}\n`) || isFull) return;
        isFull = true;
        relay.pause();
        output.once('drain', () => {
          isFull = false;
          relay.resume();
        });
      };
      const relay = createRelay({ open: openerOf(options), toClient: write, onRemark, clock, maxBytes });
      try {
        await relay.start();
        for await (const line of until(linesOf(input, maxBytes), stop)) {
          if (typeof line === 'string') relay.take(line);
          else write(failureAnswer(null, -32_600, `A message may have ${maxBytes} bytes.`));
          while (relay.unsent() > mostUnsent) await clock.sleep(pauseMs, stop);
        }
      } catch (error) {
        // Only the pause above is ended by it.
        if (!stop.aborted) throw error;
      } finally {
        relay.close();
      }
    },
  };
}

/** The items of a sequence until a signal; what the sequence reads from stays open. */
async function* until<Item>(items: AsyncGenerator<Item>, stop: AbortSignal): AsyncGenerator<Item> {
  const stopped = stop.aborted ? Promise.resolve() : once(stop, 'abort');
  const end = stopped.then(() => ({ done: true, value: undefined }) as const);
  for (;;) {
    const next = await Promise.race([items.next(), end]);
    if (next.done) return;
    yield next.value;
  }
}

function openerOf({ url, token, root, home, daemon, clock, onRemark }: BridgeOptions): RelayOptions['open'] {
  const kept = createKeptToken(`${home}/daemon.token`);
  // What stands for this user on this machine is not for anybody else's.
  const isHere = isLoopback(new URL(url).hostname);
  const start =
    daemon &&
    (() => {
      const release = takeStartLock(`${home}/daemon.start`, process.pid, clock.now());
      if (!release) return undefined;
      const env = { ...daemon.env, POLYLOGUE_TOKEN: token ?? kept.readOrMake() };
      return { daemon: startDaemon({ ...daemon, env }), release };
    });
  return async (listener, again, signal) => {
    await reachDaemon({ url, start: isHere ? start : undefined, clock, onRemark }, again, signal);
    return openWebSocketLink({ url, token: token ?? (isHere ? kept.read() : undefined), root }, listener, clock);
  };
}
