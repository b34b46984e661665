import { createClient } from '@redis/client';
import type { Clock } from '../../core/ports.ts';
import { replyCode, Unreachable } from '../../storage/redis/failure.ts';
import { readAuthorities } from './redis-tls.ts';

export interface RedisAsk {
  args: readonly string[];
  /** By `clock.monotonic()`. */
  deadline: number;
  /** The answer may be long: others wait behind it. */
  bulk?: boolean;
  /** Sends `ASKING` before it, as a cluster wants it while a slot moves. */
  asking?: boolean;
}

/** One connection, from the moment the server answers until it ends. */
export interface RedisSession {
  /** An answer is overdue. */
  silent(): boolean;
  /** Rejects with `Unreachable` when the answer is late, with what the server answered, or with how the connection was lost. */
  ask(ask: RedisAsk): Promise<unknown>;
  end(cause: unknown): void;
  /** Rejects when it ends. */
  ended: Promise<never>;
}

export interface RedisSessionOptions {
  url: string;
  /** File of the authorities (PEM) that are trusted for `rediss://`; absent: those of this machine. */
  caFile?: string | undefined;
  clock: Clock;
  patienceMs: number;
}

/** A server that accepts connections but does not answer is given up after this. */
const handshakeMs = 2_000;
/** A connection that stays silent for so many times as long as anybody waits, or for three seconds, is given up. */
const silenceFactor = 12;
const longestSilenceMs = 3_000;
const noAnswer = 'it does not answer';

interface Client {
  sendCommand(args: readonly string[]): Promise<unknown>;
}

/** Connects. What goes wrong later ends the session: it is never mended, only replaced. */
export async function openSession(options: RedisSessionOptions): Promise<RedisSession> {
  const { url, clock, caFile } = options;
  // Read anew for each connection: a replaced file needs no restart.
  const tls = url.startsWith('rediss:')
    ? ({ tls: true, ...(caFile !== undefined && { ca: await readAuthorities(caFile) }) } as const)
    : {};
  const { promise: ended, reject: end } = Promise.withResolvers<never>();
  const client = createClient({
    url,
    RESP: 2,
    disableClientInfo: true,
    maintNotifications: 'disabled',
    socket: { connectTimeout: handshakeMs, reconnectStrategy: false, ...tls },
  });
  client.on('error', end);
  client.on('end', () => end(new Error('the connection was closed')));
  ended.catch(() => client.destroy());
  const tooLong = clock.after(handshakeMs, () => end(new Error(noAnswer)));
  try {
    await Promise.race([client.connect().then(() => client.sendCommand(['PING'])), ended]);
  } catch (error) {
    end(error);
    throw error;
  } finally {
    tooLong();
  }
  return session(client, options, ended, end);
}

function session(
  client: Client,
  { clock, patienceMs }: RedisSessionOptions,
  ended: Promise<never>,
  end: (cause: unknown) => void,
): RedisSession {
  let silent = false;
  /** Until when long answers may take, that are on their way. */
  const bulks = new Set<number>();
  const waiting = new Set<() => void>();

  /** All that wait are told at once; a connection that stays silent is given up. */
  function overdue(): void {
    for (const giveUp of waiting) giveUp();
    if (silent) return;
    silent = true;
    clock.after(Math.min(longestSilenceMs, patienceMs * silenceFactor), () => {
      if (silent) end(new Error(noAnswer));
    });
  }

  function heard(): void {
    silent = false;
  }

  return {
    ended,
    end,
    silent: () => silent,
    async ask({ args, deadline, bulk, asking }) {
      const late = Promise.withResolvers<never>();
      const giveUp = () => late.reject(new Unreachable(noAnswer));
      const left = Math.max(0, Math.max(deadline, ...bulks) - clock.monotonic());
      // In two steps: an answer that came in while this process was busy is seen between them.
      let stop = clock.after(left * 0.8, () => {
        stop = clock.after(left * 0.2, overdue);
      });
      waiting.add(giveUp);
      if (bulk) bulks.add(deadline);
      // What it answers shows in the answer to the command behind it.
      if (asking) client.sendCommand(['ASKING']).catch(() => undefined);
      const answer = client.sendCommand(args);
      answer.then(heard, error => {
        if (replyCode(error) !== '') heard();
      });
      try {
        return await Promise.race([answer, late.promise]);
      } finally {
        stop();
        waiting.delete(giveUp);
        if (bulk) bulks.delete(deadline);
      }
    },
  };
}

/** The same as `session.silent()` would say, for whoever asks before sending. */
export function refuseSilent(current: RedisSession): void {
  if (current.silent()) throw new Unreachable(noAnswer);
}
