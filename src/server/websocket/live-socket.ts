import type { RawData, WebSocket } from 'ws';
import { asError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { keepAlive, type LifeRules } from '../access/keep-alive.ts';

export interface SocketRules extends LifeRules {
  /** Bytes that may wait for one client. */
  maxBytes: number;
  /** Milliseconds without one byte taken, after which a client is sent away. */
  stallMs: number;
}

/** What is written at once; a larger text goes out in several parts of one message. */
const partBytes = 65_536;

/** While more than the limit waits, a client has so many milliseconds for each part. */
const overflowMs = 1_000;

/** Sends no faster than the client reads. `onCrowded` hears that much waits, and that it is over; too much, or a standstill, ends it. */
function createOutbox(
  socket: Pick<WebSocket, 'send' | 'terminate'>,
  rules: SocketRules,
  { clock, onCrowded }: { clock: Pick<Clock, 'after'>; onCrowded(crowded: boolean): void },
) {
  const line: { bytes: Buffer; sent(whole: boolean): void }[] = [];
  let waiting = 0;
  let pumping: Promise<void> | undefined;
  let isCrowded = false;
  let stopOverflow: (() => void) | undefined;
  const evict = () => socket.terminate();

  function balance(taken: boolean): void {
    const crowded = waiting > rules.maxBytes / (isCrowded ? 8 : 4);
    if (crowded !== isCrowded) onCrowded(crowded);
    isCrowded = crowded;
    if (taken || waiting <= rules.maxBytes) {
      stopOverflow?.();
      stopOverflow = undefined;
    }
    if (waiting > rules.maxBytes) stopOverflow ??= clock.after(overflowMs, evict);
  }

  async function pump(): Promise<void> {
    for (let next = line.shift(); next; next = line.shift()) {
      const { bytes, sent } = next;
      let whole = true;
      for (let at = 0; whole && (at === 0 || at < bytes.length); at += partBytes) {
        const part = bytes.subarray(at, at + partBytes);
        whole = await written(part, at + partBytes >= bytes.length);
        waiting -= part.length;
        if (!whole) waiting -= Math.max(0, bytes.length - at - partBytes);
        balance(whole);
      }
      sent(whole);
    }
    pumping = undefined;
  }

  function written(part: Buffer, fin: boolean): Promise<boolean> {
    return new Promise(resolve => {
      const stop = clock.after(rules.stallMs, evict);
      socket.send(part, { binary: false, fin }, error => {
        stop();
        resolve(!error);
      });
    });
  }

  return {
    /** Whether so little waits that more may come. */
    hasRoom: () => !isCrowded,
    send(text: string): Promise<boolean> {
      return new Promise(resolve => {
        const bytes = Buffer.from(text);
        line.push({ bytes, sent: resolve });
        waiting += bytes.length;
        balance(false);
        pumping ??= pump();
      });
    },
    drained: async () => pumping,
  };
}

/** An open WebSocket as the protocols on it see it. */
export type LiveSocket = ReturnType<typeof openLiveSocket>;

/** How long a client may take for the end of a connection. */
const closingMs = 1_000;

/** Pings that come while this much waits for a client are not answered: he could fill the memory by them. */
const maxUnread = 65_536;

export function openLiveSocket(
  socket: WebSocket,
  rules: SocketRules,
  { clock, onError }: { clock: Pick<Clock, 'after' | 'monotonic'>; onError(error: Error): void },
) {
  const pause = pauses(socket);
  let roomListener = () => {};
  const outbox = createOutbox(socket, rules, {
    clock,
    onCrowded(crowded) {
      pause('crowded', crowded);
      // Not now: whoever sends is in the midst of it.
      if (!crowded) queueMicrotask(() => roomListener());
    },
  });
  const stopPings = keepAlive(socket, rules, { clock, isRead: outbox.hasRoom });
  let tooFast = (): number | undefined => undefined;
  let listener = (_text: string) => {};
  let isOpen = true;
  // One that is to end soon, or was ended just now, takes nothing more.
  const isLive = () => isOpen && socket.readyState === socket.OPEN;

  /** Sends what waits, within a second, and closes. */
  async function close(code: number, reason: string): Promise<void> {
    if (!isOpen) return;
    isOpen = false;
    const stopLate = clock.after(closingMs, () => socket.terminate());
    const over = new Promise<void>(resolve => socket.once('close', () => resolve())).finally(stopLate);
    await Promise.race([outbox.drained(), over]);
    socket.close(code, reason);
    // The client's own close frame stands behind what was not read yet.
    pause('crowded', false);
    pause('fast', false);
    await over;
  }

  socket.on('message', (data: RawData, isBinary: boolean) => {
    if (!isOpen) return;
    if (isBinary) return void close(1003, 'text frames only');
    const seconds = tooFast();
    if (seconds !== undefined) {
      pause('fast', true);
      clock.after(seconds * 1_000, () => pause('fast', false));
    }
    try {
      listener(data.toString());
    } catch (error) {
      // One client's message must not end the server for all.
      onError(asError(error));
      void close(1011, 'internal error');
    }
  });
  socket.on('ping', (data: Buffer) => {
    if (isOpen && socket.bufferedAmount < maxUnread) socket.pong(data);
  });
  // What is wrong with a message closes the connection by itself, with the code for it.
  socket.on('error', () => {});
  socket.once('close', () => {
    isOpen = false;
    stopPings();
  });
  return {
    /** Resolves once the text was handed to the system; false: the connection ended before. Never rejects. */
    send: (text: string) => (isLive() ? outbox.send(text) : Promise.resolve(false)),
    /** Whether the client keeps up: what is not worth much, or kept elsewhere, should wait otherwise. */
    hasRoom: () => isLive() && outbox.hasRoom(),
    /** Called each time when the client has caught up; one listener only. */
    onRoom(then: () => void) {
      roomListener = then;
    },
    close,
    /** Reads nothing more, and closes: for a client that sends too much to be read to its end. */
    refuse(code: number, reason: string) {
      pause('refused', true);
      void close(code, reason);
    },
    /** Asked with each message; when it answers, nothing more is read for so many seconds. One for all of them. */
    slowDown(ask: () => number | undefined) {
      tooFast = ask;
    },
    /** Called with each message; one listener only. */
    onText(then: (text: string) => void) {
      listener = then;
    },
    /** Called once, when the connection is over for whatever reason. */
    onClose(then: () => void) {
      if (socket.readyState === socket.CLOSED) then();
      else socket.once('close', then);
    },
  };
}

/** Reads on once no reason is left not to. */
function pauses(socket: WebSocket) {
  const reasons = new Set<string>();
  return (reason: 'crowded' | 'fast' | 'refused', on: boolean) => {
    if (on) reasons.add(reason);
    else reasons.delete(reason);
    if (reasons.size > 0) socket.pause();
    else socket.resume();
  };
}
