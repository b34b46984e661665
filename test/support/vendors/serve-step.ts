import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { AnswerStep, BrokenStep } from './fake-vendor.ts';
import type { Reply } from './reply.ts';
import type { Framing, Wire } from './wire.ts';

/** An answer that is ready to be sent, well or badly. */
export interface Delivery {
  response: ServerResponse;
  stream: boolean;
  wire: Wire;
  framing: Framing;
  reply: Reply;
  /** Headers that the vendor adds to every answer. */
  headers: Record<string, string>;
  /** The vendor's error for a request that does not stream. */
  failure: { status: number; body: unknown };
  /** Says that the fake itself breaks the connection now. */
  breaking: () => void;
}

const webPage =
  '<!DOCTYPE html>\n<html lang="en"><head><title>Sign in</title></head><body><h1>Sign in to the network</h1></body></html>\n';

/** A sound answer, as slow as the step wants it. */
export async function giveAnswer(delivery: Delivery, step: AnswerStep): Promise<void> {
  await untilGone(delivery.response, async (wait, gone) => {
    if (step.when) await Promise.race([step.when, gone]);
    await wait(step.delayMs ?? 0);
    if (!delivery.stream || step.json) return sendJson(delivery, 200, delivery.wire.whole());
    start(delivery);
    await sendText(delivery, delivery.reply.chunks, step.chunkDelayMs ?? 0, wait);
    send(delivery, delivery.wire.close());
    delivery.response.end();
  });
}

/** The answer as the fault makes it. */
export async function giveFault(delivery: Delivery, step: BrokenStep): Promise<void> {
  await untilGone(delivery.response, async wait => {
    const { response } = delivery;
    switch (step.fault) {
      case 'hang_before_headers':
        return;
      case 'hang_after_headers':
        start(delivery, false);
        response.flushHeaders();
        return;
      case 'reset':
        delivery.breaking();
        response.socket?.resetAndDestroy();
        return;
      case 'garbage':
        start(delivery, false);
        response.end('data: {"type": "resp\u0000\u0001\u0002 onse, [[[\n\ndata: }{ \uFFFD not json\n\n');
        return;
      case 'html':
        response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(webPage);
        return;
      case 'empty':
        start(delivery, false);
        response.end();
        return;
      case 'whitespace_and_comments':
        start(delivery, false);
        response.end(`\n\n: waiting\n\n   \n\n: still waiting\n\n${' '.repeat(2_000)}\n\n`);
        return;
      case 'json_error':
        return sendJson(delivery, 200, delivery.failure.body);
      case 'plain_json':
        return sendJson(delivery, 200, delivery.wire.whole());
      case 'comments_first': {
        const before = delivery.framing.filler.repeat(20);
        return sendBytes(delivery, Buffer.from(`\n\n   \n${before}\n${body(delivery, '\n').toString()}`));
      }
      case 'crlf':
        return sendBytes(delivery, body(delivery, '\r\n'));
      case 'split_utf8':
        return sendSplit(delivery, body(delivery, '\n'), wait);
      case 'slow_drip':
        return drip(delivery, step.chunkDelayMs ?? 25, wait);
      default:
        return breakInside(delivery, step, wait);
    }
  });
}

/** Half of the answer, then what the fault is about. */
async function breakInside(delivery: Delivery, step: BrokenStep, wait: Wait): Promise<void> {
  const { response, reply, wire, stream, failure } = delivery;
  if (stream) {
    start(delivery);
    const after = step.after ?? Math.ceil(reply.chunks.length / 2);
    await sendText(delivery, reply.chunks.slice(0, after), step.chunkDelayMs ?? 0, wait);
  } else if (step.fault === 'error_in_stream') {
    return sendJson(delivery, failure.status, failure.body);
  } else {
    start(delivery, false);
    const whole = JSON.stringify(wire.whole());
    response.write(whole.slice(0, Math.floor(whole.length / 2)));
  }
  if (step.fault === 'hang_mid_stream') return;
  if (step.fault === 'error_in_stream') send(delivery, wire.fail());
  if (step.fault !== 'cut_mid_stream') {
    response.end();
    return;
  }
  // What was written must leave this process before the socket dies under it.
  await new Promise(resolve => response.write(delivery.framing.filler, resolve));
  delivery.breaking();
  response.socket?.destroy();
}

