import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

/**
 * The least that counts as a vendor: it reads the request, waits, and streams one short answer in OpenAI's Responses format, or in that
 * of its chat completions.
 */
export interface InstantVendor {
  /** Base address with the version path. */
  url: string;
  close(): Promise<void>;
}

export interface InstantVendorOptions {
  delayMs: number;
  /** Where some requests take longer: the delay by the request's body. */
  delayOf?: (body: string) => number;
  /** The answer comes in so many pieces, one each so many milliseconds; absent: all at once. */
  pieces?: { count: number; everyMs: number };
  /** Called as soon as a request for an answer has arrived whole. */
  onArrival?: () => void;
}

export async function openInstantVendor({
  delayMs,
  delayOf,
  pieces,
  onArrival,
}: InstantVendorOptions): Promise<InstantVendor> {
  const bodies = new Map([
    ['/v1/responses', Buffer.from(answerEvents().join(''))],
    ['/v1/chat/completions', Buffer.from(chatEvents().join(''))],
  ]);
  const server = createServer((request, response) => {
    const body = bodies.get(request.url ?? '');
    if (request.method !== 'POST' || !body) {
      response.writeHead(404).end();
      return;
    }
    const send = (response: ServerResponse) => (pieces ? answerSlowly(response, pieces) : answer(response, body));
    whenRead(request, delayOf !== undefined, text => {
      onArrival?.();
      const waitMs = delayOf?.(text) ?? delayMs;
      if (waitMs === 0) send(response);
      else setTimeout(send, waitMs, response);
    });
  });
  server.keepAliveTimeout = 60_000;
  const listening = Promise.withResolvers<void>();
  server.once('error', listening.reject).listen(0, '127.0.0.1', listening.resolve);
  await listening.promise;
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the vendor has no port');
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function whenRead(request: IncomingMessage, wanted: boolean, then: (text: string) => void): void {
  const chunks: Buffer[] = [];
  if (wanted) request.on('data', chunk => void chunks.push(chunk));
  request.on('end', () => then(Buffer.concat(chunks).toString())).resume();
}

function answer(response: ServerResponse, body: Buffer): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'content-length': body.length }).end(body);
}

function answerSlowly(response: ServerResponse, { count, everyMs }: { count: number; everyMs: number }): void {
  const events = answerEvents(Array.from({ length: count }, (_, at) => ` piece ${at}${at % 12 === 11 ? '\n' : ''}`));
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  const [first, last] = [events.slice(0, 3), events.slice(-4)];
  response.write(first.join(''));
  let at = first.length;
  const timer = setInterval(() => {
    response.write(events[at]);
    at += 1;
    if (at < events.length - last.length) return;
    clearInterval(timer);
    response.end(last.join(''));
  }, everyMs);
  response.once('close', () => clearInterval(timer));
}

const shortAnswer = 'A short answer, as quick as it can be given.';

function chatEvents(): string[] {
  const chunk = { id: 'chatcmpl_1', object: 'chat.completion.chunk', created: 1, model: 'gpt-5' };
  const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
  const events = [
    { ...chunk, choices: [{ index: 0, delta: { role: 'assistant', content: shortAnswer }, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    { ...chunk, choices: [], usage },
  ];
  return [...events.map(event => JSON.stringify(event)), '[DONE]'].map(data => `data: ${data}\n\n`);
}

function answerEvents(deltas = [shortAnswer]): string[] {
  const text = deltas.join('');
  const part = { type: 'output_text', text, annotations: [] };
  const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };
  const message = { type: 'message', id: 'msg_1', role: 'assistant' };
  const open = { ...message, status: 'in_progress', content: [] };
  const whole = { ...message, status: 'completed', content: [part] };
  const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'gpt-5', incomplete_details: null };
  const usage = {
    input_tokens: 10,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 10,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 20,
  };
  const events = [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [], usage: null } },
    { type: 'response.output_item.added', output_index: 0, item: open },
    { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
    ...deltas.map(delta => ({ type: 'response.output_text.delta', ...place, delta })),
    { type: 'response.output_text.done', ...place, text },
    { type: 'response.content_part.done', ...place, part },
    { type: 'response.output_item.done', output_index: 0, item: whole },
    { type: 'response.completed', response: { ...response, status: 'completed', output: [whole], usage } },
  ];
  return events.map(
    (event, index) => `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: index })}\n\n`,
  );
}
