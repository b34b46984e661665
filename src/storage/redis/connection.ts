import { createClient } from '@redis/client';
import { sleepUntil } from '../../core/concurrency.ts';
import { asError, isAppError, storageError } from '../../core/errors.ts';
import type { Clock, Random } from '../../core/ports.ts';
import { readAuthorities, replyCode, tlsAdvice, Unreachable } from './failure.ts';
import { textsOf } from './script.ts';

export interface RedisAsk {
  args: readonly string[];
  /** By `clock.monotonic()`. */
  deadline: number;
  /** The answer may be long: others wait behind it. */
  bulk?: boolean;
  /** Sends `ASKING` before it, as a cluster wants it while a slot moves. */
  asking?: boolean;
}

export type RedisSession = ReturnType<typeof session>;

export interface RedisLinkOptions {
  /** `redis://user:password@host:port/database`, `rediss://` for TLS. Never shown. */
  url: string;
  /** File of the authorities (PEM) that are trusted for `rediss://`; absent: those of this machine. */
  caFile?: string | undefined;
  clock: Clock;
  random: Random;
  /** The server is to have each change on its disk before it acknowledges it. Absent: as it is configured. */
  syncs?: boolean;
  /** Milliseconds after which a server that does not answer counts as gone, for now. */
  patienceMs: number;
}

/** A server that accepts connections but does not answer is given up after this. */
const handshakeMs = 2_000;

/** A connection that stays silent for so many times as long as anybody waits, or for three seconds, is given up. */
const silenceFactor = 12;

const maxSilenceMs = 3_000;

const noAnswer = 'it does not answer';

interface Client {
  sendCommand(args: readonly string[]): Promise<unknown>;
}

/** Connects. What goes wrong later ends the session: it is never mended, only replaced. */
export async function openSession(options: RedisLinkOptions): Promise<RedisSession> {
  const { url, clock, caFile, syncs } = options;
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
  ended.catch(() => client.destroy());
  const tooLong = clock.after(handshakeMs, () => end(new Error(noAnswer)));
  try {
    await Promise.race([client.connect().then(() => client.sendCommand(['PING'])), ended]);
    if (syncs) await Promise.race([syncEachChange(client), ended]);
  } catch (error) {
    end(error);
    throw error;
  } finally {
    tooLong();
  }
  return session(client, options, ended, end);
}

/** With each connection, because a server that was started again has forgotten it. */
async function syncEachChange(client: Client): Promise<void> {
  let why = 'it keeps no append-only file';
  try {
    const [, isKept] = textsOf(await client.sendCommand(['CONFIG', 'GET', 'appendonly']));
    if (isKept === 'yes') return void (await client.sendCommand(['CONFIG', 'SET', 'appendfsync', 'always']));
  } catch (error) {
    if (replyCode(error) === '') throw error;
    why = `it refused CONFIG: ${reasonText(error)}`;
  }
  throw storageError('unavailable', `REDIS_DURABILITY is "always", which this Redis cannot do: ${why}.`, {
    next: 'Set "appendonly yes" on the server and let the user run CONFIG, or set REDIS_DURABILITY to "server".',
  });
}

