import { getHeapStatistics } from 'node:v8';
import { onAbort, remember } from '../../core/concurrency.ts';
import { abortError, limitError, throwIfAborted } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { type Caller, type Refusal, refusalFor } from './caller.ts';

export interface CapacityRules {
  /** Calls of one caller that run at the same time. */
  perCaller: number;
  /** Calls of all callers that run at the same time. */
  inAll: number;
  /** Calls of all callers that wait for their turn; more are refused. */
  queued: number;
  /** What the memory bears of calls that run or wait. Absent: no limit. */
  bytes?: number;
}

/** What a call holds besides its arguments: its prompt, its files and its answer, each more than once. */
const callBytes = 1_048_576;

/** How often the arguments of a call are in memory. */
const copies = 8;

/** A caller gets at most so many times what he leaves to others: two thirds alone, and equal shares beside others. */
const shareOfRest = 2;

/** A client has always room for so many bytes that are not a call yet, and each of his messages mostly: they may be what ends one. */
const alwaysBytes = 65_536;

/** What all strangers together may send at the same time. */
const strangerBytes = 64 * 65_536;

/** What Node counts to its heap for values that are young, and what the program itself takes of it. */
const ownBytes = 256 * 1_048_576;

/** Half of the heap that is left for calls. */
export function bytesForCalls(): number {
  const { heap_size_limit: all } = getHeapStatistics();
  return Math.max(all - ownBytes, all / 8) / 2;
}

export type Capacity = ReturnType<typeof createCapacity>;

/** A refused call may come again after this many seconds. */
const retryAfterSeconds = 5;

/** Places by the names of those who have them. */
export function createSlots() {
  const counts = new Map<string, number>();
  let all = 0;
  const of = (name: string) => counts.get(name) ?? 0;
  function add(name: string, size: number): void {
    all += size;
    counts.set(name, of(name) + size);
    if (of(name) <= 0) counts.delete(name);
  }
  return {
    inAll: () => all,
    names: () => counts.size,
    of,
    add,
    /** Takes one; the result gives it back, once. */
    take(name: string, onGivenBack: () => unknown = () => {}): () => void {
      add(name, 1);
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        add(name, -1);
        onGivenBack();
      };
    },
  };
}

/** Memory by the names of those who hold it. `always`: bytes that each has beyond his share. */
function createShares(limit: number, always: number) {
  const held = createSlots();
  /** For one call or message. `more` throws OVER_CAPACITY where others hold too much; one alone is let in: it never finds more room. */
  return (name: string) => {
    let own = 0;
    return {
      more(size: number): void {
        const rest = limit - held.inAll();
        const isSmall = own + size <= always && rest > limit / 6;
        if (held.inAll() > own && !isSmall && held.of(name) + size > Math.max(always, shareOfRest * rest))
          throw overCapacity('its memory bears no more of this client now');
        own += size;
        held.add(name, size);
      },
      release(): void {
        held.add(name, -own);
        own = 0;
      },
    };
  };
}

/** Calls that begin in one turn of the event loop: what earlier ones wait for has its turn before more begin. */
const startsPerTurn = 4;

