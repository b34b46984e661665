import { thinks } from './check-messages.ts';
import { claudeModel } from './claude-models.ts';
import type { Reply } from './reply.ts';
import { signatureOf } from './thought-binding.ts';
import { piecesOf } from './tool-calls.ts';
import type { Frame, Wire } from './wire.ts';
import { recordOf, stringOf } from './wire-values.ts';

type Value = Record<string, unknown>;

/** Parts of what was written to the cache, by how long it is kept. */
export interface WrittenFor {
  short: number;
  long: number;
}

const stopReasons = {
  stop: 'end_turn',
  length: 'max_tokens',
  content_filter: 'refusal',
  pause: 'pause_turn',
  full: 'model_context_window_exceeded',
};

/** An answer of POST /v1/messages to the request with this body. */
export function messagesWire(body: Value, reply: Reply, written: WrittenFor): Wire {
  const thinking = thinks(body) && reply.reasoning !== '' ? thinkingBlock(body, reply) : undefined;
  const search = searchBlocks(reply);
  const textIndex = (thinking ? 1 : 0) + search.length;
  const citations = citationsOf(reply);
  const message = {
    id: `msg_${reply.id}`,
    type: 'message',
    role: 'assistant',
    model: reply.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
  const calling = reply.calls.length > 0 && reply.finish === 'stop';
  const stop = { stop_reason: calling ? 'tool_use' : stopReasons[reply.finish], stop_sequence: null };
  const hasText = reply.text !== '';
  const uses = reply.calls.map(({ id, name, args }) => ({ type: 'tool_use', id: toolUseId(id), name, input: args }));

  return {
    open: () => [
      frame('message_start', { message: { ...message, usage: { ...usageOf(reply, written), output_tokens: 1 } } }),
      ...(thinking ? thinkingFrames(thinking) : []),
      ...search.flatMap((block, at) => searchFrames(block, (thinking ? 1 : 0) + at)),
      ...(hasText
        ? [
            frame('content_block_start', {
              index: textIndex,
              content_block: { ...(citations.length > 0 && { citations: [] }), type: 'text', text: '' },
            }),
          ]
        : []),
      frame('ping', {}),
    ],
    text: piece => frame('content_block_delta', { index: textIndex, delta: { type: 'text_delta', text: piece } }),
    close: () => [
      ...(hasText
        ? [
            ...citations.map(citation =>
              frame('content_block_delta', { index: textIndex, delta: { type: 'citations_delta', citation } }),
            ),
            frame('content_block_stop', { index: textIndex }),
          ]
        : []),
      ...reply.calls.flatMap((call, at) => useFrames(call, textIndex + (hasText ? 1 : 0) + at)),
      frame('message_delta', { delta: stop, usage: usageOf(reply, written) }),
      frame('message_stop', {}),
    ],
    fail: () => [frame('error', { error: { type: 'overloaded_error', message: 'Overloaded' } })],
    whole: () => ({
      ...message,
      ...stop,
      content: [
        ...(thinking ? [thinking] : []),
        ...search,
        ...(hasText ? [{ ...(citations.length > 0 && { citations }), type: 'text', text: reply.text }] : []),
        ...uses,
      ],
      usage: usageOf(reply, written),
    }),
  };
}

/** Its ids have one form, and no others are taken back. */
function toolUseId(id: string): string {
  return id.startsWith('call_') ? `toolu_${id.slice('call_'.length)}` : id;
}

function useFrames({ id, name, text }: Reply['calls'][number], index: number): Frame[] {
  return [
    frame('content_block_start', { index, content_block: { type: 'tool_use', id: toolUseId(id), name, input: {} } }),
    ...['', ...piecesOf(text)].map(partial_json =>
      frame('content_block_delta', { index, delta: { type: 'input_json_delta', partial_json } }),
    ),
    frame('content_block_stop', { index }),
  ];
}

function frame(type: string, rest: Value): Frame {
  return { event: type, data: { type, ...rest } };
}

interface ThinkingBlock {
  type: 'thinking';
  /** Empty where the request wants thoughts left out, or the model leaves them out unasked. */
  thinking: string;
  signature: string;
}

function thinkingBlock(body: Value, reply: Reply): ThinkingBlock {
  const id = stringOf(body.model);
  // Other vendors with this interface show them always.
  const usual = id.startsWith('claude-') && !claudeModel(id).showsThoughts ? 'omitted' : 'summarized';
  const shown = (recordOf(body.thinking).display ?? usual) === 'omitted' ? '' : reply.reasoning;
  return { type: 'thinking', thinking: shown, signature: signatureOf(body, reply.reasoning) };
}

function thinkingFrames({ thinking, signature }: ThinkingBlock): Frame[] {
  const delta = (content: Value): Frame => frame('content_block_delta', { index: 0, delta: content });
  return [
    frame('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } }),
    ...(thinking ? [delta({ type: 'thinking_delta', thinking })] : []),
    delta({ type: 'signature_delta', signature }),
    frame('content_block_stop', { index: 0 }),
  ];
}

const sealed = (text: string) => Buffer.from(text).toString('base64');

/** The search as the vendor's own tool, and what it brought; the pages' text is sealed. */
function searchBlocks({ pages, id }: Reply): Value[] {
  if (pages.length === 0) return [];
  const use = `srvtoolu_${id}`;
  return [
    { type: 'server_tool_use', id: use, name: 'web_search', input: { query: 'what is new' } },
    {
      type: 'web_search_tool_result',
      tool_use_id: use,
      content: pages.map(({ url, title, age }) => ({
        type: 'web_search_result',
        url,
        title,
        encrypted_content: sealed(`all of ${url}`),
        page_age: age ?? null,
      })),
    },
  ];
}

function searchFrames(block: Value, index: number): Frame[] {
  const delta = { type: 'input_json_delta', partial_json: JSON.stringify(block.input) };
  return [
    frame('content_block_start', { index, content_block: block.input === undefined ? block : { ...block, input: {} } }),
    ...(block.input === undefined ? [] : [frame('content_block_delta', { index, delta })]),
    frame('content_block_stop', { index }),
  ];
}

function citationsOf({ pages }: Reply): Value[] {
  return pages.flatMap(({ url, title, quote }) =>
    quote === undefined
      ? []
      : [
          {
            type: 'web_search_result_location',
            url,
            title,
            encrypted_index: sealed(`index of ${url}`),
            cited_text: quote,
          },
        ],
  );
}

function usageOf({ usage, pages }: Reply, written: WrittenFor): Value {
  return {
    ...(pages.length > 0 && { server_tool_use: { web_search_requests: 1 } }),
    input_tokens: Math.max(0, usage.input - usage.cacheRead - usage.cacheWrite),
    cache_creation_input_tokens: usage.cacheWrite,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation: { ephemeral_5m_input_tokens: written.short, ephemeral_1h_input_tokens: written.long },
    output_tokens: usage.output,
    ...(usage.reasoning > 0 && { output_tokens_details: { thinking_tokens: usage.reasoning } }),
    service_tier: 'standard',
  };
}