async function drip(delivery: Delivery, everyMs: number, wait: Wait): Promise<void> {
  const { response, wire, framing, stream, reply } = delivery;
  start(delivery, stream);
  const characters = stream ? Array.from(reply.text) : Array.from(JSON.stringify(wire.whole()));
  for (let at = 0; ; at++) {
    await wait(everyMs);
    const character = characters[at % characters.length] ?? '.';
    response.write(stream ? framing.encode(wire.text(character)) : character);
  }
}

type Wait = (ms: number) => Promise<void>;

/** Runs until it is done or the connection is gone, which ends every wait. */
async function untilGone(
  response: ServerResponse,
  run: (wait: Wait, gone: Promise<never>) => Promise<void> | void,
): Promise<void> {
  const gone = new AbortController();
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {});
  response.once('close', () => {
    gone.abort();
    reject(gone.signal.reason);
  });
  if (response.destroyed) return;
  const wait: Wait = async ms => {
    if (ms > 0) await pause(ms, undefined, { signal: gone.signal });
  };
  try {
    await run(wait, promise);
  } catch (error) {
    // The client went away; there is nobody left to answer.
    if (!gone.signal.aborted) throw error;
  }
}

/** Status and headers of a stream (or of JSON that never comes whole), and the events before the text. */
function start({ response, stream, wire, framing, headers }: Delivery, opening = true): void {
  const type = stream ? framing.contentType : 'application/json';
  response.writeHead(200, { 'content-type': type, 'cache-control': 'no-cache', ...headers });
  if (opening) for (const frame of wire.open()) response.write(framing.encode(frame));
}

async function sendText(delivery: Delivery, pieces: readonly string[], everyMs: number, wait: Wait): Promise<void> {
  for (const piece of pieces) {
    delivery.response.write(delivery.framing.encode(delivery.wire.text(piece)));
    await wait(everyMs);
  }
}

function send(delivery: Delivery, frames: ReturnType<Wire['close']>): void {
  for (const frame of frames) delivery.response.write(delivery.framing.encode(frame));
}

/** The whole body of a sound answer. */
function body({ stream, wire, framing, reply }: Delivery, eol: string): Buffer {
  if (!stream) return Buffer.from(JSON.stringify(wire.whole()));
  const frames = [...wire.open(), ...reply.chunks.map(piece => wire.text(piece)), ...wire.close()];
  return Buffer.from(frames.map(frame => framing.encode(frame, eol)).join(''));
}

function sendBytes(delivery: Delivery, bytes: Buffer): void {
  start(delivery, false);
  delivery.response.end(bytes);
}

/** Cuts after the first byte of every character that has more than one, with a pause so that the network keeps the cuts. */
async function sendSplit(delivery: Delivery, bytes: Buffer, wait: Wait): Promise<void> {
  start(delivery, false);
  let from = 0;
  for (const [at, byte] of bytes.entries()) {
    if (byte < 0xc0) continue;
    delivery.response.write(bytes.subarray(from, at + 1));
    from = at + 1;
    await wait(2);
  }
  delivery.response.end(bytes.subarray(from));
}

function sendJson({ response, headers }: Delivery, status: number, value: unknown): void {
  sendBody(response, status, value, headers);
}

/** A text as it is, as a web page where it is one; anything else as JSON. */
export function sendBody(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Record<string, string>,
): void {
  const json = typeof value !== 'string';
  const type = json ? 'application/json' : /^\s*</.test(value) ? 'text/html' : 'text/plain; charset=utf-8';
  response.writeHead(status, { 'content-type': type, ...headers }).end(json ? JSON.stringify(value) : value);
}
