import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { onAbort, orAbort } from '../../core/concurrency.ts';
import { securityError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { isLoopback } from '../access/addresses.ts';
import { lineOf, probeReader, textSplitter } from '../mcp/lines.ts';
import { MessageForwarder, type MessageForwarderOptions } from './relay.ts';
import { createKeptToken, type DaemonCommand, reachDaemon, startDaemon, takeStartLock } from './start-daemon.ts';
import { type DaemonAddress, openWebSocketLink } from './websocket-link.ts';

export interface ProxyOptions extends Omit<DaemonAddress, 'bridge' | 'token'> {
  /** The operator's token, or none where he named the daemon; else ours, which only a daemon of this user's data folder is shown. */
  access: { token: string | undefined } | { isOurs(): Promise<boolean> };
  /** Folder in which this user's proxies keep the token and agree on who starts a daemon. */
  home: string;
  /** How to start a daemon where there is none; absent: none is started. Its token is added to the environment. */
  daemon: DaemonCommand | undefined;
  /** Bytes of the longest message. */
  maxBytes: number;
  clock: Clock;
  onRemark(text: string): void;
  input: AsyncIterable<Buffer | string>;
  output: Writable;
  stop: AbortSignal;
}

/** What the daemon has not taken yet may fill so much memory. */
const maxUnsent = 1_048_576;
const pauseMs = 20;
/** A daemon that takes calls tells of itself in the data folder by then. */
const announceMs = 2_000;
const askEveryMs = 100;

/** Carries messages between one client and a daemon that many share until the client ends its side, or `stop` is aborted. */
export async function runProxy(options: ProxyOptions): Promise<void> {
  const { clock, maxBytes, onRemark, input, output, stop } = options;
  const write = (line: string, onTaken?: () => void) => {
    const wasFull = output.writableNeedDrain;
    if (output.write(lineOf(line), failed => !failed && onTaken?.()) || wasFull) return;
    forwarder.pause();
    output.once('drain', () => forwarder.resume());
  };
  const forwarder = new MessageForwarder({ open: openerOf(options), toClient: write, onRemark, clock });
  const end = new AbortController();
  const onStop = () => {
    end.abort();
    forwarder.close();
  };
  const forget = onAbort(stop, onStop);
  // Not awaited: a client that leaves before there is a daemon is noticed all the same.
  const started = forwarder.start().catch((error: unknown) => {
    // Whoever is gone needs no connection.
    if (end.signal.aborted) return;
    end.abort();
    throw error;
  });
  started.catch(() => undefined);
  const split = textSplitter(maxBytes, {
    onText: line => forwarder.take(line),
    onRefused: refused => write(JSON.stringify(refused)),
  });
  try {
    for await (const piece of until(input, end.signal)) {
      split(typeof piece === 'string' ? Buffer.from(piece) : piece);
      while (forwarder.unsent() > maxUnsent && !end.signal.aborted) await clock.sleep(pauseMs);
    }
    // Scripts often leave out the end of their last line.
    if (!end.signal.aborted) split(Buffer.from('\n'));
    const stopProbes = probeReader(message => write(JSON.stringify(message)), 50);
    if (!end.signal.aborted) await Promise.race([forwarder.endInput(), once(end.signal, 'abort')]);
    stopProbes();
  } finally {
    onStop();
    forget();
  }
  await started;
}

/** The items of a sequence until a signal; what the sequence reads from stays open. */
async function* until<Item>(items: AsyncIterable<Item>, stop: AbortSignal): AsyncGenerator<Item> {
  const iterator = items[Symbol.asyncIterator]();
  for (;;) {
    const next = await orAbort(iterator.next(), stop).catch(error => {
      if (!stop.aborted) throw error;
    });
    if (!next || next.done) return;
    yield next.value;
  }
}

function openerOf(options: ProxyOptions): MessageForwarderOptions['open'] {
  const { url, access, home, daemon, clock, onRemark } = options;
  const bridge = randomUUID();
  const kept = createKeptToken(`${home}/daemon.token`);
  const given = 'token' in access ? access.token : undefined;
  const begin = (command: DaemonCommand) => {
    const release = takeStartLock(`${home}/daemon.start`, process.pid, clock.now());
    if (!release) return undefined;
    const env = { ...command.env, POLYLOGUE_TOKEN: given ?? kept.readOrMake() };
    return { daemon: startDaemon({ ...command, env }), release };
  };
  // A daemon elsewhere is started by somebody there.
  const start = daemon && isLoopback(new URL(url).hostname) ? () => begin(daemon) : undefined;
  const tokenFor = async (signal: AbortSignal) => {
    if ('token' in access) return access.token;
    for (let left = announceMs; !(await access.isOurs()); left -= askEveryMs) {
      if (left <= 0)
        throw securityError(`The daemon at ${url} does not belong to this data directory and may be anybody's.`, {
          next: 'Set POLYLOGUE_PORT to a port that nobody uses; or, where you trust it, name it with --url, and give POLYLOGUE_TOKEN.',
        });
      await clock.sleep(askEveryMs, signal);
    }
    return kept.read();
  };
  return async (listener, again, signal) => {
    await reachDaemon({ url, start, clock, onRemark }, again, signal);
    return openWebSocketLink({ ...options, bridge, token: await tokenFor(signal) }, listener, clock);
  };
}
