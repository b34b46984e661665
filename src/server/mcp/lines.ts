import { isUtf8 } from 'node:buffer';
import type { RequestId } from '@modelcontextprotocol/server';
import { parsedJson } from '../../core/json.ts';
import { type Refusal, refusalFor } from '../access/caller.ts';

/** No request of the protocol is nested nearly as deep. */
const deepest = 128;

/** Reads a body as JSON, unless it is nested so deep that whoever walks through it would run out of stack. */
export function readJson(body: string): { value: unknown } | { refusal: Refusal } {
  if (isTooDeep(body)) return { refusal: tooDeep };
  const value = parsedJson(body);
  return value === undefined ? { refusal: noJson } : { value };
}

function isTooDeep(text: string): boolean {
  let depth = 0;
  let inText = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (inText) {
      if (char === '\\') at += 1;
      else if (char === '"') inText = false;
    } else if (char === '"') inText = true;
    else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') depth -= 1;
    if (depth > deepest) return true;
  }
  return false;
}

const tooDeep = refusalFor(400, 'depth', `The JSON is nested deeper than ${deepest} levels.`, {
  next: 'Send plainer arguments.',
});

const noJson = refusalFor(400, 'json', 'The body is no JSON.', { next: 'Send one JSON document as application/json.' });

/** The one revision in which several messages may come as an array. */
export const batchVersion = '2025-03-26';

/** How a bridge tells that its client took the answer to a request: what was written to the bridge may be lost with it. */
export const arrivedMethod = 'notifications/polylogue/arrived';

export const isId = (value: unknown): value is RequestId => typeof value === 'string' || Number.isSafeInteger(value);

/** A message as one line: there are programs that end lines at these letters, too, which JSON has in texts alone. */
export const lineOf = (json: string): string =>
  `${json.replace(/[\u0085\u2028\u2029]/g, letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`;

export type RefusedMessage = ReturnType<typeof refusedMessage>;

/** The answer to what can't be taken; `id` is null where nobody could tell what it answers. */
export function refusedMessage(id: RequestId | null, code: number, message: string) {
  return { jsonrpc: '2.0', id, error: { code, message } } as const;
}

const id = String.raw`"id"\s*:\s*(-?\d{1,15}|"(?:[^"\\]|\\.){0,200}")`;

const version = String.raw`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?`;

const idFirst = new RegExp(`${version}${id}\\s*,\\s*"method"\\s*:`);

const methodFirst = new RegExp(`${version}"method"\\s*:`);

const idLast = new RegExp(`,\\s*${id}\\s*\\}\\s*$`);

/** The id of a request of which only the beginning and the end are known. */
function idAtEdges(head: string, tail: string): RequestId | null {
  const found = idFirst.exec(head)?.[1] ?? (methodFirst.test(head) ? idLast.exec(tail)?.[1] : undefined);
  // Undefined also for an escape that is none.
  const parsed = found === undefined ? undefined : parsedJson(found);
  return isId(parsed) ? parsed : null;
}

interface LineListener {
  /** A line with something in it. */
  onText(text: string): void;
  /** What the sender of a line that nobody takes is answered, when it is over. */
  onRefused(refused: RefusedMessage): void;
  /** Why a line is not taken, as soon as that is known. */
  onLong?(why: string): void;
}

const edgeBytes = 1_024;

const newline = 10;

/** Cuts what comes in pieces into lines of UTF-8; a line of more than `maxBytes` is not kept but for its edges. */
export function textSplitter(maxBytes: number, { onText, onRefused, onLong }: LineListener) {
  const tooLong = `A message may have ${maxBytes} bytes; name files by their paths instead of sending their text.`;
  let held = Buffer.alloc(0);
  let size = 0;
  /** The beginning of a line that is too long. */
  let head: string | undefined;

  function keep(piece: Buffer): void {
    if (head !== undefined) keepTail(piece);
    else if (size + piece.length <= maxBytes) append(piece);
    else {
      const start = Buffer.concat([held.subarray(0, Math.min(size, edgeBytes)), piece.subarray(0, edgeBytes)]);
      head = start.toString('utf8', 0, edgeBytes);
      keepTail(piece);
      onLong?.(tooLong);
    }
  }

  function keepTail(piece: Buffer): void {
    const before = held.subarray(Math.max(0, size - edgeBytes), size);
    held = Buffer.concat([before, piece.subarray(-edgeBytes)]).subarray(-edgeBytes);
    size = held.length;
  }

  /** Many small pieces are copied a few times each, and weigh no more than their bytes. */
  function append(piece: Buffer): void {
    if (size + piece.length > held.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(2 * held.length, size + piece.length));
      held.copy(larger, 0, 0, size);
      held = larger;
    }
    piece.copy(held, size);
    size += piece.length;
  }

  function end(last: Buffer) {
    // Whole lines in one piece are the rule.
    if (size === 0 && head === undefined && last.length <= maxBytes) return tell(last);
    keep(last);
    const [line, long] = [held.subarray(0, size), head];
    held = Buffer.alloc(0);
    size = 0;
    head = undefined;
    if (long === undefined) tell(line);
    else onRefused(refusedMessage(idAtEdges(long, line.toString('utf8')), -32_600, tooLong));
  }

  function tell(line: Buffer): void {
    // Some write a mark before their first letter.
    const text = line.toString('utf8').replace(/^\uFEFF/, '');
    if (text.trim() === '') return;
    if (isUtf8(line)) onText(text);
    else onRefused(refusedMessage(null, -32_700, 'The line is no UTF-8.'));
  }

  return (piece: Buffer): void => {
    let rest = piece;
    for (let at = rest.indexOf(newline); at >= 0; at = rest.indexOf(newline)) {
      end(rest.subarray(0, at));
      rest = rest.subarray(at + 1);
    }
    if (rest.length > 0) keep(rest);
  };
}

/** What `probeReader` writes. It changes nothing for a client, in any protocol revision. */
export const stillRunning = {
  jsonrpc: '2.0',
  method: 'notifications/message',
  params: { level: 'debug', logger: 'polylogue', data: 'The input has ended; calls are still running.' },
} as const;

/** Writes to a client whose input has ended: nothing else tells that nobody reads. A bridge writes sooner. The result stops it. */
export function probeReader(write: (message: typeof stillRunning) => void, firstMs = 500): () => void {
  const probe = () => {
    write(stillRunning);
    timer = setTimeout(probe, 500);
  };
  let timer = setTimeout(probe, firstMs);
  return () => clearTimeout(timer);
}
