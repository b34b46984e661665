import { isRecord, parsedJson, recordsIn } from '../../core/json.ts';
import type { BoundedAnswer } from '../../models/resilience/bounded-body.ts';
import { badUpstream } from '../../models/resilience/errors.ts';
import { type Fetch, vendorAnswer } from './http.ts';
import { type Body, failureIn, itemEvents, LenientEvents, reasonIn } from './lenient-events.ts';

/**
 * fetch for the vendors' packages, whose schemas its events fit. Servers that don't stream answer with one JSON document all the same: a
 * whole answer becomes the events of the stream that was asked for, and an error under a 200 gets the status that it should have had.
 */
export const answerFetch: Fetch = async (input, init) => {
  const answer = await vendorAnswer(input, init);
  const { status, headers, body } = answer;
  const type = headers.get('content-type') ?? '';
  if (status < 200 || status > 299 || init?.method !== 'POST' || !body) return answer.response();
  if (/^text\/html\b/i.test(type)) {
    body.cancel();
    const next = "Check the provider's base URL and any proxy in between, or choose another model.";
    throw badUpstream(`The answer was no stream of events, but a page (${type.slice(0, 60)}).`, true, next);
  }
  const { isDocument, pieces } = await begun(body, type);
  if (!isDocument) return new Response(pieces, { headers });
  const text = await new Response(pieces).text();
  const document = parsedJson(text);
  const error = isRecord(document) ? failureIn(document) : undefined;
  if (error) return new Response(JSON.stringify({ type: 'error', error }), { status: failureStatus(error), headers });
  const events = eventsOf(document)?.map(event => `data: ${JSON.stringify(event)}\n\n`);
  if (events) headers.set('content-type', 'text/event-stream');
  return new Response(events ? new LenientEvents().fitted(events.join('')) : text, { headers });
};

/** A body from its first piece on, which shows a JSON document whatever type it was sent with. Streams become what packages take. */
async function begun(body: NonNullable<BoundedAnswer['body']>, type: string) {
  const decoder = new TextDecoder();
  const lenient = new LenientEvents();
  // A connection may break once the answer is whole.
  const read = () =>
    body.read().catch(error => {
      if (!lenient.isWhole()) throw error;
      return undefined;
    });
  let next = await body.read();
  const isDocument = /^application\/json\b/i.test(type) || /^\s*[[{]/.test(new TextDecoder().decode(next));
  const isStream = !isDocument && /event-stream/i.test(type);
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    for (let size = 0; size === 0; next = await read()) {
      if (!next) {
        const end = Buffer.from(isStream ? lenient.end() : '');
        if (end.length > 0) controller.enqueue(end);
        return controller.close();
      }
      const bytes = isStream ? Buffer.from(lenient.fitted(decoder.decode(next, { stream: true }))) : next;
      size = bytes.length;
      if (size > 0) controller.enqueue(bytes);
    }
  };
  const cancel = (reason?: unknown) => body.cancel(reason);
  return { isDocument, pieces: new ReadableStream({ pull, cancel }, { highWaterMark: 0 }) };
}

function failureStatus({ status_code, code }: Body): number {
  const status = Number(status_code ?? code);
  return Number.isInteger(status) && status >= 400 && status <= 599 ? status : 500;
}

/** Undefined for what is no answer in one piece of any interface that is spoken here. */
function eventsOf(body: unknown): Body[] | undefined {
  // Gemini sends a list of its pieces to who does not ask for events.
  if (Array.isArray(body)) return body.length > 0 && body.every(isCandidates) ? body : undefined;
  if (!isRecord(body)) return undefined;
  if (Array.isArray(body.choices)) return [chatChunk(body, body.choices)];
  if (body.object === 'response' && Array.isArray(body.output)) return responseEvents(body, body.output);
  if (body.type === 'message' && Array.isArray(body.content)) return messageEvents(body, body.content);
  return isCandidates(body) ? [body] : undefined;
}

const isCandidates = (value: unknown): value is Body => isRecord(value) && Array.isArray(value.candidates);

function chatChunk(body: Body, choices: readonly unknown[]): Body {
  const chunks = choices.filter(isRecord).map(({ message, ...choice }, index) => ({
    index,
    ...choice,
    delta: isRecord(message) ? { ...message, ...indexed(message.tool_calls) } : message,
    // What came in one piece is whole.
    finish_reason: reasonIn(choice.finish_reason) ?? 'stop',
  }));
  // Groq's streams tell the usage in a place of their own.
  const x_groq = isRecord(body.x_groq) ? { ...body.x_groq, usage: body.usage } : undefined;
  return { ...body, object: 'chat.completion.chunk', choices: chunks, x_groq };
}

/** In a stream each call says which one it is. */
const indexed = (calls: unknown): Body =>
  Array.isArray(calls) ? { tool_calls: calls.filter(isRecord).map((call, index) => ({ index, ...call })) } : {};

const responseEvents = (body: Body, output: readonly unknown[]): Body[] => [
  { type: 'response.created', response: { ...body, status: 'in_progress', output: [] } },
  ...recordsIn(output).flatMap(itemEvents),
  { type: `response.${body.status === 'incomplete' ? 'incomplete' : 'completed'}`, response: body },
];

function messageEvents({ content: _, ...body }: Body, blocks: readonly unknown[]): Body[] {
  const { stop_reason, stop_sequence = null, usage } = body;
  return [
    { type: 'message_start', message: { ...body, content: [], stop_reason: null } },
    ...recordsIn(blocks).flatMap(blockEvents),
    { type: 'message_delta', delta: { stop_reason, stop_sequence }, usage },
    { type: 'message_stop' },
  ];
}

/** What of a block a stream tells piece by piece; the rest of it, or all of another kind, comes with its start. */
const pieces: Readonly<Record<string, (block: Body) => { empty: Body; deltas: Body[] }>> = {
  text: ({ text, citations }) => ({
    empty: { text: '' },
    deltas: [
      { type: 'text_delta', text },
      ...(Array.isArray(citations) ? citations : []).map(citation => ({ type: 'citations_delta', citation })),
    ],
  }),
  thinking: ({ thinking, signature }) => ({
    empty: { thinking: '', signature: '' },
    deltas: [
      { type: 'thinking_delta', thinking },
      ...(typeof signature === 'string' ? [{ type: 'signature_delta', signature }] : []),
    ],
  }),
  tool_use: calledWith,
  server_tool_use: calledWith,
};

function calledWith({ input }: Body): { empty: Body; deltas: Body[] } {
  return { empty: { input: {} }, deltas: [{ type: 'input_json_delta', partial_json: JSON.stringify(input ?? {}) }] };
}

function blockEvents(block: Body, index: number): Body[] {
  const { empty, deltas } = pieces[String(block.type)]?.(block) ?? { empty: {}, deltas: [] };
  return [
    { type: 'content_block_start', index, content_block: { ...block, ...empty } },
    ...deltas.map(delta => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}
