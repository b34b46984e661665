import { isAppError } from '../../core/errors.ts';
import type { Clock, Random } from '../../core/ports.ts';
import {
  openSession,
  type RedisAsk,
  type RedisSession,
  type RedisSessionOptions,
  refuseSilent,
} from '../../memory/stores/redis-session.ts';
import { tlsAdvice } from '../../memory/stores/redis-tls.ts';
import { replyCode, Unreachable } from './failure.ts';

export interface RedisLinkOptions extends RedisSessionOptions {
  random: Random;
}

/** The connection to one server, made on first use and again whenever it was lost, without end. */
export interface RedisLink {
  /**
   * Rejects with `Unreachable`, or with what the server answered. A command whose connection was lost is sent again: all of
   * them have to bear that.
   */
  ask(ask: RedisAsk): Promise<unknown>;
  /** Makes a new connection: the name may lead to another server by now. */
  renew(): void;
  close(): void;
}

const longestPauseMs = 2_000;

export function redisLink(options: RedisLinkOptions): RedisLink {
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

  /** Rejects when the connection ends or does not come about. */
  async function live(): Promise<never> {
    const current = await openSession(options);
    if (closed) current.end(new Error('the store is closed'));
    else session = current;
    tries = 0;
    connecting.resolve();
    return current.ended.finally(() => lose(current, reason));
  }

  function pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      const stop = clock.after(ms, resolve);
      stopPause = () => {
        stop();
        resolve();
      };
    });
  }

  async function keepConnected(): Promise<void> {
    while (!closed) {
      try {
        await live();
      } catch (error) {
        reason = error;
        if (isHopeless(reason)) {
          // Whoever waits hears of it now.
          connecting.resolve();
          connecting = Promise.withResolvers();
        }
      }
      // A server that reads its data after a start says so, and is asked more often.
      const longest = replyCode(reason) === 'LOADING' ? 200 : Math.min(longestPauseMs, 10 * 2 ** Math.min(tries, 10));
      tries++;
      if (!closed) await pause(longest * (0.5 + random.fraction() / 2));
    }
  }

  async function connected(deadline: number): Promise<RedisSession> {
    if (!running) {
      running = true;
      hopeUntil = clock.monotonic() + patienceMs;
      void keepConnected();
    }
    for (;;) {
      if (closed) throw new Unreachable('the store is closed');
      if (session) {
        refuseSilent(session);
        return session;
      }
      const left = Math.min(deadline, hopeUntil) - clock.monotonic();
      if (left <= 0 || isHopeless(reason)) throw new Unreachable(reasonText(reason), reason);
      await within(clock, left, connecting.promise);
    }
  }

  return {
    async ask(ask) {
      for (;;) {
        const current = await connected(ask.deadline);
        try {
          return await current.ask(ask);
        } catch (error) {
          if (replyCode(error) !== '' || error instanceof Unreachable) throw error;
          lose(current, error);
          current.end(error);
          if (clock.monotonic() >= ask.deadline) throw new Unreachable(reasonText(error), error);
        }
      }
    },
    renew() {
      session?.end(new Error('connecting anew'));
    },
    close() {
      closed = true;
      session?.end(new Error('the store is closed'));
      stopPause();
    },
  };
}

/** Keeps the process alive, unlike a timer: somebody waits for this. */
async function within(clock: Pick<Clock, 'sleep'>, ms: number, sign: Promise<void>): Promise<void> {
  const enough = new AbortController();
  const over = clock.sleep(ms, enough.signal).catch(() => undefined);
  await Promise.race([sign, over]);
  enough.abort();
}

/** It heals by what somebody does, not within the time that a call waits. */
function isHopeless(reason: unknown): boolean {
  return isAppError(reason) || tlsAdvice(reason) !== undefined || replyCode(reason) === 'WRONGPASS';
}

/** A host with several addresses fails with all of their errors, and no words of its own. */
function reasonText(reason: unknown): string {
  const told = reason instanceof AggregateError && reason.message === '' ? reason.errors[0] : reason;
  return told instanceof Error ? told.message : String(told);
}