/** One connection, from the moment the server answers until it ends. */
function session(
  client: Client,
  { clock, patienceMs }: RedisLinkOptions,
  ended: Promise<never>,
  end: (cause: unknown) => void,
) {
  let silent = false;
  /** Until when long answers may take, that are on their way. */
  const bulks = new Set<number>();
  const waiting = new Set<() => void>();

  /** All that wait are told at once; a connection that stays silent is given up. */
  function overdue(): void {
    for (const giveUp of waiting) giveUp();
    if (silent) return;
    silent = true;
    clock.after(Math.min(maxSilenceMs, patienceMs * silenceFactor), () => {
      if (silent) end(new Error(noAnswer));
    });
  }

  function heard(): void {
    silent = false;
  }

  return {
    /** Rejects when it ends. */
    ended,
    end,
    /** An answer is overdue. */
    silent: () => silent,
    /** Rejects with `Unreachable` when the answer is late, with what the server answered, or with how the connection was lost. */
    async ask({ args, deadline, bulk, asking }: RedisAsk): Promise<unknown> {
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

export type RedisLink = ReturnType<typeof redisLink>;

const maxReconnectPauseMs = 2_000;

/** The connection to one server, made on first use and again whenever it was lost, without end. */
export function redisLink(options: RedisLinkOptions) {
  const { clock, random, patienceMs } = options;
  let session: RedisSession | undefined;
  let running = false;
  let closed = false;
  /** Until then a connection is expected to come about. */
  let hopeUntil = 0;
  let tries = 0;
  let reason: unknown = new Error('not connected yet');
  let connecting = Promise.withResolvers<void>();
  let stopPause = () => {};

  function lose(lost: RedisSession, cause: unknown): void {
    reason = cause;
    if (session !== lost) return;
    session = undefined;
    hopeUntil = clock.monotonic() + patienceMs;
    connecting = Promise.withResolvers();
  }

  async function keepConnected(): Promise<void> {
    while (!closed) {
      try {
        const current = await openSession(options);
        if (closed) current.end(new Error('the store is closed'));
        else session = current;
        tries = 0;
        connecting.resolve();
        await current.ended.finally(() => lose(current, reason));
      } catch (error) {
        reason = error;
        // Only the first attempt has more time than a command. Whoever waits looks again.
        hopeUntil = Math.min(hopeUntil, clock.monotonic() + patienceMs);
        connecting.resolve();
        connecting = Promise.withResolvers();
      }
      // A server that reads its data after a start says so, and is asked more often.
      const maxPauseMs =
        replyCode(reason) === 'LOADING' ? 200 : Math.min(maxReconnectPauseMs, 10 * 2 ** Math.min(tries, 10));
      tries++;
      const { promise: paused, resolve: goOn } = Promise.withResolvers<void>();
      stopPause = goOn;
      clock.after(maxPauseMs * (0.5 + random.fraction() / 2), goOn);
      if (!closed) await paused;
    }
  }

  async function connected(deadline: number): Promise<RedisSession> {
    if (!running) {
      running = true;
      hopeUntil = clock.monotonic() + Math.max(handshakeMs, patienceMs);
      void keepConnected();
    }
    for (;;) {
      if (closed) throw new Unreachable('the store is closed');
      if (session) {
        if (session.silent()) throw new Unreachable(noAnswer);
        return session;
      }
      const left = Math.min(deadline, hopeUntil) - clock.monotonic();
      // It heals by what somebody does, not within the time that a call waits.
      if (left <= 0 || isAppError(reason) || tlsAdvice(reason) !== undefined || replyCode(reason) === 'WRONGPASS')
        throw new Unreachable(reasonText(reason), { cause: reason });
      await sleepUntil(clock, left, connecting.promise);
    }
  }

  return {
    /** Rejects with `Unreachable` or the server's answer. A command whose connection was lost is sent again: all have to bear that. */
    async ask(ask: RedisAsk): Promise<unknown> {
      const asked = clock.monotonic();
      await connected(Number.POSITIVE_INFINITY);
      const deadline = ask.deadline + clock.monotonic() - asked;
      for (;;) {
        const current = await connected(deadline);
        try {
          return await current.ask({ ...ask, deadline });
        } catch (error) {
          if (replyCode(error) !== '' || error instanceof Unreachable) throw error;
          lose(current, error);
          current.end(error);
          if (clock.monotonic() >= deadline) throw new Unreachable(reasonText(error), { cause: error });
        }
      }
    },
    /** Makes a new connection: the name may lead to another server by now. */
    renew(): void {
      session?.end(new Error('reconnecting'));
    },
    close(): void {
      closed = true;
      session?.end(new Error('the store is closed'));
      stopPause();
    },
  };
}

/** A host with several addresses fails with all of their errors, and no words of its own. */
function reasonText(reason: unknown): string {
  const cause = reason instanceof AggregateError && reason.message === '' ? reason.errors[0] : reason;
  return asError(cause).message;
}
