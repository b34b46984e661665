import type { WebSocket } from 'ws';
import type { Clock } from '../../core/ports.ts';

export interface OutboxRules {
  /** Bytes that may wait for one client. */
  mostBytes: number;
  /** Milliseconds without one byte taken, after which a client is sent away. */
  stallMs: number;
}

/** What goes to one client, as fast as he reads and no faster. */
export interface Outbox {
  /** Resolves once the text was handed to the system; false: the connection ended before. Never rejects. */
  send(text: string): Promise<boolean>;
  /** Resolves when nothing waits any more. */
  drained(): Promise<void>;
  /** Whether so little waits that more may come. */
  hasRoom(): boolean;
}

interface Waiting {
  bytes: Buffer;
  sent(whole: boolean): void;
}

/** What is written at once; a larger text goes out in several parts of one message. */
const partBytes = 65_536;
/** While more than the limit waits, a client has so many milliseconds for each part. */
const overflowMs = 1_000;

/**
 * `onCrowded` hears when much waits, so that nothing more is read of the client, and when that is over. Where too much waits, or
 * the client takes nothing at all, he is sent away.
 */
export function createOutbox(
  socket: Pick<WebSocket, 'send' | 'terminate'>,
  rules: OutboxRules,
  { clock, onCrowded }: { clock: Pick<Clock, 'after'>; onCrowded(crowded: boolean): void },
): Outbox {
  const line: Waiting[] = [];
  const idle: (() => void)[] = [];
  let waiting = 0;
  let isPumping = false;
  let isCrowded = false;
  let stopOverflow: (() => void) | undefined;
  const evict = () => socket.terminate();

  function balance(taken: boolean): void {
    const crowded = waiting > rules.mostBytes / (isCrowded ? 8 : 4);
    if (crowded !== isCrowded) onCrowded(crowded);
    isCrowded = crowded;
    if (taken || waiting <= rules.mostBytes) {
      stopOverflow?.();
      stopOverflow = undefined;
    }
    if (waiting > rules.mostBytes) stopOverflow ??= clock.after(overflowMs, evict);
  }

  async function pump(): Promise<void> {
    isPumping = true;
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
    isPumping = false;
    for (const tell of idle.splice(0)) tell();
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
    hasRoom: () => !isCrowded,
    send(text) {
      return new Promise(resolve => {
        const bytes = Buffer.from(text);
        line.push({ bytes, sent: resolve });
        waiting += bytes.length;
        balance(false);
        if (!isPumping) void pump();
      });
    },
    drained: () => (isPumping ? new Promise(resolve => idle.push(resolve)) : Promise.resolve()),
  };
}