/** Turns, first for the caller with the fewest running calls, then by age, and only as fast as the processor works off what has begun. */
export function createCapacity({ perCaller, inAll, queued, bytes = Infinity }: CapacityRules) {
  const running = createSlots();
  const reserve = createShares(bytes, alwaysBytes);
  const reserveForStranger = createShares(strangerBytes, 0);
  const line: { caller: string; begin(): void }[] = [];
  let begun = 0;
  const isFree = (caller: string) => running.inAll() < inAll && running.of(caller) < perCaller;
  const begin = (caller: string) => {
    begun += 1;
    if (begun === 1) setImmediate(nextTurn);
    return running.take(caller, next);
  };

  function nextTurn(): void {
    begun = 0;
    while (begun < startsPerTurn && next());
  }

  function next(): boolean {
    let chosen: (typeof line)[number] | undefined;
    let fewest = begun < startsPerTurn && running.inAll() < inAll ? perCaller : 0;
    for (const waiting of line) {
      const runs = running.of(waiting.caller);
      if (runs < fewest) [chosen, fewest] = [waiting, runs];
      if (fewest === 0) break;
    }
    if (!chosen) return false;
    line.splice(line.indexOf(chosen), 1);
    chosen.begin();
    return true;
  }

  async function turn(caller: string, signal: AbortSignal): Promise<() => void> {
    throwIfAborted(signal);
    if (begun < startsPerTurn && isFree(caller)) return begin(caller);
    if (line.length >= queued && !isFree(caller)) throw overCapacity(`${line.length} calls wait already`);
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    const waiting = {
      caller,
      begin() {
        forget();
        resolve(begin(caller));
      },
    };
    const forget = onAbort(signal, () => {
      line.splice(line.indexOf(waiting), 1);
      reject(abortError(signal));
    });
    line.push(waiting);
    return promise;
  }

  return {
    reserve,
    /** For what comes from somebody, whichever of his connections it comes by; of those who are not known yet, the address counts. */
    reserveInput: (caller: Caller | undefined, address = '') =>
      caller ? reserve(`input of ${caller.name}`) : reserveForStranger(address),
    running: running.inAll,
    waiting: () => line.length,
    /** What may run at the same time in all. */
    max: () => inAll,
    /** Callers that are remembered: those with calls that run. */
    callers: running.names,
    /** Answers what ends the turn; rejects with OVER_CAPACITY when too many wait or `bytes` find no room, or when `signal` is aborted. */
    async enter(caller: string, signal: AbortSignal, bytes = 0): Promise<() => void> {
      const memory = reserve(caller);
      memory.more(callBytes + copies * bytes);
      const leave = await turn(caller, signal).catch(error => {
        memory.release();
        throw error;
      });
      return () => {
        leave();
        memory.release();
      };
    },
  };
}

const overCapacity = (why: string) =>
  limitError('over_capacity', `This server is busy: ${why}.`, {
    retryable: true,
    retryAfterSeconds,
    next: `Retry in ${retryAfterSeconds} s.`,
  });

export interface RateRules {
  /** Requests a minute of one client, on the average. */
  perMinute: number;
  /** What may come at once after a pause. */
  burst: number;
}

/** How many clients are remembered; the one that was quiet longest is forgotten first. */
const maxClients = 10_000;

/** One bucket a client, refilled as time passes. `count`: requests that come as one, and pass or don't pass together. */
export function createRates({ perMinute, burst }: RateRules, clock: Pick<Clock, 'monotonic'>) {
  const buckets = new Map<string, { left: number; at: number }>();
  return (client: string, count = 1): Refusal | undefined => {
    if (count > burst)
      return refusalFor(413, 'batch', `These are more messages in one than the ${burst} that may come at once.`, {
        next: 'Send them in smaller parts.',
      });
    const now = clock.monotonic();
    const before = buckets.get(client) ?? { left: burst, at: now };
    const left = Math.min(burst, before.left + ((now - before.at) * perMinute) / 60_000);
    remember(buckets, client, { left: left < count ? left : left - count, at: now }, maxClients);
    if (left >= count) return undefined;
    const retryAfterSeconds = Math.max(1, Math.ceil(((count - left) * 60) / perMinute));
    return refusalFor(429, 'rate', `More than ${perMinute} requests a minute came from here.`, {
      next: `Wait ${retryAfterSeconds} s, then go on.`,
      retryAfterSeconds,
    });
  };
}

/** How many of something there may be at the same time. */
export interface ShareLimits {
  /** Of one name, at the moment. */
  perCaller(): number;
  inAll: number;
}

/** Takes a place for a name: answers what gives it back, or undefined where there is none for it. */
export function createQuotas({ perCaller, inAll }: ShareLimits) {
  const places = createSlots();
  return (name: string) => (places.of(name) >= perCaller() || places.inAll() >= inAll ? undefined : places.take(name));
}

/** What is kept for the clients of all sessions together has room for so many characters more. */
export interface KeptRoom {
  left: number;
}

/** All that comes, each piece told by its size; undefined once it is more than `limit` bytes, before the rest is read. */
export async function bytesWithin(
  pieces: AsyncIterable<Uint8Array>,
  limit: number,
  came = (_bytes: number) => {},
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of pieces) {
    size += chunk.length;
    if (size > limit) return undefined;
    came(chunk.length);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
